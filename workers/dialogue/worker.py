"""Worker of dialogues: receives users' messages and lets the assistant answer."""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Literal

from agents.configuration.model_roles import model_of
from agents.context.preferences import open_preferences
from agents.dialogue.agent import DialogueAgent, hidden_instruction
from agents.mcp_servers.files import servers_of_dialogue
from agents.mcp_servers.tools import McpTools
from agents.models.endpoint import EndpointModel
from agents.models.explicit_requests import ExplicitRequestModel
from agents.models.language_model import LanguageModel, MeteredModel
from agents.models.offline.model import OfflineModel
from bus_schema.client_tools import ClientTools
from bus_schema.dialogue import (
    AnswerCancelled,
    Answered,
    CancelAnswer,
    CheckTimeouts,
    Delivered,
    DeliverNotification,
    DialogueFragment,
    DialogueMessage,
    EndDialogue,
    Ended,
    ExpiredDialogue,
    Invoke,
    MessageKind,
    MessageReceived,
    MessageSent,
    TimeoutsChecked,
    conversation_trace,
)
from bus_schema.envelope import Envelope
from bus_schema.history import RefreshDialogue
from bus_schema.ids import derived
from bus_schema.messages import Message
from bus_schema.notification import NotificationSent
from config.settings import FleetSettings
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, background, on_command
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import ReplyError
from mindbus.logs import logger
from mindbus.registry import installed_workers
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sdk.conversations import Conversations, HistoryClient
from mindbus.sdk.recall import EpisodeRecall, KemRecall, UserContexts
from mindbus.sdk.requests import in_id_scope
from mindbus.sdk.users import UserDirectory
from workers.dialogue.client_tools import ToolsCalled
from workers.dialogue.delegation import Subagents, known_subagents
from workers.dialogue.exchange import DialogueExchange, ExchangeProcessor, OnPiece
from workers.dialogue.memory import MemoryLookup
from workers.dialogue.open_talks import OpenTalks
from workers.dialogue.running_answers import AskerLeft, RunningAnswers
from workers.dialogue.transcript import preview_of
from workers.model_calls import ModelCallRecorder

_OF_USER = Invoke | DeliverNotification | EndDialogue | RefreshDialogue
_TICK_S = 0.5
# Silence is longer than the timeout, not as long (spec 004 §4.2).
_LONGER = timedelta(microseconds=1)


