"""Exchanges of a dialogue: one message and its answer, each kept once, with what memory recalls."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile

from agents.dialogue.agent import DialogueAgent, MemorySnippet, fitting_memory
from agents.dialogue.generation import asks_again
from agents.models.conversation import fit_window
from agents.models.errors import ModelUnavailable
from agents.models.offline.model import OfflineModel
from agents.present import Present
from bus_schema.dialogue import (
    MAX_MESSAGE_CHARS,
    DelegatedTask,
    DialogueMessage,
    MessageKind,
)
from bus_schema.history import chat_key
from bus_schema.ids import derived
from bus_schema.replies import Code
from mindbus.errors import Rejected
from mindbus.sdk.conversations import Conversations, HistoryClient
from mindbus.sdk.users import UserDirectory
from workers.dialogue.delegation import DelegationRounds, Subagents
from workers.dialogue.memory import MemoryLookup, RetrievedMemory
from workers.dialogue.running_answers import ModelAway, RunningAnswers
from workers.dialogue.transcript import ExchangeRecord

# Enough to see what it answers; what was said before that is found by its id.
_RECENT_MESSAGES = 6
_OFFLINE = DialogueAgent(OfflineModel())
OnPiece = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class DialogueExchange:
    """A user's message and its answer; `buffered` is None where the answer had been stored before."""

    said: DialogueMessage
    answer: DialogueMessage
    buffered: int | None = None
    delegations: tuple[DelegatedTask, ...] = ()


