"""Exchanges of a dialogue: one message and its answer, each kept once, with what memory recalls."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from agents.dialogue.agent import Delegator, DialogueAgent, MemorySnippet, fitting_memory
from agents.models.errors import ModelUnavailable
from agents.models.language_model import TokenMeter
from agents.models.offline.model import OfflineModel
from agents.models.recorded import calls_for
from agents.present import Present
from bus_schema.client_tools import ClientTools
from bus_schema.conversations import Saved
from bus_schema.dialogue import Answered, DialogueMessage, MessageKind, answer_id_of
from bus_schema.message_parts import DelegatedTask, ModelUse, is_cut_off
from bus_schema.replies import Code
from mindbus.errors import Rejected
from mindbus.sdk.conversations import Conversations, HistoryClient
from mindbus.sdk.users import UserDirectory
from workers.dialogue.attachments import attached_snippets
from workers.dialogue.client_tools import ClientToolRounds, ToolsCalled
from workers.dialogue.delegation import DelegationRounds, Subagents
from workers.dialogue.memory import MemoryLookup, RetrievedMemory
from workers.dialogue.open_talks import OpenTalk, OpenTalks
from workers.dialogue.running_answers import ModelAway, RunningAnswers
from workers.dialogue.transcript import ExchangeRecord, with_unanswered_question

_OFFLINE = DialogueAgent(OfflineModel(), quotes=False)
OnPiece = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class DialogueExchange:
    """A user's message and its answer; `buffered` is None where the answer had been stored before."""

    said: DialogueMessage
    answer: DialogueMessage
    buffered: int | None = None
    delegations: tuple[DelegatedTask, ...] = ()
    model_tokens: int = 0

    @property
    def answered(self) -> Answered:
        """The answer, for whoever asked."""
        text = self.answer.content or ""
        return Answered(
            message_id=self.said.message_id,
            response_id=self.answer.message_id,
            response=text,
            delegations=self.delegations,
            cut_off=is_cut_off(text),
            **self.answer.model_dump(include={"kem_ids", "episodes", "memory", "model_use"}),
        )


