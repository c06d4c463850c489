"""Routes of a worker, read off the signatures of its handlers; a handler that cannot be routed fails at import."""

import inspect
import types
import typing
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from pydantic import BaseModel

from bus_schema.envelope import Envelope
from bus_schema.messages import Command, Event, Message, Nothing, Query
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Mark, Publish, PublishTo, Send, mark_of, time_limit_of

PUBLISHABLE = (Command, Event, Send, Publish, PublishTo)
_CONTAINERS = (list, tuple, Sequence)
_GENERATORS = (AsyncIterator, AsyncGenerator)


class _Target:
    """A method by name; without an `owner` it is the worker's own."""

    __slots__ = ()
    method: str
    owner: object

    def handler(self, worker: object) -> Callable[..., Any]:
        handler: Callable[..., Any] = getattr(worker if self.owner is None else self.owner, self.method)
        return handler

    @property
    def label(self) -> str:
        """The method's name, with its router's where it has one."""
        return self.method if self.owner is None else f"{type(self.owner).__name__}.{self.method}"


@dataclass(frozen=True, slots=True)
class Route(_Target):
    """The handler of a message type."""

    method: str
    receives: type[Message] | None
    takes_context: bool
    owner: object = None
    is_query: bool = False
    time_limit_s: float | None = None


@dataclass(frozen=True, slots=True)
class TaskRoute(_Target):
    """A method that runs by itself: every so many seconds, or in the background with a pause of so many."""

    method: str
    seconds: float
    is_background: bool
    owner: object = None


@dataclass(frozen=True, slots=True)
class Routes:
    """Everything that a worker, or one of its routers, receives and does by itself."""

    by_type: Mapping[str, Route] = field(default_factory=dict)
    by_topic: Mapping[str, Route] = field(default_factory=dict)
    tasks: tuple[TaskRoute, ...] = ()

    @property
    def commands(self) -> tuple[type[Message], ...]:
        """The command classes that it takes."""
        return tuple(
            route.receives for route in self.by_type.values() if route.receives and issubclass(route.receives, Command)
        )

    @property
    def event_keys(self) -> tuple[str, ...]:
        """The binding keys of the events that it receives."""
        typed = [
            r.receives.wire.routing_key
            for r in self.by_type.values()
            if r.receives and not issubclass(r.receives, Command)
        ]
        return tuple(sorted({*typed, *("evt.#" if topic == "#" else f"evt.{topic}.#" for topic in self.by_topic)}))

    def find(self, wire_type: str) -> Route | None:
        """The handler of a type; a typed one is preferred to a topic's, a topic's to that of all topics."""
        topic = wire_type.split(".")[2] if wire_type.startswith("mb.evt.") else ""
        return self.by_type.get(wire_type) or self.by_topic.get(topic) or (self.by_topic.get("#") if topic else None)

    def including(self, router: object, worker: type) -> "Routes":
        """These and a router's routes. Raises TypeError where both receive one message."""
        own = _routes_of_router(type(router))
        return Routes(
            _join_routes(self.by_type, own.by_type, router, worker),
            _join_routes(self.by_topic, own.by_topic, router, worker),
            (*self.tasks, *(replace(task, owner=router) for task in own.tasks)),
        )


def _routes_of_router(router: type) -> Routes:
    """Those of a class whose objects many workers include: signatures take long to read."""
    if router not in _read:
        _read[router] = routes_of(router)
    return _read[router]


_read: WeakKeyDictionary[type, Routes] = WeakKeyDictionary()


def routes_of(worker: type) -> Routes:
    """Read the routes of a worker's or router's class, those of its bases included.

    Raises TypeError, so that a worker which cannot be routed fails at import.
    """
    by_type: dict[str, Route] = {}
    by_topic: dict[str, Route] = {}
    tasks: list[TaskRoute] = []
    methods = {name: method for part in reversed(worker.__mro__) for name, method in vars(part).items()}
    for name, method in methods.items():
        mark = mark_of(method)
        if mark is None:
            continue
        _require_async(worker, name, method)
        _check_answer(worker, name, method, mark)
        if mark.kind in {"every", "background"}:
            tasks.append(TaskRoute(name, mark.seconds, mark.kind == "background"))
        elif mark.kind == "topic":
            _add(
                worker,
                by_topic,
                mark.topic,
                Route(name, None, _takes_context(method), time_limit_s=time_limit_of(method)),
            )
        else:
            route = _typed_route(worker, name, method, Command if mark.kind == "command" else Event)
            _add(worker, by_type, typing.cast("type[Message]", route.receives).wire.type, route)
    return Routes(by_type, by_topic, tuple(tasks))


