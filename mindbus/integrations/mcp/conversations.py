"""MCP tools of a person's conversations: ask the assistant, look for what was said, add what was said elsewhere."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from datetime import datetime
from typing import Annotated, Any, Literal, cast

from mcp.server.mcpserver import Context
from pydantic import AwareDatetime, BaseModel, Field

from bus_schema.dialogue import Answered, CancelAnswer, Invoke, conversation_trace
from bus_schema.episodes import EpisodeHead, RawTurn
from bus_schema.ids import mint
from bus_schema.lsm import ListEpisodes, SetAnchor, UnpackEpisode
from bus_schema.lsm_search import SearchEpisodes
from bus_schema.replies import restarts
from mindbus.errors import MindBusError
from mindbus.integrations.mcp.participant import Participant, ParticipantOf
from mindbus.sdk.memory import Memory

_CANCEL_WITHIN_S = 1.0

EpisodeId = Annotated[str, Field(description="Such as ep_0192….")]


class AddedMessage(BaseModel):
    """A message of a conversation."""

    role: Literal["user", "assistant"]
    content: Annotated[str, Field(min_length=1)]
    time: Annotated[AwareDatetime | None, Field(description="When it was said; default: now.")] = None
    id: Annotated[
        str | None, Field(description="`msg_…`; a message with the same id is added only once.", pattern=r"^msg_")
    ] = None


class Turn(BaseModel):
    """A message as it was said; with `is_excerpt`, only a passage of a long one."""

    role: str
    text: str
    time: datetime
    is_excerpt: bool = False


class FoundPassage(BaseModel):
    """Turns of one episode of a conversation."""

    episode_id: str
    headline: str
    started_at: datetime
    turns: list[Turn]


class FoundPassages(BaseModel):
    """Passages, best first; if the confidence is `nothing`, they are only the nearest there are."""

    confidence: Literal["found", "weak", "nothing"]
    passages: list[FoundPassage]


class EpisodeList(BaseModel):
    """Episodes, latest first; pass `cursor` to get the next ones."""

    items: list[EpisodeHead]
    cursor: str | None = None


class ConversationTools:
    """A person's dialogue with the assistant, and their long-term memory."""

    def __init__(self, participant_of: ParticipantOf) -> None:
        self._of = participant_of

    async def ask_assistant(
        self, context: Context[Any, Any], message: Annotated[str, Field(min_length=1, description="What to say.")]
    ) -> str:
        """Say something to your MindBus assistant; it knows your tasks, your past conversations and its sub-agents."""
        participant = self._of(context)
        user_id = participant.user_id
        command = Invoke(user_id=user_id, message=message, message_id=mint("msg"), stream=True)
        try:
            with participant.asking():
                return await _answer(context, participant, command)
        except asyncio.CancelledError:
            # Have the model called no more: nobody waits for the rest.
            cancel = CancelAnswer(user_id=user_id, message_id=command.message_id or "")
            with suppress(TimeoutError, MindBusError):
                async with asyncio.timeout(_CANCEL_WITHIN_S):
                    await asyncio.shield(participant.bus.send(cancel, trace=conversation_trace(user_id)))
            raise

    async def conversation_search(
        self,
        context: Context[Any, Any],
        query: Annotated[str, Field(min_length=1, max_length=4000, description="What to look for.")],
        words: Annotated[int, Field(ge=50, le=4000, description="Maximum number of words in the answer.")] = 800,
        since: AwareDatetime | None = None,
        until: AwareDatetime | None = None,
        newest_first: Annotated[bool, Field(description="Latest first, for what may have changed.")] = False,
    ) -> FoundPassages:
        """Search your long-term memory for what was said before; you get it in its original words."""
        participant = self._of(context)
        search = SearchEpisodes(
            query=query,
            chat_id=participant.user_id,
            budget_words=words,
            since=since,
            until=until,
            depth="raw",
            touch=False,
            newest_first=newest_first,
        )
        found = await participant.bus.request(search)
        passages = [
            FoundPassage(
                episode_id=each.episode_id,
                headline=each.headline,
                started_at=each.started_at,
                turns=[_turn(turn) for turn in each.turns],
            )
            for each in found.episodes
        ]
        return FoundPassages(confidence=found.confidence, passages=passages)

    async def conversation_add(
        self,
        context: Context[Any, Any],
        messages: Annotated[list[AddedMessage], Field(min_length=1, max_length=200, description="In order of time.")],
    ) -> str:
        """Add a conversation held elsewhere, such as this one, and its facts to your long-term memory."""
        participant = self._of(context)
        said = [each.model_dump(exclude_none=True) for each in messages]
        added = await Memory(participant.bus).add(said, user=participant.user_id)
        told = f"{added.new} of {len(said)} messages are new; they are in {added.episode_id}"
        if added.unread:
            again = "add the same messages, with their times or ids, again later"
            return f"{told}. The facts in them could not be read: {added.unread}. To have them read, {again}."
        facts = [f"\n- {update.fact.text}" for update in added.facts if update.change == "found"]
        return f"{told}. Facts in them:{''.join(facts)}" if facts else told

    async def episode_list(
        self,
        context: Context[Any, Any],
        limit: Annotated[int, Field(ge=1, le=100)] = 20,
        cursor: str | None = None,
    ) -> EpisodeList:
        """List the episodes of your long-term memory."""
        participant = self._of(context)
        page = await participant.bus.request(ListEpisodes(chat_id=participant.user_id, limit=limit, cursor=cursor))
        return EpisodeList(items=list(page.items), cursor=page.next_cursor)

    async def episode_read(self, context: Context[Any, Any], id: EpisodeId) -> list[Turn]:
        """Read everything that was said in an episode."""
        content = await self._of(context).bus.request(UnpackEpisode(episode_id=id))
        return [_turn(turn) for turn in content.raw_messages]

    async def episode_pin(
        self,
        context: Context[Any, Any],
        id: EpisodeId,
        pinned: Annotated[bool, Field(description="False removes the pin.")] = True,
    ) -> str:
        """Pin an episode, so that it stays at hand however old it grows."""
        await self._of(context).bus.request(SetAnchor(episode_id=id, is_anchor=pinned))
        return f"{id} is {'pinned' if pinned else 'no longer pinned'}"


async def _answer(context: Context[Any, Any], participant: Participant, command: Invoke) -> str:
    trace, meta = conversation_trace(command.user_id), context.request_context.meta or {}
    if meta.get("progress_token") is None:
        # Pieces of which nobody is told cost time.
        whole = command.model_copy(update={"stream": False})
        return (await participant.bus.request(whole, trace=trace, timeout_s=participant.answer_s)).response
    pieces = participant.bus.stream(command, trace=trace, timeout_s=participant.answer_s)
    heard = 0
    async with aclosing(cast("AsyncGenerator[str | Answered]", pieces)):
        async for piece in pieces:
            if isinstance(piece, Answered):
                return piece.response
            heard = 0 if restarts(piece) else heard + len(piece)
            await context.report_progress(heard, message=f"{heard} characters of the answer so far")
    raise AssertionError("unreachable: a stream ends with its result")


def _turn(turn: RawTurn) -> Turn:
    return Turn(role=turn.role, text=turn.content, time=turn.time, is_excerpt=turn.is_excerpt)