class DialogueWorker(Worker):
    """Leads every user's dialogue: what one user says in its order, users side by side.

    What was said is storage's, and so is what no fragment has been made of yet; what models are shown of it is
    history's: it keeps copies alone. It delegates to the sub-agents that are given.
    """

    name, start_stage, is_partitionable = "dialogue", 3, True
    concurrency, time_limit_s = 200, 1800

    def __init__(
        self,
        context: WorkerContext,
        model: LanguageModel | None = None,
        known_subagents: Mapping[str, str] | None = None,
    ) -> None:
        settings, recorder = context.settings_as(FleetSettings), ModelCallRecorder(context, self.name)
        self._bus, self._clock = context.bus, context.clock
        self._model = model or model_of(settings, self.name, recorder, is_chat=True, retries=0)
        self._artifacts = open_artifacts(context.bus, settings, context.clock)
        self._talks = Conversations(context.bus, self._artifacts, largest_inline_bytes=settings.max_body_bytes // 2)
        self._running, is_offline = RunningAnswers(), isinstance(self._model, OfflineModel)
        self._mcp = McpTools(servers_of_dialogue())
        histories, within_s = HistoryClient(context.bus), settings.recall_timeout_s
        self._open_talks = OpenTalks(
            self._talks, histories, UserContexts(context.bus), settings.llm_context_tokens, settings.max_history
        )
        speaking = ExplicitRequestModel(MeteredModel(self._model), reads_rules=is_offline)
        self._exchanges = ExchangeProcessor(
            self._talks,
            histories,
            self._open_talks,
            DialogueAgent(speaking, context_tokens=settings.llm_context_tokens, quotes=not is_offline),
            MemoryLookup(KemRecall(context.bus, within_s), EpisodeRecall(context.bus, within_s)),
            UserDirectory(context.bus, open_preferences(settings.habits).zone_of),
            Subagents(known_subagents or {}, context.bus, context.clock, settings.subagent_timeout_s, self._mcp),
            settings.delegation_rounds,
            context.clock,
            self._running,
        )
        self._most_messages = settings.dialogue_max_messages
        self._timeout = timedelta(minutes=settings.dialogue_timeout_minutes)
        self._check = timedelta(seconds=settings.dialogue_check_s)
        self._next_check = context.clock() + self._check

    def order_key(self, message: Message | Envelope) -> str | None:
        """One user's matters one after the other."""
        return message.user_id if isinstance(message, _OF_USER) else None

    @property
    def health_note(self) -> str:
        return self._mcp.note

    def on_consuming(self) -> None:
        self._open_talks.forget()

    async def start(self) -> None:
        await self._artifacts.start()
        await self._mcp.start()
        if isinstance(self._model, EndpointModel):
            self._model.endpoint.has_chat = True

    async def stop(self) -> None:
        await self._mcp.stop()
        await self._artifacts.stop()
        await self._model.aclose()

    @on_command
    async def invoke(self, command: Invoke, context: MessageContext) -> tuple[Answered | Publish, ...]:
        """Keep what the user says, answer it, keep the answer."""
        draft = DialogueMessage(
            message_id=command.message_id or f"msg_{derived(context.message_id, 'message')}",
            user_id=command.user_id,
            role="user",
            content=command.message,
            ref=command.ref,
            attachments=command.attachments,
            time=self._clock(),
        )
        on_piece = partial(_show, context, outlives_asker=command.outlives_asker) if command.stream else _nobody
        with self._running.expecting(draft.user_id, draft.message_id):
            try:
                exchange = await self._answer(draft, on_piece, command.client_tools)
            except ToolsCalled as called:
                return (called.answered,)
        return exchange.answered, *await self._ending(exchange, context)

    @on_command
    async def deliver(self, command: DeliverNotification, context: MessageContext) -> tuple[Delivered | Publish, ...]:
        """Tell the user something, as a hidden instruction to the assistant has it (spec 004 §5.2)."""
        draft = DialogueMessage(
            message_id=f"msg_{derived(command.notification_id, 'hidden')}",
            user_id=command.user_id,
            role="user",
            kind=MessageKind.HIDDEN,
            content=hidden_instruction(command.message, command.context),
            time=self._clock(),
        )
        exchange = await self._exchanges.process(draft, _nobody, _nobody)
        delivered = Delivered(message_id=exchange.answer.message_id)
        about = {"notification_id": command.notification_id, "to_user": command.user_id, "merged": command.merged}
        sent = NotificationSent.model_validate(about | delivered.model_dump())
        trace = conversation_trace(command.user_id)
        return delivered, Publish(sent, trace), *await self._ending(exchange, context)

    @on_command
    async def cancel(self, command: CancelAnswer) -> AnswerCancelled:
        """Stop the answer to a message; what came of it is kept."""
        return AnswerCancelled(cancelled=self._running.cancel(command.user_id, command.message_id))

    @on_command
    async def refresh(self, command: RefreshDialogue) -> None:
        """Read a talk anew before the next message, since somebody has changed what is kept of it."""
        self._open_talks.forget(command.user_id)

    @on_command
    async def end(self, command: EndDialogue, context: MessageContext) -> tuple[Ended | Publish, ...]:
        """Make a fragment of the buffer, if there is anything in it."""
        fragment_id = f"frag_{derived(context.message_id, 'end')}"
        fragment = await self._close(command.user_id, fragment_id, command.reason, silent_since=command.silent_since)
        if fragment is None:
            return (Ended(),)
        return Ended(fragment_id=fragment.fragment_id), Publish(fragment, conversation_trace(command.user_id))

    @on_command
    async def check_timeouts(self, command: CheckTimeouts) -> TimeoutsChecked:
        """End every dialogue that has been silent for too long, each in its user's order."""
        minutes = command.timeout_minutes
        timeout = self._timeout if minutes is None else timedelta(minutes=minutes)
        silent_since = (command.current_timestamp or self._clock()) - timeout - _LONGER
        expired = []
        async for user_id in self._talks.silent_since(silent_since):
            end = EndDialogue(user_id=user_id, reason="timeout", silent_since=silent_since)
            try:
                ask = partial(self._bus.request, end, trace=conversation_trace(user_id))
                ended = await in_id_scope(user_id, ask)
            except ReplyError as error:
                logger().warning("dialogue not ended yet", user_id=user_id, reason=str(error))
                continue
            if ended.fragment_id:
                expired.append(ExpiredDialogue(user_id=user_id, fragment_id=ended.fragment_id))
        return TimeoutsChecked(expired=tuple(expired))

    @background(pause_s=_TICK_S)
    async def tick(self) -> None:
        """Request a check of timeouts when it is due; a late one may expire, since another follows."""
        now = self._clock()
        if now >= self._next_check:
            self._next_check = now + self._check
            await self._bus.send(CheckTimeouts(), deadline=now + max(self._check, timedelta(seconds=10)))

    async def _answer(self, draft: DialogueMessage, on_piece: OnPiece, client: ClientTools | None) -> DialogueExchange:
        """Process a message; that it has been received is told while the model thinks."""
        telling: list[asyncio.Task[None]] = []

        async def tell_received(said: DialogueMessage) -> None:
            telling.append(asyncio.create_task(self._tell_received(said)))

        try:
            return await self._exchanges.process(draft, tell_received, on_piece, client)
        finally:
            await asyncio.gather(*telling)

    async def _tell_received(self, said: DialogueMessage) -> None:
        received = MessageReceived(
            user_id=said.user_id, message_id=said.message_id, kind=said.kind, preview=preview_of(said)
        )
        await self._bus.publish(received, trace=said.trace_id)

    async def _ending(self, exchange: DialogueExchange, context: MessageContext) -> list[Publish]:
        """Events of an exchange; one that fills the buffer ends a fragment."""
        answer = exchange.answer
        sent = MessageSent(
            user_id=answer.user_id,
            message_id=answer.message_id,
            kind=answer.kind,
            in_reply_to=exchange.said.message_id,
            preview=preview_of(answer),
            kem_ids=answer.kem_ids,
            model_tokens=exchange.model_tokens,
        )
        events = [Publish(sent, answer.trace_id)]
        if exchange.buffered is None or exchange.buffered >= self._most_messages:
            fragment_id = f"frag_{derived(context.message_id, 'size')}"
            fragment = await self._close(answer.user_id, fragment_id, "size", at_least=self._most_messages)
            events += [Publish(fragment, answer.trace_id)] if fragment else []
        return events

    async def _close(
        self,
        user_id: str,
        fragment_id: str,
        reason: Literal["timeout", "ended", "size"],
        *,
        at_least: int = 1,
        silent_since: datetime | None = None,
    ) -> DialogueFragment | None:
        """The buffer as a fragment under this id, also one stored before a crash; None where there is none to make."""
        if (stored := await self._talks.fragment(fragment_id)) is not None:
            return stored
        state = await self._talks.buffer(user_id)
        is_late = silent_since is None or (state is not None and state.last_activity <= silent_since)
        if state is None or len(state.buffer) < at_least or not is_late:
            return None
        fragment = DialogueFragment(
            fragment_id=fragment_id,
            user_id=user_id,
            message_ids=tuple(message.message_id for message in state.buffer),
            messages=state.buffer,
            started_at=state.buffer[0].time,
            ended_at=state.buffer[-1].time,
            reason=reason,
        )
        return await self._talks.keep_fragment(fragment)


async def _show(context: MessageContext, piece: str, *, outlives_asker: bool) -> None:
    """Stream a piece of the answer. Raises AskerLeft."""
    await context.say(piece)
    if context.asker_left and not outlives_asker:
        raise AskerLeft


async def _nobody(_said: object) -> None:
    """Discard it."""


def open_dialogue(context: WorkerContext) -> DialogueWorker:
    """The assistant, with the sub-agents that are installed here or that the settings name."""
    known = known_subagents(context.settings_as(FleetSettings), installed_workers().checked())
    return DialogueWorker(context, known_subagents=known)
