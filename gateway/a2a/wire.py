"""Values of A2A: text parts, messages, statuses, and the errors of the bus in its terms."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from contextlib import aclosing, contextmanager
from datetime import datetime
from functools import wraps
from hashlib import sha256
from typing import Any, ParamSpec, TypeVar

from a2a.types import Artifact, Message, Part, Role, Task, TaskState, TaskStatus
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InternalError,
    InvalidParamsError,
    TaskNotFoundError,
)
from google.protobuf.timestamp_pb2 import Timestamp
from pydantic import ValidationError

from bus_schema.envelope import explain
from bus_schema.replies import Code
from mindbus.errors import MindBusError, ReplyError
from mindbus.redaction import without_secrets

P = ParamSpec("P")
T = TypeVar("T")

_UNSEEN = frozenset({Code.NOT_FOUND, Code.UNAUTHORIZED})
_WRONG = frozenset({Code.INVALID, Code.CONFLICT, Code.TOO_LARGE})
OVER = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_REJECTED,
    }
)
# A stream ends here: it goes on once the client has said something.
PAUSES = OVER | {TaskState.TASK_STATE_INPUT_REQUIRED}


def texts_of(message: Message) -> list[str]:
    """The texts of a message, of text files as well. Raises ContentTypeNotSupportedError for anything else."""
    return [_text_of(part) for part in message.parts]


def _text_of(part: Part) -> str:
    kind = part.WhichOneof("content")
    if kind == "text":
        return part.text
    if kind == "raw" and part.media_type.startswith("text/"):
        return part.raw.decode(errors="replace")
    raise ContentTypeNotSupportedError(f"only text is read, no {part.media_type or kind}")


def message_of(text: str, message_id: str, task: Task | None = None, role: Role = Role.ROLE_AGENT) -> Message:
    """A message with one text."""
    place = {"task_id": task.id, "context_id": task.context_id} if task else {}
    return Message(message_id=message_id, role=role, parts=[Part(text=text)], **place)


def text_artifact(artifact_id: str, name: str, text: str, media_type: str = "text/markdown") -> Artifact:
    """An artifact with one text."""
    return Artifact(artifact_id=artifact_id, name=name, parts=[Part(text=text, media_type=media_type)])


def status_of(state: TaskState, at: datetime | None, words: str = "", task_id: str = "") -> TaskStatus:
    """A status, with words for people."""
    status = TaskStatus(state=state)
    if at is not None:
        status.timestamp.CopyFrom(_timestamp(at))
    if words:
        status.message.CopyFrom(message_of(words, f"{task_id}-status"))
    return status


def id_for(kind: str, identity: str, message_id: str) -> str:
    """Id of the work that a client's message asks for, so that a message sent again asks for nothing new."""
    return f"{kind}_{sha256(f'{identity}/{message_id}'.encode()).hexdigest()[:40]}"


@contextmanager
def _in_terms_of_a2a() -> Iterator[None]:
    try:
        yield
    except ValidationError as invalid:
        raise InvalidParamsError(explain(invalid)) from invalid
    except MindBusError as error:
        raise _translated(error) from error


def _translated(error: MindBusError) -> A2AError:
    code = error.code
    text = without_secrets(error.message if isinstance(error, ReplyError) else str(error))
    if code in _UNSEEN:
        return TaskNotFoundError(text if code is Code.NOT_FOUND else None)
    return InvalidParamsError(text) if code in _WRONG else InternalError(text)


def answering(method: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The method with the errors of the bus as those of A2A."""

    @wraps(method)
    async def answer(*args: P.args, **kwargs: P.kwargs) -> T:
        with _in_terms_of_a2a():
            return await method(*args, **kwargs)

    return answer


def streaming(method: Callable[P, AsyncGenerator[T]]) -> Callable[P, AsyncGenerator[T]]:
    """The generator with the errors of the bus as those of A2A."""

    @wraps(method)
    async def stream(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T]:
        with _in_terms_of_a2a():
            async with aclosing(method(*args, **kwargs)) as events:
                async for event in events:
                    yield event

    return stream


def _timestamp(at: datetime) -> Any:
    stamp = Timestamp()
    stamp.FromDatetime(at)
    return stamp
