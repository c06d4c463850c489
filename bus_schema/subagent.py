"""What is said to a sub-agent, plus what is told of its work (spec 001)."""

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from bus_schema.artifacts import ArtifactRef
from bus_schema.history import ChatId, ChatMessage, HistoryToolCall, SubagentName
from bus_schema.messages import Command, Event, Nothing

MAX_TASK_CHARS = 32_000
MAX_SHOWN_CHARS = 4000
MAX_STEPS = 190
# Where a completion stands that is told by whoever waited in vain: behind all that the sub-agent may have told.
LAST_POSITION = 1_000_000
SERVICE_PREFIX = "subagent-"


def service_of(name: str) -> str:
    """The service that a sub-agent listens as."""
    return f"{SERVICE_PREFIX}{name}"


class TaskStep(ChatMessage):
    """Something that was said on the way to the answer; `ref` is to what was too long to be said."""

    ref: ArtifactRef | None = None


class TaskDone(BaseModel):
    """What the sub-agent answers, with the calls of tools that led there, each with its result."""

    model_config = ConfigDict(frozen=True)
    response: str = Field(min_length=1, max_length=MAX_TASK_CHARS)
    steps: tuple[TaskStep, ...] = Field(default=(), max_length=MAX_STEPS)

    @property
    def tool_calls_made(self) -> int:
        """How many tools have answered."""
        return sum(step.role == "tool" for step in self.steps)


class ExecuteTask(Command[TaskDone], domain="subagent", action="execute_task", service=None):
    """Do a task for a chat; `history` is what was said with this sub-agent before, `context` the talk with the user.

    Whoever asks says by when: past the deadline the work is dropped. The same delegation again is not done again.
    """

    task: str = Field(min_length=1, max_length=MAX_TASK_CHARS)
    chat_id: ChatId
    delegation_id: str = Field(min_length=1, max_length=128)
    context: tuple[ChatMessage, ...] = Field(default=(), max_length=200)
    history: tuple[ChatMessage, ...] = Field(default=(), max_length=400)
    depth: int = Field(default=1, ge=1, le=8)
    deadline: AwareDatetime | None = None


class CancelTask(Command[Nothing], domain="subagent", action="cancel_task", service=None):
    """Drop a delegation, if it is still at work: nobody waits for it any more."""

    delegation_id: str = Field(min_length=1, max_length=128)


class SubagentEvent(BaseModel):
    """Which sub-agent, in which chat, in which delegation; `position` is the place within that delegation."""

    model_config = ConfigDict(frozen=True)
    chat_id: ChatId
    subagent: SubagentName
    delegation_id: str
    position: int = Field(ge=0)
    time: AwareDatetime


class SubagentDelegation(SubagentEvent, Event, topic="subagent", name="subagent_delegation"):
    """The master has given a task to a sub-agent."""

    task: str = Field(max_length=MAX_SHOWN_CHARS)


class SubagentAssistantWithTools(SubagentEvent, Event, topic="subagent", name="subagent_assistant_with_tools"):
    """The sub-agent has called tools."""

    content: str = Field(default="", max_length=MAX_SHOWN_CHARS)
    tool_calls: tuple[HistoryToolCall, ...]


class SubagentToolResult(SubagentEvent, Event, topic="subagent", name="subagent_tool_result"):
    """A tool has answered; what was too long is at `ref`."""

    tool_call_id: str
    name: str
    content: str = Field(max_length=MAX_SHOWN_CHARS)
    ref: ArtifactRef | None = None
    is_error: bool = False


class SubagentCompletion(SubagentEvent, Event, topic="subagent", name="subagent_completion"):
    """The sub-agent has answered, or has failed for good, which the master is told in the same words."""

    response: str = Field(max_length=MAX_SHOWN_CHARS)
    is_error: bool = False


class SubagentTool(SubagentEvent, Event, topic="subagent", name="subagent_tool"):
    """A tool is at work, for people who watch; no history has it."""

    name: str
    status: str = Field(max_length=280)
