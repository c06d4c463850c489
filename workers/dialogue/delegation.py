"""Delegation of tasks to sub-agents, and the sub-agents that are known."""

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from itertools import chain, groupby
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from agents.configuration.validation import InvalidFile, read_file
from agents.dialogue.agent import DelegationRound
from agents.dialogue.delegation import (
    UnreadableCall,
    delegation_tool,
    heard,
    subagent_failed,
    subagent_of,
    task_of,
    unknown_subagent,
    unreadable_call,
)
from agents.dialogue.task_tools import TASK_TOOLS
from agents.mcp_servers.tools import McpTools
from agents.models.conversation import last_complete
from agents.models.language_model import ModelMessage, Tool, ToolCall
from agents.models.recorded import subject_of_calls
from agents.present import Present
from agents.subagents.files import open_subagent
from bus_schema.dialogue import MAX_MESSAGE_CHARS, conversation_trace
from bus_schema.history import ChatMessage, HistoryMessage, SubagentName, sanitise_text, subagent_key
from bus_schema.ids import derived
from bus_schema.replies import Code
from bus_schema.subagent import (
    LAST_POSITION,
    MAX_SHOWN_CHARS,
    MAX_TASK_CHARS,
    SERVICE_PREFIX,
    CancelTask,
    ExecuteTask,
    SubagentCompletion,
    SubagentDelegation,
    TaskDone,
    TaskStep,
    service_of,
)
from config.settings import FleetSettings
from language.words import language_of
from mindbus.bus.client import Client
from mindbus.bus.context import current_message
from mindbus.errors import BusUnavailable, NoReply, ReplyError, Unroutable
from mindbus.logs import logger
from mindbus.registry import WorkerRegistry
from mindbus.sdk.conversations import HistoryClient
from mindbus.sdk.requests import in_id_scope
from workers.dialogue.task_tools import TaskTools
from workers.dialogue.transcript import ExchangeRecord

# What the master needs of its own asker's patience for an answer of its own.
_FOR_THE_ANSWER_S = 10.0
# The sub-agent gives up first, so that whoever waits hears why.
_GRACE_S = 2.0
_WINDOW = 50
_MOST_SHOWN = 200


class SubagentFailed(Exception):
    """The sub-agent is not there, has failed, or takes too long."""


@dataclass(frozen=True)
class Subagents:
    """Whom the master may turn to, by name, each with what it is good for."""

    known: Mapping[str, str]
    bus: Client
    clock: Callable[[], datetime]
    timeout_s: float
    mcp: McpTools = field(default_factory=lambda: McpTools({}))

    @property
    def tools(self) -> Sequence[Tool]:
        """Tools of the master: one for each sub-agent, then those of the user's tasks, then those of MCP servers."""
        return [*self._own_tools, *self.mcp.for_answer().tools]

    @cached_property
    def _own_tools(self) -> Sequence[Tool]:
        return [*(delegation_tool(name, about) for name, about in self.known.items()), *TASK_TOOLS]

    async def ask(self, name: str, order: ExecuteTask) -> TaskDone:
        """Give a sub-agent a task and report its progress as events. Raises SubagentFailed; BusUnavailable."""
        place = {"chat_id": order.chat_id, "subagent": name, "delegation_id": order.delegation_id}
        told = SubagentDelegation(**place, position=0, time=self.clock(), task=order.task[:MAX_SHOWN_CHARS])
        await self._tell(told)
        try:
            return await self._done(name, order)
        except Unroutable:
            why = f"subagent-{name} is not running"
        except ReplyError as error:
            why = error.message
            if isinstance(error, NoReply):
                await self._cancel(name, order)
        failure = SubagentCompletion(
            **place, position=LAST_POSITION, time=self.clock(), response=why[:MAX_SHOWN_CHARS], is_error=True
        )
        await self._tell(failure)
        raise SubagentFailed(why)

    async def _done(self, name: str, order: ExecuteTask) -> TaskDone:
        timeout_s = self._patience_s()
        if timeout_s <= 0:
            raise ReplyError(Code.EXPIRED, "no time is left for it")
        deadline = self.clock() + timedelta(seconds=timeout_s - min(_GRACE_S, timeout_s / 4))
        timed, trace = order.model_copy(update={"deadline": deadline}), conversation_trace(order.chat_id)
        # Each time under an id of its own, so that whoever asks again after a crash is answered, not its dead
        # predecessor; what is asked again is known by the delegation's id.
        return await in_id_scope(
            secrets.token_hex(8),
            lambda: self.bus.request(
                timed, to=service_of(name), timeout_s=timeout_s, trace=trace, step=subject_of_calls()
            ),
        )

    def _patience_s(self) -> float:
        context = current_message()
        ends_at = context.envelope.expirytime if context else None
        if ends_at is None:
            return self.timeout_s
        return min(self.timeout_s, (ends_at - self.clock()).total_seconds() - _FOR_THE_ANSWER_S)

    async def _cancel(self, name: str, order: ExecuteTask) -> None:
        """Cancel an unanswered task; a sub-agent that cannot be reached ends it at its deadline."""
        with suppress(BusUnavailable):
            cancel = CancelTask(delegation_id=order.delegation_id, chat_id=order.chat_id)
            await in_id_scope(order.delegation_id, lambda: self.bus.send(cancel, to=service_of(name)))

    async def _tell(self, event: SubagentDelegation | SubagentCompletion) -> None:
        message_id = derived(event.delegation_id, event.wire.type, event.position)
        await self.bus.publish(event, trace=conversation_trace(event.chat_id), message_id=message_id)


