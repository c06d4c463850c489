"""Decorators of the methods that receive messages, and the addressed items that such a method may return."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, overload

from pydantic import BaseModel

from bus_schema.messages import Cause, Command, Event
from mindbus.bus.context import MessageContext


@dataclass(frozen=True, slots=True)
class Send:
    """A command that a handler returns, with its target; unnamed coordinates are those of the handled message."""

    command: Command[Any]
    service: str | None = None
    trace: str | None = None
    step: str | None = None
    attempt: int | None = None


@dataclass(frozen=True, slots=True)
class Publish:
    """An event that a handler returns, published in another trace than that of the handled message.

    With a `cause` it belongs to the story of that instead of the handled message's.
    """

    event: Event
    trace: str | None = None
    step: str | None = None
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class PublishTo:
    """An event that a handler returns for one subscriber alone, whose queue the client keeps."""

    event: Event
    subscriber: str


Publishable = Command[Any] | Event | Send | Publish | PublishTo

SelfT = TypeVar("SelfT")
CommandT = TypeVar("CommandT", bound=Command[Any])
EventT = TypeVar("EventT", bound=Event)
MethodT = TypeVar("MethodT", bound=Callable[..., Any])
# One model is the command's result or a message; containers are lists and tuples. The plugin `mindbus.mypy_plugin` and
# the import-time check compare it with R of `Command[R]`, which no annotation can do: a TypeVar's bound is not generic.
Item = BaseModel | Send | Publish | PublishTo
AnswerT = TypeVar("AnswerT", bound=Item | Sequence[Item] | None)
PublishedT = TypeVar("PublishedT", bound=Publishable | Sequence[Publishable] | None)

Kind = Literal["command", "event", "topic", "every", "background"]


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark that a decorator leaves on a method: its kind with the topic, or the seconds between two calls."""

    kind: Kind
    topic: str = ""
    seconds: float = 0.0


@overload
def on_command(
    method: Callable[[SelfT, CommandT], Coroutine[Any, Any, AnswerT]],
) -> Callable[[SelfT, CommandT], Coroutine[Any, Any, AnswerT]]: ...
@overload
def on_command(
    method: Callable[[SelfT, CommandT, MessageContext], Coroutine[Any, Any, AnswerT]],
) -> Callable[[SelfT, CommandT, MessageContext], Coroutine[Any, Any, AnswerT]]: ...
def on_command(method: Callable[..., Any]) -> Callable[..., Any]:
    """Receive the command in the signature; the result goes to the requester, events and commands are published."""
    return _mark(method, Mark("command"))


@overload
def on_event(
    method: Callable[[SelfT, EventT], Coroutine[Any, Any, PublishedT]],
) -> Callable[[SelfT, EventT], Coroutine[Any, Any, PublishedT]]: ...
@overload
def on_event(
    method: Callable[[SelfT, EventT, MessageContext], Coroutine[Any, Any, PublishedT]],
) -> Callable[[SelfT, EventT, MessageContext], Coroutine[Any, Any, PublishedT]]: ...
def on_event(method: Callable[..., Any]) -> Callable[..., Any]:
    """Receive the event in the signature; publish the events and commands that are returned."""
    return _mark(method, Mark("event"))


def on_topic(topic: str) -> Callable[[MethodT], MethodT]:
    """Receive the raw envelope of every event of a topic, known or not; `#` is all topics."""
    return lambda method: _mark(method, Mark("topic", topic=topic))


def every(*, seconds: float) -> Callable[[MethodT], MethodT]:
    """Call the method periodically while the worker consumes; publish the events and commands that are returned."""
    if not seconds > 0:
        raise ValueError(f"every {seconds} seconds is not an interval: give more than 0")
    return lambda method: _mark(method, Mark("every", seconds=seconds))


def background(*, pause_s: float = 0.01) -> Callable[[MethodT], MethodT]:
    """Call the method again as soon as it has ended, while the worker consumes; it waits for its work by itself.

    What it returns is published in one transaction with what it has written. A method that yields instead is resumed
    once the yielded messages are safe, and meets the exception at its `yield` where they are not.
    """
    if not pause_s >= 0:
        raise ValueError(f"{pause_s} seconds is not a pause: give 0 or more")
    return lambda method: _mark(method, Mark("background", seconds=pause_s))


def time_limit(*, seconds: float) -> Callable[[MethodT], MethodT]:
    """Cancel the handler once it has taken so long, in place of the worker's `time_limit_s`."""
    if not seconds > 0:
        raise ValueError(f"{seconds} seconds is not a time limit: give more than 0")

    def limit(method: MethodT) -> MethodT:
        method._mindbus_time_limit_s = seconds  # type: ignore[attr-defined]  # read back by time_limit_of alone
        return method

    return limit


def time_limit_of(method: object) -> float | None:
    """Seconds that a handler of its own may take, None where it has the worker's limit."""
    return getattr(method, "_mindbus_time_limit_s", None)


def mark_of(method: object) -> Mark | None:
    """The mark of a decorated method, None for any other object."""
    mark = getattr(method, "_mindbus_mark", None)
    return mark if isinstance(mark, Mark) else None


def _mark(method: MethodT, mark: Mark) -> MethodT:
    method._mindbus_mark = mark  # type: ignore[attr-defined]  # read back by mark_of alone
    return method
