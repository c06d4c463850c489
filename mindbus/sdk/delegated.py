"""One task that was given to a sub-agent: what it is about, what is told of its progress."""

from collections.abc import Callable, Sequence
from datetime import datetime

from bus_schema.artifacts import ArtifactRef
from bus_schema.dialogue import conversation_trace
from bus_schema.history import ChatMessage, HistoryToolCall
from bus_schema.ids import derived
from bus_schema.messages import Event
from bus_schema.subagent import (
    MAX_SHOWN_CHARS,
    MAX_STEPS,
    ExecuteTask,
    SubagentAssistantWithTools,
    SubagentCompletion,
    SubagentTool,
    SubagentToolResult,
    TaskStep,
)
from mindbus.bus.client import Client
from mindbus.sdk.artifacts import Artifacts

_STATUS_CHARS = 280


class Delegated:
    """Whatever is told here is heard by people who watch, in its order; what tools were asked is kept as steps."""

    def __init__(
        self, order: ExecuteTask, name: str, bus: Client, artifacts: Artifacts, clock: Callable[[], datetime]
    ) -> None:
        self._order, self._name, self._bus, self._artifacts, self._clock = order, name, bus, artifacts, clock
        self.trace = conversation_trace(order.chat_id)
        self.steps: list[TaskStep] = []
        # The delegation itself, told by whoever delegates, is at 0.
        self._told = 0

    @property
    def task(self) -> str:
        """What to do."""
        return self._order.task

    @property
    def chat_id(self) -> str:
        """For whom."""
        return self._order.chat_id

    @property
    def depth(self) -> int:
        """How many delegations led here; whoever delegates on says one more."""
        return self._order.depth

    @property
    def history(self) -> Sequence[ChatMessage]:
        """What was said with this sub-agent before, in this chat."""
        return self._order.history

    @property
    def context(self) -> Sequence[ChatMessage]:
        """The talk with the user out of which the task comes."""
        return self._order.context

    @property
    def has_room(self) -> bool:
        """Whether another round of tools can be kept."""
        return len(self.steps) < MAX_STEPS // 2

    async def called(self, calls: Sequence[HistoryToolCall], content: str = "") -> None:
        """Tools are about to be used; each of them answers with `answered` afterwards, in the same order."""
        self.steps.append(TaskStep(role="assistant", content=content or None, tool_calls=tuple(calls)))
        told = SubagentAssistantWithTools(**self._place(), content=content[:MAX_SHOWN_CHARS], tool_calls=tuple(calls))
        await self._tell(told)

    async def working(self, tool: str, status: str) -> None:
        """What a tool is doing, for people who watch; nothing is kept of it."""
        await self._tell(SubagentTool(**self._place(), name=tool, status=" ".join(status.split())[:_STATUS_CHARS]))

    async def answered(self, call: HistoryToolCall, content: str, *, is_error: bool = False) -> str:
        """A tool's result, as much of it as a model is shown; what is too long lies in an artifact, whole.

        Raises BufferFull; OSError where the disk fails.
        """
        name, ref = call.function.name, None
        if len(content) > MAX_SHOWN_CHARS:
            ref = await self._put(call, content)
            note = f"\n[… {len(content)} characters in all: artifact {ref.artifact_id}]"
            content = content[: MAX_SHOWN_CHARS - len(note)] + note
        self.steps.append(TaskStep(role="tool", content=content, tool_call_id=call.id, name=name, ref=ref))
        result = SubagentToolResult(
            **self._place(), tool_call_id=call.id, name=name, content=content, ref=ref, is_error=is_error
        )
        await self._tell(result)
        return content

    async def completed(self, response: str) -> None:
        """The answer has been found."""
        await self._tell(SubagentCompletion(**self._place(), response=response[:MAX_SHOWN_CHARS]))

    async def _put(self, call: HistoryToolCall, content: str) -> ArtifactRef:
        # Done again after a crash, the tool may have answered differently, which is another artifact.
        number = derived(self._order.delegation_id, call.id, content).replace("-", "")
        put = await self._artifacts.put(
            content.encode(),
            artifact_type="tool_result",
            artifact_id=f"art_{number}",
            content_type="text/plain",
            trace=self.trace,
        )
        return put.ref

    def _place(self) -> dict[str, object]:
        self._told += 1
        return {
            "chat_id": self._order.chat_id,
            "subagent": self._name,
            "delegation_id": self._order.delegation_id,
            "position": self._told,
            "time": self._clock(),
        }

    async def _tell(self, event: Event) -> None:
        message_id = derived(self._order.delegation_id, event.wire.type, self._told)
        await self._bus.publish(event, trace=self.trace, message_id=message_id)
