"""One message and its answer, each kept once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agents.dialogue.agent import Dialogue, NothingSaid, Snippet
from agents.models.failures import ModelFailure, ModelUnavailable
from agents.recollection import recollected
from bus_schema.dialogue import MAX_MESSAGE_CHARS, DialogueMessage, MessageKind
from bus_schema.glm import FoundKem
from bus_schema.ids import derived
from bus_schema.replies import Code
from mindbus.bus.failures import PermanentFailure, Refused, TemporaryFailure
from mindbus.sdk.conversations import Conversations
from mindbus.sdk.pictures import Known, Pictures
from mindbus.sdk.recall import Recall

_TALK_MESSAGES = 40
# Leaves room for the picture.
_RECALLED_WORDS = 250

Hear = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class Exchange:
    """What was said, what was answered; `buffered` is unknown where the answer had been kept before."""

    said: DialogueMessage
    answer: DialogueMessage
    buffered: int | None = None


class Exchanges:
    """Raises what Conversations raises; PermanentFailure where the model has nothing to say."""

    def __init__(
        self, talks: Conversations, agent: Dialogue, pictures: Pictures, recall: Recall, clock: Callable[[], datetime]
    ) -> None:
        self._talks, self._agent, self._pictures, self._recall, self._clock = talks, agent, pictures, recall, clock

    async def have(
        self, draft: DialogueMessage, kept: Callable[[DialogueMessage], Awaitable[object]], hear: Hear
    ) -> Exchange:
        """Keep what is said, tell `kept` of it, answer it; what was kept before a crash is not thought again."""
        recent, pictured, found = await asyncio.gather(
            self._talks.recent(draft.user_id, _TALK_MESSAGES), self._pictures.of(draft.user_id), self._found(draft)
        )
        said, is_new = _within(recent, draft.message_id), False
        if said is None:
            said, is_new = await self._heard(draft.model_copy(update={"kind": _kind_of(draft, recent)}))
            recent.append(await self._talks.worded(said))
        elif draft.content not in (None, said.content):
            raise Refused(Code.CONFLICT, f"{said.message_id} was said with other words; mint a new id")
        await kept(said)
        answer_id = f"msg_{derived(said.message_id, 'answer')}"
        known = None if is_new else _within(recent, answer_id) or await self._talks.find(said.user_id, answer_id)
        if known:
            return Exchange(said, known)
        talk = _up_to(said, recent)
        if draft.ref is not None:
            found = await self._found(talk[-1])
        remembered = self._remembered(found, pictured)
        answer = DialogueMessage(
            message_id=answer_id,
            user_id=said.user_id,
            role="assistant",
            kind=MessageKind.NOTIFICATION if said.kind is MessageKind.HIDDEN else MessageKind.NATIVE,
            content=await self._thought(talk, remembered, hear),
            time=self._clock(),
            kem_ids=tuple(each.id for each in remembered if each.id not in {known.id for known in pictured}),
        )
        return await self._kept(said, answer)

    async def _found(self, said: DialogueMessage) -> Sequence[FoundKem]:
        """What memory has on the matter; an instruction says all that it takes to follow it."""
        if said.kind is MessageKind.HIDDEN or said.content is None:
            return ()
        return await self._recall.about(said.content, f"user.{said.user_id}")

    def _remembered(self, found: Sequence[FoundKem], pictured: Sequence[Known]) -> Sequence[Snippet]:
        """What the model is shown: what bears on the matter, then what is always kept in mind, each once."""
        recalled = recollected(found, _RECALLED_WORDS)
        shown = {material.id for material in recalled}
        facts = {each.kem.metadata.get("fact_id") for each in found if each.kem.id in shown}
        return self._agent.shown(
            [
                *(Snippet(material.id, material.text) for material in recalled),
                *(Snippet(known.id, known.text) for known in pictured if known.id not in facts),
            ]
        )

    async def _heard(self, said: DialogueMessage) -> tuple[DialogueMessage, bool]:
        try:
            return said, (await self._talks.keep(said)).is_new
        except Refused as no:
            # Said again long afterwards, it need not come right after a notification any more.
            known = await self._talks.find(said.user_id, said.message_id) if no.code is Code.CONFLICT else None
            if known is None or (known.role, known.content, known.ref) != (said.role, said.content, said.ref):
                raise
            return known, False

    async def _thought(self, talk: Sequence[DialogueMessage], remembered: Sequence[Snippet], hear: Hear) -> str:
        pieces = []
        try:
            async for piece in self._agent.answer(talk, remembered):
                pieces.append(piece)
                await hear(piece)
        except ModelUnavailable as away:
            raise TemporaryFailure(str(away), away.retry_after) from away
        except (ModelFailure, NothingSaid) as never:
            raise PermanentFailure(str(never)) from never
        return "".join(pieces).replace("\0", "")[:MAX_MESSAGE_CHARS]

    async def _kept(self, said: DialogueMessage, answer: DialogueMessage) -> Exchange:
        try:
            return Exchange(said, answer, (await self._talks.keep(answer)).buffered)
        except Refused as no:
            # An instance that died meanwhile had other words on their way: those are what was answered.
            other = await self._talks.find(answer.user_id, answer.message_id) if no.code is Code.CONFLICT else None
            if other is None:
                raise
            return Exchange(said, other)


def _within(talk: Sequence[DialogueMessage], message_id: str) -> DialogueMessage | None:
    return next((message for message in talk if message.message_id == message_id), None)


def _up_to(said: DialogueMessage, talk: Sequence[DialogueMessage]) -> Sequence[DialogueMessage]:
    """What it is to be answered from: nothing of what was said later."""
    return talk[: 1 + next(at for at, message in enumerate(talk) if message.message_id == said.message_id)]


def _kind_of(draft: DialogueMessage, talk: Sequence[DialogueMessage]) -> MessageKind:
    """What a user says right after a notification is a response to it."""
    is_response = draft.kind is MessageKind.NATIVE and talk and talk[-1].kind is MessageKind.NOTIFICATION
    return MessageKind.RESPONSE if is_response else draft.kind
