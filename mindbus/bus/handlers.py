"""Marks the methods of a worker that receive messages: the signature is the route."""

import inspect
import typing
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from bus_schema.envelope import Envelope
from bus_schema.messages import Command, Event, Message
from mindbus.bus.context import MessageContext

Method = TypeVar("Method", bound=Callable[..., Awaitable[Any]])


@dataclass(frozen=True, slots=True)
class Send:
    """A command that a handler returns, with its target; unnamed coordinates are those of the message at hand."""

    command: Command[Any]
    service: str | None = None
    trace: str | None = None
    step: str | None = None
    attempt: int | None = None


@dataclass(frozen=True, slots=True)
class Publish:
    """An event that a handler returns, told in another trace than that of the message at hand."""

    event: Event
    trace: str | None = None
    step: str | None = None


@dataclass(frozen=True, slots=True)
class PublishTo:
    """An event that a handler returns for one subscriber alone, whose queue the client keeps."""

    event: Event
    subscriber: str


@dataclass(frozen=True, slots=True)
class Route:
    """Where a message goes within a worker."""

    method: str
    receives: type[Message] | None
    wants_handling: bool


@dataclass(frozen=True, slots=True)
class Routes:
    """All that a worker listens to, readable without building it."""

    by_type: dict[str, Route]
    by_topic: dict[str, Route]
    periodic: dict[str, float]

    @property
    def commands(self) -> tuple[type[Message], ...]:
        """The commands that it takes."""
        return tuple(
            route.receives for route in self.by_type.values() if route.receives and _is_command(route.receives)
        )

    @property
    def event_keys(self) -> tuple[str, ...]:
        """The binding keys of the events that it hears."""
        typed = [
            r.receives.wire.routing_key for r in self.by_type.values() if r.receives and not _is_command(r.receives)
        ]
        return tuple(sorted({*typed, *("evt.#" if topic == "#" else f"evt.{topic}.#" for topic in self.by_topic)}))

    def find(self, wire_type: str) -> Route | None:
        """The handler of a type; a typed one is preferred to a topic's, a topic's to that of all topics."""
        topic = wire_type.split(".")[2] if wire_type.startswith("mb.evt.") else ""
        return self.by_type.get(wire_type) or self.by_topic.get(topic) or (self.by_topic.get("#") if topic else None)


def on_command(method: Method) -> Method:
    """Receive the command in the signature; what is returned goes to the asker, to listeners, to other services."""
    return _mark(method, ("command", None))


def on_event(method: Method) -> Method:
    """Receive the event in the signature; publish whatever is returned."""
    return _mark(method, ("event", None))


def on_topic(topic: str) -> Callable[[Method], Method]:
    """Receive the raw envelope of every event of a topic, known or not; `#` is all topics."""
    return lambda method: _mark(method, ("topic", topic))


def every(*, seconds: float) -> Callable[[Method], Method]:
    """Call the method again and again while the worker runs; publish whatever is returned."""
    return lambda method: _mark(method, ("every", seconds))


def routes_of(worker: type) -> Routes:
    """Read a worker's routes off its signatures, those of the classes that it is made of included.

    Raises TypeError at import, so that a worker which cannot be routed never starts.
    """
    routes = Routes({}, {}, {})
    methods = {name: method for part in reversed(worker.__mro__) for name, method in vars(part).items()}
    for name, method in methods.items():
        kind, detail = typing.cast("tuple[str, Any]", getattr(method, "_mindbus_mark", ("", None)))
        if kind == "every":
            routes.periodic[name] = detail
        elif kind == "topic":
            _add(worker, routes.by_topic, detail, Route(name, None, _wants_handling(method)))
        elif kind:
            route = _typed_route(worker, name, method, kind)
            _add(worker, routes.by_type, typing.cast("type[Message]", route.receives).wire.type, route)
    return routes


def _mark(method: Method, mark: tuple[Literal["command", "event", "topic", "every"], Any]) -> Method:
    method._mindbus_mark = mark  # type: ignore[attr-defined]  # read back by routes_of alone
    return method


def _add(worker: type, table: dict[str, Route], key: str, route: Route) -> None:
    if key in table:
        raise TypeError(f"{worker.__name__} receives {key} twice: in {table[key].method} and in {route.method}")
    table[key] = route


def _typed_route(worker: type, name: str, method: Callable[..., Any], kind: str) -> Route:
    parameters = list(inspect.signature(method).parameters.values())[1:]
    hints = typing.get_type_hints(method)
    receives = hints.get(parameters[0].name) if parameters else None
    wanted = Command if kind == "command" else Event
    if not (isinstance(receives, type) and issubclass(receives, wanted) and hasattr(receives, "wire")):
        raise TypeError(
            f"{worker.__name__}.{name} must take one {wanted.__name__} that has a wire name, not {receives}"
        )
    return Route(name, receives, _wants_handling(method))


def _wants_handling(method: Callable[..., Any]) -> bool:
    hints = typing.get_type_hints(method)
    parameters = list(inspect.signature(method).parameters.values())[1:]
    if hints.get(parameters[0].name) is Envelope and len(parameters) == 1:
        return False
    if len(parameters) > 1 and hints.get(parameters[1].name) is not MessageContext:
        raise TypeError(f"{method.__qualname__}: the second parameter, where there is one, is a MessageContext")
    return len(parameters) > 1


def _is_command(message: type[Message]) -> bool:
    return issubclass(message, Command)
