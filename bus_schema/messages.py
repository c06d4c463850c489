"""Base classes of messages: commands, queries and events; and of the values within them."""

import re
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from bus_schema.identities import SERVICE_NAME
from bus_schema.ids import TraceParent

ItemT = TypeVar("ItemT", bound=BaseModel)
ResultT = TypeVar("ResultT", bound=BaseModel)
ResultT_co = TypeVar("ResultT_co", bound=BaseModel, covariant=True)

# `Wire.type` is a field, so `type[…]` needs another name in there.
ResultClass = type[BaseModel]

_WORD = re.compile(r"[a-z][a-z0-9_]{0,62}")
_HALVES = re.compile("[\ud800-\udfff]")
_SERVICE = re.compile(SERVICE_NAME)
_known: "dict[str, type[Message]]" = {}


class TypeTaken(TypeError):
    """Two message classes claim one wire type; give the newer one another name or a higher version."""


class UnknownType(KeyError):
    """No message class of this name is known here; check the spelling or install the package that defines it."""


class Value(BaseModel):
    """Immutable data within messages; unknown fields are ignored.

    A validator is built when it is first used: no process uses most of the four hundred.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)


class Link(Value):
    """A pointer to an object by its id."""

    kind: Literal["message", "fragment", "task", "fact", "artifact", "notification"]
    id: Annotated[str, StringConstraints(pattern=r"^[a-z]+_[A-Za-z0-9_-]{1,64}$")]


class Cause(Value):
    """The message that caused a part of a command, by its correlation id; `hops` are those of what it leads to.

    `traceparent` and `tracestate` are its W3C trace context.
    """

    correlation_id: str
    hops: int = Field(ge=0)
    traceparent: TraceParent | None = None
    tracestate: str | None = Field(default=None, max_length=512)


class StrictValue(Value):
    """Immutable data in which an unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


class Page(Value, Generic[ItemT]):
    """A page of a list; the cursor is that of the next page."""

    items: tuple[ItemT, ...]
    next_cursor: str | None = None


class Nothing(Value):
    """The result of a command whose success is the whole answer."""


@dataclass(frozen=True, slots=True)
class Wire:
    """Wire names of a message class, stable over renames of the class."""

    type: str
    routing_key: str
    version: int
    service: str | None = None
    result: ResultClass = Nothing


class Message(Value):
    """Base class: data as fields, wire names in `wire`."""

    wire: ClassVar[Wire]

    def __init_subclass__(cls, **_names: Any) -> None:
        """Leave the class keywords to pydantic's own hook; typing.Generic would reject them."""
        super().__init_subclass__()


class Command(Message, Generic[ResultT_co]):
    """An order to one service; `Command[Manifest]` is answered with a Manifest.

    `class GetX(Command[X], domain="shop", action="get_x")` is `mb.cmd.shop.get_x.v1`, sent to the service `shop`;
    `service=` names another one, `service=None` leaves it to the sender's `to=`.
    """

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def __pydantic_init_subclass__(
        cls, *, domain: str = "", action: str = "", version: int = 1, service: str | None = "", **options: Any
    ) -> None:
        super().__pydantic_init_subclass__(**options)
        if (domain and not action) or {"topic", "name"} & options.keys():
            example = 'class Sell(Command[Sale], domain="shop", action="sell")'
            raise TypeError(f"{cls.__name__}: a command has a domain and an action, as in `{example}`")
        if not action:
            return
        target = domain if service == "" else service
        if target is not None and not _SERVICE.fullmatch(target):
            raise TypeError(f"a service name is lowercase letters, digits, - and _, not {target!r}")
        _require_words(domain, action)
        wire_type = f"mb.cmd.{domain}.{action}.v{version}"
        cls.wire = Wire(wire_type, f"cmd.{domain}.{action}", version, target, _result_of(cls))
        if issubclass(cls, Query) and not _arguments_of(cls):
            raise TypeError(f"{cls.__name__}: say what a query is answered with, as in Query[Report]")
        _register(cls)


class Query(Command[ResultT_co], Generic[ResultT_co]):
    """A command without visible effects; it is answered afresh each time."""


class Event(Message):
    """A fact, published to all listeners; unknown fields are ignored, so that newer publishers may add some."""

    model_config = ConfigDict(extra="ignore")

    @classmethod
    def __pydantic_init_subclass__(cls, *, topic: str = "", name: str = "", version: int = 1, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        if (topic and not name) or {"domain", "action"} & options.keys():
            example = 'class Sold(Event, topic="shop", name="sold")'
            raise TypeError(f"{cls.__name__}: an event has a topic and a name, as in `{example}`")
        if not name:
            return
        _require_words(topic, name)
        cls.wire = Wire(f"mb.evt.{topic}.{name}.v{version}", f"evt.{topic}.{name}", version)
        _register(cls)


def message_class(wire_type: str) -> type[Message]:
    """Look up the class of a wire type. Raises UnknownType."""
    try:
        return _known[wire_type]
    except KeyError:
        raise UnknownType(wire_type) from None


def require_whole(text: str) -> None:
    """Raise ValueError for a text that no database and no JSON takes: with a NUL or half of a character."""
    if "\0" in text:
        raise ValueError("contains a NUL character; remove it")
    if _HALVES.search(text):
        raise ValueError("contains half of a character; send whole ones")


def known_types() -> dict[str, type[Message]]:
    """All wire types defined so far, in order of name."""
    return dict(sorted(_known.items()))


def _register(message: type[Message]) -> None:
    other = _known.get(message.wire.type)
    if other is not None and (other.__module__, other.__qualname__) != (message.__module__, message.__qualname__):
        raise TypeTaken(f"{message.wire.type} is {other.__qualname__} already, not {message.__qualname__}")
    _known[message.wire.type] = message


def _require_words(*words: str) -> None:
    for word in words:
        if not _WORD.fullmatch(word):
            raise TypeError(f"a wire name is made of lowercase letters, digits and _, not {word!r}")


def _result_of(command: ResultClass) -> ResultClass:
    results = [argument for argument in _arguments_of(command) if isinstance(argument, type)]
    return results[0] if results else Nothing


def _arguments_of(command: ResultClass) -> list[Any]:
    """Arguments in brackets of the bases of a class, the nearest first: X of `Command[X]`."""
    given = [getattr(ancestor, "__pydantic_generic_metadata__", {}).get("args", ()) for ancestor in command.__mro__]
    return [arguments[0] for arguments in given if arguments]