@dataclass(frozen=True, slots=True)
class ExchangeProcessor:
    """Has the agent answer messages, with its memory and its sub-agents.

    Raises what Conversations or Histories raise; ModelAway; PermanentFailure where the model has nothing to say.
    """

    conversations: Conversations
    histories: HistoryClient
    talks: OpenTalks
    agent: DialogueAgent
    memory: MemoryLookup
    users: UserDirectory
    subagents: Subagents
    most_rounds: int
    clock: Callable[[], datetime]
    running: RunningAnswers

    async def process(
        self,
        draft: DialogueMessage,
        on_stored: Callable[[DialogueMessage], Awaitable[object]],
        on_piece: OnPiece,
        client: ClientTools | None = None,
    ) -> DialogueExchange:
        """Keep what is said, report it to `on_stored`, answer it; what was kept before a crash is not thought again.

        Raises ToolsCalled where the model has called tools of the asker.
        """
        user_id = draft.user_id
        talk, user = await asyncio.gather(self.talks.open(user_id), self.users.of(user_id))
        present = Present.of(user, self.clock())
        record = self._record(draft, talk)
        (said, saved), (memory, shown) = await asyncio.gather(
            self._taken(draft, talk.recent), self._remembered(record, present, talk)
        )
        if saved.is_new or not (client and client.rounds):
            await on_stored(said)
        is_foreseen = talk.precedes(saved)
        if not is_foreseen:
            talk = await self.talks.read(user_id)
        record = self._record(said, talk)
        if not saved.is_new:
            await record.resume(client.call_ids if client else ())
            if repeated := await self._repeated(said, record, talk):
                return repeated
        worded = await self.conversations.with_text(said)
        record.said = with_unanswered_question(worded, talk.recent)
        if record.said.content != draft.content or not is_foreseen:
            memory, shown = await self._remembered(record, present, talk)
        text, meter = await self._text(record, shown, present, on_piece, client)
        used = memory.used(shown, record.said.content or "", text)
        answer, stored = await self._keep(record, self._answer(record, text, memory, shown, used), _model_use(meter))
        self._remember(talk, worded, answer, stored, record)
        await self.memory.report(memory, user_id, used)
        buffered = None if stored is None else stored.buffered
        return DialogueExchange(said, answer, buffered, record.delegations(self.subagents.known), meter.usage.tokens)

    def _remember(
        self,
        talk: OpenTalk,
        said: DialogueMessage,
        answer: DialogueMessage,
        stored: Saved | None,
        record: ExchangeRecord,
    ) -> None:
        """Keep the talk with this exchange, unless somebody else has written meanwhile."""
        if stored is not None and record.version is not None:
            window = talk.window.with_messages(record.appended, record.version, self.talks.most_messages)
            self.talks.keep(said.user_id, talk.after(said, answer, stored, window))

    def _answer(
        self,
        record: ExchangeRecord,
        text: str,
        memory: RetrievedMemory,
        shown: Sequence[MemorySnippet],
        used: Sequence[str],
    ) -> DialogueMessage:
        is_notification = record.said.kind is MessageKind.HIDDEN
        return DialogueMessage(
            message_id=record.answer_id,
            user_id=record.said.user_id,
            role="assistant",
            kind=MessageKind.NOTIFICATION if is_notification else MessageKind.NATIVE,
            content=text,
            time=self.clock(),
            kem_ids=memory.kem_ids(shown),
            episodes=memory.recalled(shown, used),
            memory=memory.absence,
            search_id=memory.episodes.search_id,
        )

    def _record(self, said: DialogueMessage, talk: OpenTalk) -> ExchangeRecord:
        answer_id = answer_id_of(said.message_id)
        return ExchangeRecord(self.histories, said, answer_id, self.clock, talk.window)

    async def _repeated(self, said: DialogueMessage, record: ExchangeRecord, talk: OpenTalk) -> DialogueExchange | None:
        """The exchange as it is stored, if it is; the history gets it too, if a crash came in between."""
        answer_id = record.answer_id
        answer = _within(talk.recent, answer_id) or await self.conversations.find(said.user_id, answer_id)
        if answer is None:
            return None
        if record.answered is None and talk.recent[-1].message_id == answer.message_id:
            await record.conclude(answer)
        return DialogueExchange(said, answer, delegations=record.delegations(self.subagents.known))

    async def _taken(self, draft: DialogueMessage, recent: Sequence[DialogueMessage]) -> tuple[DialogueMessage, Saved]:
        """The message as it is stored, and how it was saved. Raises Rejected for other words under its id."""
        said = _within(recent, draft.message_id)
        if said is None:
            return await self._store_message(draft.model_copy(update={"kind": _kind_of(draft, recent)}))
        if draft.content not in (None, said.content):
            raise Rejected(Code.CONFLICT, f"{said.message_id} was said with other words; mint a new id")
        return said, Saved(message_id=said.message_id, is_new=False)

    async def _remembered(
        self, record: ExchangeRecord, present: Present, talk: OpenTalk
    ) -> tuple[RetrievedMemory, Sequence[MemorySnippet]]:
        """Memory on the message but for what the window shows, with the snippets of it that fit."""
        spoken = record.talk
        window, budget = self.agent.window(spoken, present, self.subagents.tools)
        memory, attached = await asyncio.gather(
            self.memory.about(record.said, record.last_ids(len(window)), budget.memory, talk.picture),
            attached_snippets(self.conversations, record.said, talk.recent, budget.memory),
        )
        return memory, fitting_memory([*attached, *memory.snippets], budget)

    async def _store_message(self, said: DialogueMessage) -> tuple[DialogueMessage, Saved]:
        try:
            return said, await self.conversations.keep(said)
        except Rejected as error:
            # Said again long afterwards, it need not come right after a notification any more.
            known = (
                await self.conversations.find(said.user_id, said.message_id) if error.code is Code.CONFLICT else None
            )
            if known is None or (known.role, known.content, known.ref) != (said.role, said.content, said.ref):
                raise
            return known, Saved(message_id=known.message_id, is_new=False)

    async def _thought(
        self,
        record: ExchangeRecord,
        remembered: Sequence[MemorySnippet],
        help: Delegator | None,
        present: Present,
        on_piece: OnPiece,
    ) -> str:
        said = record.said
        pieces = self.agent.answer(record.talk, remembered, help, present)
        try:
            return await self.running.text(said.user_id, said.message_id, pieces, on_piece)
        except ModelUnavailable as error:
            if said.kind is not MessageKind.HIDDEN:
                raise ModelAway(said) from error
        # A notification does not wait for a better wording.
        plain = _OFFLINE.answer(record.talk, remembered, present=present)
        return await self.running.text(said.user_id, said.message_id, plain, on_piece)

    async def _help(self, record: ExchangeRecord, present: Present, client: ClientTools | None) -> Delegator | None:
        """An instruction says all that it takes to follow it."""
        if record.said.kind is MessageKind.HIDDEN:
            return None
        own = DelegationRounds(self.subagents, self.histories, record, present, self.most_rounds)
        if client is None:
            return own
        rounds = ClientToolRounds(own, client, record, self.subagents.known)
        await rounds.bring()
        return rounds

    async def _text(
        self,
        record: ExchangeRecord,
        remembered: Sequence[MemorySnippet],
        present: Present,
        on_piece: OnPiece,
        client: ClientTools | None,
    ) -> tuple[str, TokenMeter]:
        """The answer's text and what it has cost. Raises ToolsCalled."""
        help = await self._help(record, present, client)
        with TokenMeter() as meter, calls_for(record.answer_id):
            text = record.answered or await self._thought(record, remembered, help, present, on_piece)
        if not (isinstance(help, ClientToolRounds) and help.waiting):
            return text, meter
        answered = Answered(
            message_id=record.said.message_id,
            response_id=record.answer_id,
            response=text,
            delegations=record.delegations(self.subagents.known),
            model_use=_model_use(meter),
            tool_calls=help.waiting,
        )
        raise ToolsCalled(answered)

    async def _keep(
        self, record: ExchangeRecord, answer: DialogueMessage, model_use: ModelUse | None
    ) -> tuple[DialogueMessage, Saved | None]:
        """Append to the history and store the answer at once, the history first on the wire; wait for both.

        So whoever finds the answer stored after a crash finds it appended, or appends it.
        """
        answer = answer.model_copy(update={"model_use": model_use})
        appended, stored = await asyncio.gather(
            record.conclude(answer), self._store_answer(answer), return_exceptions=True
        )
        for outcome in (appended, stored):
            if isinstance(outcome, BaseException):
                raise outcome
        return cast("tuple[DialogueMessage, Saved | None]", stored)

    async def _store_answer(self, answer: DialogueMessage) -> tuple[DialogueMessage, Saved | None]:
        try:
            return answer, await self.conversations.keep(answer)
        except Rejected as error:
            # An instance that died meanwhile had other words on their way: those are what was answered.
            other = (
                await self.conversations.find(answer.user_id, answer.message_id)
                if error.code is Code.CONFLICT
                else None
            )
            if other is None:
                raise
            return other, None


def _model_use(meter: TokenMeter) -> ModelUse | None:
    return ModelUse(model_name=meter.model_name, **meter.usage.model_dump()) if meter.model_name else None


def _within(talk: Sequence[DialogueMessage], message_id: str) -> DialogueMessage | None:
    return next((message for message in talk if message.message_id == message_id), None)


def _kind_of(draft: DialogueMessage, talk: Sequence[DialogueMessage]) -> MessageKind:
    """Kind of a user's message: one right after a notification is a response to it."""
    is_response = draft.kind is MessageKind.NATIVE and talk and talk[-1].kind is MessageKind.NOTIFICATION
    return MessageKind.RESPONSE if is_response else draft.kind