@dataclass(frozen=True, slots=True)
class ExchangeProcessor:
    """Has the agent answer messages, with its memory and its sub-agents.

    Raises what Conversations or Histories raise; ModelAway; PermanentFailure where the model has nothing to say.
    """

    conversations: Conversations
    histories: HistoryClient
    agent: DialogueAgent
    memory: MemoryLookup
    users: UserDirectory
    subagents: Subagents
    most_rounds: int
    clock: Callable[[], datetime]
    running: RunningAnswers

    async def process(
        self, draft: DialogueMessage, on_stored: Callable[[DialogueMessage], Awaitable[object]], on_piece: OnPiece
    ) -> DialogueExchange:
        """Keep what is said, report it to `on_stored`, answer it; what was kept before a crash is not thought again."""
        recent, earlier, user = await asyncio.gather(
            self.conversations.recent(draft.user_id, _RECENT_MESSAGES),
            self.histories.window_of_tokens(chat_key(draft.user_id), self.agent.context_tokens),
            self.users.of(draft.user_id),
        )
        present, answer_id = Present.of(user, self.clock()), f"msg_{derived(draft.message_id, 'answer')}"
        record = ExchangeRecord(self.histories, draft, answer_id, self.clock, earlier)
        (said, is_new), (memory, shown) = await asyncio.gather(
            self._taken(draft, recent), self._remembered(record, present)
        )
        await on_stored(said)
        known = None if is_new else _within(recent, answer_id) or await self.conversations.find(said.user_id, answer_id)
        record = ExchangeRecord(self.histories, said, answer_id, self.clock, earlier)
        if known:
            await record.resume()
            return DialogueExchange(said, known, delegations=record.delegations(self.subagents.known))
        record.said = _with_unanswered_question(await self.conversations.with_text(said), recent)
        if not is_new:
            await record.resume()
        if record.said.content != draft.content or not is_new:
            memory, shown = await self._remembered(record, present)
        text = record.answered or await self._thought(record, shown, present, on_piece)
        used = memory.used(shown, record.said.content or "", text)
        answer = DialogueMessage(
            message_id=answer_id,
            user_id=said.user_id,
            role="assistant",
            kind=MessageKind.NOTIFICATION if said.kind is MessageKind.HIDDEN else MessageKind.NATIVE,
            content=text,
            time=self.clock(),
            kem_ids=memory.kem_ids(shown),
            episodes=memory.recalled(shown, used),
            memory=memory.absence,
        )
        await record.conclude(answer)
        exchange = await self._store_answer(said, answer)
        await self.memory.report(memory, said.user_id, used)
        return replace(exchange, delegations=record.delegations(self.subagents.known))

    async def _taken(self, draft: DialogueMessage, recent: Sequence[DialogueMessage]) -> tuple[DialogueMessage, bool]:
        """The message as it is stored, and whether it is new. Raises Rejected for other words under its id."""
        said = _within(recent, draft.message_id)
        if said is None:
            return await self._store_message(draft.model_copy(update={"kind": _kind_of(draft, recent)}))
        if draft.content not in (None, said.content):
            raise Rejected(Code.CONFLICT, f"{said.message_id} was said with other words; mint a new id")
        return said, False

    async def _remembered(
        self, record: ExchangeRecord, present: Present
    ) -> tuple[RetrievedMemory, Sequence[MemorySnippet]]:
        """Memory on the message but for what the window shows, with the snippets of it that fit."""
        talk = record.talk
        budget = self.agent.prompt_budget(talk, present, self.subagents.tools)
        window = fit_window(talk, budget.window)
        memory = await self.memory.about(record.said, record.last_ids(len(window)), budget.memory)
        return memory, fitting_memory(memory.snippets, budget)

    async def _store_message(self, said: DialogueMessage) -> tuple[DialogueMessage, bool]:
        try:
            return said, (await self.conversations.keep(said)).is_new
        except Rejected as error:
            # Said again long afterwards, it need not come right after a notification any more.
            known = (
                await self.conversations.find(said.user_id, said.message_id) if error.code is Code.CONFLICT else None
            )
            if known is None or (known.role, known.content, known.ref) != (said.role, said.content, said.ref):
                raise
            return known, False

    async def _thought(
        self, record: ExchangeRecord, remembered: Sequence[MemorySnippet], present: Present, on_piece: OnPiece
    ) -> str:
        said = record.said
        pieces = self.agent.answer(record.talk, remembered, self._help(record, present), present)
        try:
            return await self.running.text(said.message_id, pieces, on_piece)
        except ModelUnavailable as error:
            if said.kind is not MessageKind.HIDDEN:
                raise ModelAway(said) from error
        # A notification does not wait for a better wording.
        plain = _OFFLINE.answer(record.talk, remembered, present=present)
        return await self.running.text(said.message_id, plain, on_piece)

    def _help(self, record: ExchangeRecord, present: Present) -> DelegationRounds | None:
        """An instruction says all that it takes to follow it."""
        if record.said.kind is MessageKind.HIDDEN:
            return None
        return DelegationRounds(self.subagents, self.histories, record, present, self.most_rounds)

    async def _store_answer(self, said: DialogueMessage, answer: DialogueMessage) -> DialogueExchange:
        try:
            return DialogueExchange(said, answer, (await self.conversations.keep(answer)).buffered)
        except Rejected as error:
            # An instance that died meanwhile had other words on their way: those are what was answered.
            other = (
                await self.conversations.find(answer.user_id, answer.message_id)
                if error.code is Code.CONFLICT
                else None
            )
            if other is None:
                raise
            return DialogueExchange(said, other)


def _within(talk: Sequence[DialogueMessage], message_id: str) -> DialogueMessage | None:
    return next((message for message in talk if message.message_id == message_id), None)


def _kind_of(draft: DialogueMessage, talk: Sequence[DialogueMessage]) -> MessageKind:
    """Kind of a user's message: one right after a notification is a response to it."""
    is_response = draft.kind is MessageKind.NATIVE and talk and talk[-1].kind is MessageKind.NOTIFICATION
    return MessageKind.RESPONSE if is_response else draft.kind


def _with_unanswered_question(said: DialogueMessage, talk: Sequence[DialogueMessage]) -> DialogueMessage:
    """The message; one that only asks to try again has the words of the user's messages that got no answer."""
    if said.kind is MessageKind.HIDDEN or not asks_again(said.content or ""):
        return said
    before = list(takewhile(lambda each: each.message_id != said.message_id, talk))
    unanswered = takewhile(lambda each: each.role == "user" and each.kind is not MessageKind.HIDDEN, reversed(before))
    questions = [each.content for each in unanswered if each.content and not asks_again(each.content)]
    question = "\n\n".join(reversed(questions))[-MAX_MESSAGE_CHARS:]
    return said.model_copy(update={"content": question}) if question else said
