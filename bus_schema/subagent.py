"""Commands and events of sub-agents (spec 001)."""

from pydantic import AwareDatetime, Field

from bus_schema.artifacts import ArtifactRef
from bus_schema.history import ChatId, ChatMessage, HistoryToolCall, SubagentName
from bus_schema.messages import Command, Event, Nothing, Value

MAX_TASK_CHARS = 32_000
MAX_SHOWN_CHARS = 4000
MAX_STEPS = 190
# Where a completion stands that is told by whoever waited in vain: behind all that the sub-agent may have told.
LAST_POSITION = 1_000_000
SERVICE_PREFIX = "subagent-"


def service_of(name: str) -> str:
    """Service name of a sub-agent."""
    return f"{SERVICE_PREFIX}{name}"


class TaskStep(ChatMessage):
    """A message produced on the way to the answer; `ref` points to content too long for a message."""

    ref: ArtifactRef | None = None


class TaskDone(Value):
    """The sub-agent's answer, with the tool calls that led to it, each with its result."""

    response: str = Field(min_length=1, max_length=MAX_TASK_CHARS)
    steps: tuple[TaskStep, ...] = Field(default=(), max_length=MAX_STEPS)

    @property
    def tool_calls_made(self) -> int:
        """Number of tool results."""
        return sum(step.role == "tool" for step in self.steps)


class ExecuteTask(Command[TaskDone], domain="subagent", action="execute_task", service=None):
    """Execute a task for a chat; `history` is the conversation with this sub-agent, `context` the one with the user.

    The caller sets the deadline, past which the work is dropped. A repeated delegation is not executed again.
    """

    task: str = Field(min_length=1, max_length=MAX_TASK_CHARS)
    chat_id: ChatId
    delegation_id: str = Field(min_length=1, max_length=128)
    context: tuple[ChatMessage, ...] = Field(default=(), max_length=200)
    history: tuple[ChatMessage, ...] = Field(default=(), max_length=400)
    depth: int = Field(default=1, ge=1, le=8)
    deadline: AwareDatetime | None = None


class CancelTask(Command[Nothing], domain="subagent", action="cancel_task", service=None):
    """Cancel a delegation of one's own, or as an operator any, if it is still running; without a chat, in any."""

    delegation_id: str = Field(min_length=1, max_length=128)
    chat_id: ChatId | None = None


class SubagentEvent(Event):
    """Base of sub-agent events: sub-agent, chat, delegation; `position` orders them within a delegation."""

    chat_id: ChatId
    subagent: SubagentName
    delegation_id: str
    position: int = Field(ge=0)
    time: AwareDatetime


class SubagentDelegation(SubagentEvent, topic="subagent", name="subagent_delegation"):
    """The master has given a task to a sub-agent."""

    task: str = Field(max_length=MAX_SHOWN_CHARS)


class SubagentAssistantWithTools(SubagentEvent, topic="subagent", name="subagent_assistant_with_tools"):
    """The sub-agent has called tools."""

    content: str = Field(default="", max_length=MAX_SHOWN_CHARS)
    tool_calls: tuple[HistoryToolCall, ...]


class SubagentToolResult(SubagentEvent, topic="subagent", name="subagent_tool_result"):
    """A tool has returned; content that is too long is at `ref`."""

    tool_call_id: str
    name: str
    content: str = Field(max_length=MAX_SHOWN_CHARS)
    ref: ArtifactRef | None = None
    is_error: bool = False


class SubagentCompletion(SubagentEvent, topic="subagent", name="subagent_completion"):
    """The sub-agent has answered, or has failed (`is_error`); an answer that is too long is in full at `ref`."""

    response: str = Field(max_length=MAX_SHOWN_CHARS)
    is_error: bool = False
    ref: ArtifactRef | None = Field(default=None, exclude_if=lambda ref: ref is None)


class SubagentTool(SubagentEvent, topic="subagent", name="subagent_tool"):
    """A tool is running; for people who watch, not part of any history."""

    name: str
    status: str = Field(max_length=280)