def _require_async(worker: type, name: str, method: Callable[..., Any]) -> None:
    inner = inspect.unwrap(method)
    if inspect.isfunction(inner) and not (inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner)):
        raise TypeError(f"{worker.__name__}.{name} must be a coroutine: `async def {name}`")


def _join_routes(
    own: Mapping[str, Route], included: Mapping[str, Route], router: object, worker: type
) -> Mapping[str, Route]:
    routes = dict(own)
    for key, route in included.items():
        _add(worker, routes, key, replace(route, owner=router))
    return routes


def _add(worker: type, table: dict[str, Route], key: str, route: Route) -> None:
    if key in table:
        raise TypeError(f"{worker.__name__} receives {key} twice: in {table[key].label} and in {route.label}")
    table[key] = route


def _typed_route(worker: type, name: str, method: Callable[..., Any], kind: type[Message]) -> Route:
    receives = _receives(method)
    if receives is None:
        raise TypeError(f"{worker.__name__}.{name} must say which {kind.__name__} it takes: `{name}(self, message: …)`")
    if not (isinstance(receives, type) and issubclass(receives, kind) and hasattr(receives, "wire")):
        raise TypeError(f"{worker.__name__}.{name} must take one {kind.__name__} that has a wire name, not {receives}")
    is_query, limit_s = issubclass(receives, Query), time_limit_of(method)
    return Route(name, receives, _takes_context(method), is_query=is_query, time_limit_s=limit_s)


def _receives(method: Callable[..., Any]) -> Any:
    parameters = list(inspect.signature(method).parameters.values())[1:]
    return typing.get_type_hints(method).get(parameters[0].name) if parameters else None


def _takes_context(method: Callable[..., Any]) -> bool:
    hints = typing.get_type_hints(method)
    parameters = list(inspect.signature(method).parameters.values())[1:]
    if hints.get(parameters[0].name) is Envelope and len(parameters) == 1:
        return False
    if len(parameters) > 1 and hints.get(parameters[1].name) is not MessageContext:
        raise TypeError(f"{method.__qualname__}: the second parameter, where there is one, is a MessageContext")
    if any(each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD for each in parameters[2:]):
        raise TypeError(f"{method.__qualname__} takes more than the message and its MessageContext")
    return len(parameters) > 1


def _check_answer(worker: type, name: str, method: Callable[..., Any], mark: Mark) -> None:
    """Raise TypeError where the return annotation does not fit the command's result."""
    hint = typing.get_type_hints(method).get("return", Any)
    result: type[BaseModel] = Nothing
    if mark.kind == "command":
        receives = _receives(method)
        wire = getattr(receives, "wire", None)
        if wire is None:
            return
        result = wire.result
    if mark.kind == "background" and typing.get_origin(hint) in _GENERATORS:
        hint = typing.get_args(hint)[0]
    if not all(_answers(part, result) for part in _alternatives(hint)):
        raise TypeError(f"{worker.__name__}.{name} must return {_expected_type(result)}, not {_readable(hint)}")


def _answers(hint: Any, result: type[BaseModel]) -> bool:
    """Whether a value of this type holds the result, where there is one, beside nothing but messages."""
    if hint in (Any, typing.NoReturn, typing.Never):
        return True
    if hint is type(None):
        return result is Nothing
    if typing.get_origin(hint) not in _CONTAINERS:
        return _is(hint, (result,)) or (result is Nothing and _is(hint, PUBLISHABLE))
    items = [part for item in typing.get_args(hint) if item is not ... for part in _alternatives(item)]
    has_result = result is Nothing or any(part is Any or _is(part, (result,)) for part in items)
    return has_result and all(part is Any or _is(part, (result, *PUBLISHABLE)) for part in items)


def _is(hint: Any, kinds: tuple[type, ...]) -> bool:
    if isinstance(hint, TypeVar):
        return hint.__bound__ is None or all(_is(part, kinds) for part in _alternatives(hint.__bound__))
    return isinstance(hint, type) and issubclass(hint, kinds)


def _alternatives(hint: Any) -> Iterator[Any]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        for part in typing.get_args(hint):
            yield from _alternatives(part)
    else:
        yield typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint


def _expected_type(result: type[BaseModel]) -> str:
    if result is Nothing:
        return "None, or events and commands to publish, in a list or tuple where they are several"
    return f"{result.__name__}, or a list or tuple of it with events and commands to publish"


def _readable(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
