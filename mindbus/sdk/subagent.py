"""Sub-agents: the base class, and the task that one is given."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from cachetools import TTLCache

from bus_schema.artifacts import ArtifactRef
from bus_schema.dialogue import conversation_trace
from bus_schema.history import ChatId, ChatMessage, HistoryToolCall, sanitise_text
from bus_schema.ids import derived
from bus_schema.messages import Event, Nothing
from bus_schema.replies import Code
from bus_schema.subagent import (
    MAX_SHOWN_CHARS,
    MAX_STEPS,
    MAX_TASK_CHARS,
    SERVICE_PREFIX,
    CancelTask,
    ExecuteTask,
    SubagentAssistantWithTools,
    SubagentCompletion,
    SubagentTool,
    SubagentToolResult,
    TaskDone,
    TaskStep,
)
from mindbus.bus.client import Client
from mindbus.bus.context import MessageContext, current_message
from mindbus.bus.handlers import on_command
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import PermanentFailure, Rejected
from mindbus.logs import logger
from mindbus.sdk.artifacts import Artifacts, open_artifacts
from mindbus.tasks import end

_STATUS_CHARS = 280


class Delegated:
    """A delegated task; its progress is published in order, tool calls and results are kept as steps."""

    def __init__(
        self, order: ExecuteTask, name: str, bus: Client, artifacts: Artifacts, clock: Callable[[], datetime]
    ) -> None:
        self._order, self._name, self._bus, self._artifacts, self._clock = order, name, bus, artifacts, clock
        self.trace = conversation_trace(order.chat_id)
        self.steps: list[TaskStep] = []
        # Position 0 is the delegation itself, published by the delegating agent.
        self._position = 0

    @property
    def task(self) -> str:
        return self._order.task

    @property
    def delegation_id(self) -> str:
        """Id of the delegation, however often it is delivered."""
        return self._order.delegation_id

    @property
    def chat_id(self) -> str:
        """The chat in whose name it is done."""
        return self._order.chat_id

    @property
    def depth(self) -> int:
        """Number of delegations that led here; one more for a delegation of its own."""
        return self._order.depth

    @property
    def history(self) -> Sequence[ChatMessage]:
        return self._order.history

    @property
    def context(self) -> Sequence[ChatMessage]:
        """The conversation with the user that the task comes from."""
        return self._order.context

    @property
    def has_room(self) -> bool:
        """Whether another round of tools can be kept."""
        return len(self.steps) < MAX_STEPS // 2

    async def report_calls(self, calls: Sequence[HistoryToolCall], content: str = "") -> None:
        """Report tool calls before they run; report each result with `report_result`, in the same order."""
        content = sanitise_text(content)
        self.steps.append(TaskStep(role="assistant", content=content or None, tool_calls=tuple(calls)))
        message = SubagentAssistantWithTools(
            **self._place(), content=content[:MAX_SHOWN_CHARS], tool_calls=tuple(calls)
        )
        await self._publish(message)

    async def working(self, tool: str, status: str) -> None:
        """Publish what a tool is doing; it is not kept."""
        await self._publish(SubagentTool(**self._place(), name=tool, status=" ".join(status.split())[:_STATUS_CHARS]))

    async def report_result(self, call: HistoryToolCall, content: str, *, is_error: bool = False) -> str:
        """Report a tool's result; returns what a model is shown of it. A long result is put whole into an artifact.

        Raises BufferFull; OSError where the disk fails.
        """
        name, ref, content = call.function.name, None, sanitise_text(content)
        if len(content) > MAX_SHOWN_CHARS:
            ref = await self._put(call.id, "tool_result", content)
            note = f"\n[… {len(content)} characters in all: artifact {ref.artifact_id}]"
            content = content[: MAX_SHOWN_CHARS - len(note)] + note
        self.steps.append(TaskStep(role="tool", content=content, tool_call_id=call.id, name=name, ref=ref))
        result = SubagentToolResult(
            **self._place(), tool_call_id=call.id, name=name, content=content, ref=ref, is_error=is_error
        )
        await self._publish(result)
        return content

    async def report_completion(self, response: str) -> None:
        """Report the answer; a long one is put whole into an artifact.

        Raises BufferFull; OSError where the disk fails.
        """
        is_long = len(response) > MAX_SHOWN_CHARS
        ref = await self._put("answer", "subagent_answer", response) if is_long else None
        await self._publish(SubagentCompletion(**self._place(), response=response[:MAX_SHOWN_CHARS], ref=ref))

    async def _put(self, call_id: str, artifact_type: str, content: str) -> ArtifactRef:
        # Repeated after a crash, the tool may return another result, which is another artifact.
        number = derived(self._order.delegation_id, call_id, content).replace("-", "")
        put = await self._artifacts.put(
            content.encode(),
            artifact_type=artifact_type,
            artifact_id=f"art_{number}",
            content_type="text/plain",
            trace=self.trace,
        )
        return put.ref

    def _place(self) -> dict[str, object]:
        self._position += 1
        return {
            "chat_id": self._order.chat_id,
            "subagent": self._name,
            "delegation_id": self._order.delegation_id,
            "position": self._position,
            "time": self._clock(),
        }

    async def _publish(self, event: Event) -> None:
        message_id = derived(self._order.delegation_id, event.wire.type, self._position)
        await self._bus.publish(event, trace=self.trace, message_id=message_id)


MAX_DEPTH = 3
_RESULTS_KEPT = timedelta(hours=1)
_MAX_RESULTS = 1000


class SubAgent(Worker, ABC):
    """A worker with a name `subagent-…`, a `description` for the master and an `execute` method.

    A repeated delegation, as after a crash of the master, waits for the running one or gets its result: it is not
    executed twice as long as this process lives. `execute` is cancelled at the deadline or by CancelTask.
    """

    description: ClassVar[str] = ""
    concurrency = 16
    attempts = 3

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.name and not cls.name.startswith(SERVICE_PREFIX):
            raise TypeError(f"a sub-agent's name begins with {SERVICE_PREFIX}, by which it is known: not {cls.name!r}")

    def __init__(self, context: WorkerContext) -> None:
        self.bus = context.bus.acting_as(self.identity, service=self.name)
        self.settings, self.clock = context.settings, context.clock
        self.artifacts = open_artifacts(self.bus, context.settings, context.clock)
        # By chat and delegation: the same id in another chat is other work.
        self._at_work: dict[tuple[ChatId, str], asyncio.Task[TaskDone]] = {}
        self._delegated_by: dict[asyncio.Task[TaskDone], str] = {}
        self._done: TTLCache[tuple[ChatId, str], TaskDone] = TTLCache(_MAX_RESULTS, _RESULTS_KEPT.total_seconds())

    @abstractmethod
    async def execute(self, work: Delegated) -> str:
        """The response to a task; tool calls on the way are reported to `work`."""

    @property
    def identity(self) -> str:
        """Identity of an agent, not of a service."""
        return f"agent.{self.name}"

    async def start(self) -> None:
        await self.artifacts.start()

    async def stop(self) -> None:
        for task in list(self._at_work.values()):
            await end(task)
        await self.artifacts.stop()

    @on_command
    async def execute_task(self, order: ExecuteTask, context: MessageContext) -> TaskDone:
        """Execute the task, unless it has been executed."""
        if order.depth > MAX_DEPTH:
            raise Rejected(Code.INVALID, f"{order.depth} delegations deep: sub-agents go in a circle; do it yourself")
        key = order.chat_id, order.delegation_id
        done = self._done.get(key)
        if done is not None:
            return done
        task = self._at_work.get(key)
        if task is None:
            task = asyncio.create_task(self._do(order), name=f"delegation {order.delegation_id}")
            self._at_work[key], self._delegated_by[task] = task, context.owner
            task.add_done_callback(lambda done: (self._at_work.pop(key, None), self._delegated_by.pop(done)))
        # Several requests may wait for the same task; the first may be gone.
        await asyncio.wait([task])
        if task.cancelled():
            raise Rejected(Code.EXPIRED, "the delegation was cancelled")
        return task.result()

    @on_command
    async def cancel_task(self, command: CancelTask, context: MessageContext) -> Nothing:
        """Cancel what the requester has delegated; what is over, or was never begun, needs no cancelling."""
        chats = {chat for chat, _ in self._at_work} if command.chat_id is None else {command.chat_id}
        running = [task for chat in chats if (task := self._at_work.get((chat, command.delegation_id)))]
        # Gateways of earlier releases send it as themselves, having checked whose task it is.
        may_any = context.is_operator or context.owner == "svc.gateway"
        own = [task for task in running if may_any or self._delegated_by[task] == context.owner]
        if running and not own:
            raise Rejected(Code.UNAUTHORIZED, "only whoever has delegated this, or an operator, cancels it")
        for task in own:
            await end(task)
        return Nothing()

    async def _do(self, order: ExecuteTask) -> TaskDone:
        work = Delegated(order, self.name.removeprefix(SERVICE_PREFIX), self.bus, self.artifacts, self.clock)
        left_s = self.settings.subagent_timeout_s
        if order.deadline is not None:
            context = current_message()
            deadline = context.on_own_clock(order.deadline) if context else order.deadline
            left_s = min(left_s, (deadline - self.clock()).total_seconds())
        limit = asyncio.timeout(left_s)
        try:
            async with limit:
                response = sanitise_text(await self.execute(work)).strip()[:MAX_TASK_CHARS]
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise Rejected(Code.EXPIRED, f"not done within {left_s:.3g} s") from error
        if not response:
            raise PermanentFailure(f"{self.name} has returned no response")
        await work.report_completion(response)
        done = self._done[order.chat_id, order.delegation_id] = TaskDone(response=response, steps=tuple(work.steps))
        logger().info("delegation done", worker=self.name, chat=order.chat_id, tool_calls=done.tool_calls_made)
        return done