class DelegationRounds:
    """The master's helpers, for as long as it answers one message.

    `_subagent_contexts` is what spec 001 calls the memory within a request: loaded from the histories when a
    sub-agent is first asked, then grown by every task with its answer, so that the next call sees them. What one answer
    of the model gives to several sub-agents is done side by side; several tasks for the same one are done in the order
    of the calls, since each may build upon the one before.
    """

    choice: str | None = None

    def __init__(
        self, subagents: Subagents, histories: HistoryClient, record: ExchangeRecord, present: Present, most_rounds: int
    ) -> None:
        self._subagents, self._histories, self._record = subagents, histories, record
        self._tasks = TaskTools(subagents.bus, subagents.clock, record.said, present)
        self._language = language_of(record.said.content or "")
        self._subagent_contexts: dict[str, list[ChatMessage]] = {}
        self._done_before: dict[str, str] = {}
        self._tools, self._mcp = subagents.tools, subagents.mcp.for_answer()
        self.most_rounds = most_rounds

    @property
    def tools(self) -> Sequence[Tool]:
        """Those of the answer; none once the model goes round in circles."""
        return () if self._tasks.goes_round else self._tools

    @property
    def completed(self) -> Sequence[DelegationRound]:
        """Rounds completed before a crash."""
        return self._record.rounds

    async def delegate(self, number: int, text: str, calls: Sequence[ToolCall]) -> DelegationRound:
        """Carry out the model's calls; the round is stored before the model is shown it."""
        numbered = sorted(enumerate(calls), key=_whom)
        together = [list(group) for _, group in groupby(numbered, key=_whom)]
        answered = await asyncio.gather(*(self._one_by_one(number, group) for group in together))
        answers = dict(chain.from_iterable(answered))
        results = tuple(
            ModelMessage(role="tool", content=answers[place], tool_call_id=call.id, name=call.name)
            for place, call in enumerate(calls)
        )
        said = sanitise_text(text)[:MAX_MESSAGE_CHARS]
        completed = DelegationRound(ModelMessage(role="assistant", content=said, tool_calls=tuple(calls)), results)
        await self._record.add_round(completed)
        return completed

    async def _one_by_one(self, number: int, calls: Sequence[tuple[int, ToolCall]]) -> list[tuple[int, str]]:
        return [(place, await self._answer(f"{number}.{place}", call)) for place, call in calls]

    async def _answer(self, place: str, call: ToolCall) -> str:
        """Result of one call, for the model."""
        if call.name in self._tasks.names:
            return await self._tasks.use(call, place)
        if call.name in self._mcp:
            return await self._mcp.result(call)
        name = subagent_of(call.name)
        if name not in self._subagents.known:
            return unknown_subagent(name, self._subagents.known, self._language)
        try:
            task = task_of(call)[:MAX_TASK_CHARS]
        except UnreadableCall as error:
            return unreadable_call(str(error), self._language)
        # Another task in the same place is another delegation: a model that is asked again may want something else.
        delegation_id = f"dlg_{derived(self._record.answer_id, place, name, task)}"
        try:
            return heard(name, task, await self._delegate(name, task, delegation_id), self._language)
        except SubagentFailed as error:
            logger().warning("delegation failed", chat=self._record.said.user_id, subagent=name, reason=str(error))
            return subagent_failed(name, str(error), self._language)

    async def _delegate(self, name: str, task: str, delegation_id: str) -> str:
        context = await self._context(name)
        done_before = self._done_before.get(delegation_id)
        if done_before is not None:
            return done_before
        order = ExecuteTask(
            task=task,
            chat_id=self._record.said.user_id,
            delegation_id=delegation_id,
            context=self._record.context,
            history=last_complete(context, _MOST_SHOWN),
        )
        done = await self._subagents.ask(name, order)
        await self._keep(name, order, done)
        return done.response

    async def _context(self, name: str) -> list[ChatMessage]:
        """Messages exchanged with a sub-agent so far, in this request and before it."""
        if name not in self._subagent_contexts:
            key = subagent_key(name, self._record.said.user_id)
            if self._record.is_resumed:
                stored = await self._histories.stored_messages(key)
                self._done_before |= {
                    each.id.rpartition(".")[0]: each.content
                    for each in stored
                    if each.role == "assistant" and each.content and not each.tool_calls
                }
                self._subagent_contexts[name] = list(last_complete(stored, _WINDOW))
            else:
                self._subagent_contexts[name] = await self._histories.window(key)
        return self._subagent_contexts[name]

    async def _keep(self, name: str, order: ExecuteTask, done: TaskDone) -> None:
        question, answer = TaskStep(role="user", content=order.task), TaskStep(role="assistant", content=done.response)
        said = [question, *done.steps, answer]
        now = self._subagents.clock()
        kept = [
            HistoryMessage(id=f"{order.delegation_id}.{place}", timestamp=now, **each.model_dump())
            for place, each in enumerate(said)
        ]
        await self._histories.append(subagent_key(name, order.chat_id), kept)
        self._subagent_contexts[name] += [ChatMessage.model_validate(each.model_dump()) for each in said]


def _whom(numbered: tuple[int, ToolCall]) -> str:
    return subagent_of(numbered[1].name)


class SubagentsFile(BaseModel):
    """Sub-agents that run elsewhere, each with what it is good for."""

    model_config = ConfigDict(extra="forbid")
    subagents: dict[SubagentName, str] = Field(min_length=1)


class InvalidSubagentsFile(InvalidFile):
    """The file of sub-agents cannot be used; each line says where, what is wrong, what to do."""


def known_subagents(settings: FleetSettings, workers: WorkerRegistry) -> dict[str, str]:
    """Descriptions by name. Raises InvalidSubagentsFile, OSError."""
    installed = {
        name.removeprefix(SERVICE_PREFIX): entry
        for name, entry in workers.entries.items()
        if name.startswith(SERVICE_PREFIX)
    }
    # MindBus's own are described by their files, so that their libraries need not be imported.
    known = {
        name: open_subagent(name).description if entry.is_own else str(getattr(entry.load(), "description", ""))
        for name, entry in installed.items()
    }
    if settings.subagents is not None:
        file = Path(settings.subagents)
        known |= read_file(file.read_bytes(), str(file), SubagentsFile, InvalidSubagentsFile).subagents
    return known
