"""The command `send`: one command or event to the bus, read from names and fields or from JSON."""

import difflib
import importlib
import json
import pkgutil
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from pydantic import TypeAdapter, ValidationError

import bus_schema
from bus_schema.envelope import explain
from bus_schema.messages import Command, Event, Message, Query, known_types
from bus_schema.replies import Reply
from bus_schema.strict_json import MalformedJson, parse_object
from mindbus.cli.console import note, say, show_json, show_result
from mindbus.cli.errors import UsageError
from mindbus.cli.options import LOCAL_USER, As, Json, Trace
from mindbus.cli.session import on_the_bus, run
from mindbus.registry import import_from, installed_workers

_MAX_SUGGESTIONS = 3
# What pydantic says of a text where it wants a mapping, a list, a model.
_STRUCTURES = frozenset({"dict_type", "list_type", "tuple_type", "set_type", "frozen_set_type", "model_type"})


def learn_types() -> None:
    """Import all of `bus_schema`, so that its message classes are known."""
    for module in pkgutil.iter_modules(bus_schema.__path__):
        importlib.import_module(f"bus_schema.{module.name}")


def message_class_of(name: str) -> type[Message]:
    """The class behind `storage.get_artifact`, a whole wire type or `module:Class` here. Raises UsageError."""
    if ":" in name:
        return _class_at(name)
    types = known_types()
    if name in types:
        return types[name]
    for kind in ("cmd", "evt"):
        pattern = re.compile(rf"mb\.{kind}\.{re.escape(name)}\.v\d+")
        versions = [message for wire, message in types.items() if pattern.fullmatch(wire)]
        if versions:
            return max(versions, key=lambda message: message.wire.version)
    short = sorted({".".join(wire.split(".")[2:4]) for wire in types})
    matches = difflib.get_close_matches(name.removeprefix("mb.cmd.").removeprefix("mb.evt."), short, _MAX_SUGGESTIONS)
    hint = f"did you mean {' or '.join(matches)}?" if matches else f"known are {', '.join(short)}"
    raise UsageError(f"unknown type {name!r}: {hint}")


def message_of(kind: type[Message], pairs: Iterable[str], file: Path | None = None) -> Message:
    """Build a message from `key=value` pairs over the fields in a JSON file. Raises UsageError."""
    file_fields = dict(_fields_in(file)) if file is not None else {}
    texts = dict(_split(pair) for pair in pairs)
    _require_known(kind, [*file_fields, *texts])
    values = file_fields | {key: _value_of(kind, key, text) for key, text in texts.items()}
    try:
        # Read as JSON where it came as JSON: only so may a time be a string and a tuple a list.
        return kind.model_validate_json(json.dumps(values))
    except ValidationError as invalid:
        raise UsageError(f"{short_name(kind)}: {explain(invalid)}") from invalid


def short_name(kind: type[Message]) -> str:
    """Short form of a wire type, such as `storage.get_artifact`."""
    return ".".join(kind.wire.type.split(".")[2:4])


def fields_of(kind: type[Message]) -> str:
    """The known fields, the required ones first, the others with a question mark."""
    fields = sorted(kind.model_fields.items(), key=lambda item: not item[1].is_required())
    return ", ".join(name + ("" if field.is_required() else "?") for name, field in fields) or "none"


def is_command(kind: type[Message]) -> bool:
    """Whether a message class is a command rather than an event."""
    return issubclass(kind, Command) and not issubclass(kind, Event)


def _class_at(name: str) -> type[Message]:
    module, _, attribute = name.partition(":")
    message_class = getattr(import_from(Path(), module), attribute, None)
    if not (isinstance(message_class, type) and issubclass(message_class, Message)):
        raise UsageError(f"{attribute!r} is not a message class of {module}")
    return message_class


def _split(pair: str) -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if not equals or not key:
        raise UsageError(f"{pair!r} is not key=value")
    return key, value


def _require_known(kind: type[Message], keys: Iterable[str]) -> None:
    unknown = [key for key in keys if key not in kind.model_fields]
    if unknown:
        raise UsageError(f"{short_name(kind)} has no field {', '.join(unknown)}; its fields are {fields_of(kind)}")


def _value_of(kind: type[Message], key: str, text: str) -> Any:
    if text.startswith("@@"):
        text = text[1:]
    elif text.startswith("@"):
        text = _read_text(Path(text[1:]), key)
    adapter: TypeAdapter[Any] = TypeAdapter(kind.model_fields[key].rebuild_annotation())
    try:
        return adapter.dump_python(_validate(adapter, key, text), mode="json")
    except ValidationError as invalid:
        raise UsageError(f"{key}: {explain(invalid).removeprefix('message: ')}") from invalid


def _validate(adapter: TypeAdapter[Any], key: str, text: str) -> Any:
    try:
        return adapter.validate_python(text)
    except ValidationError as not_as_text:
        if not any(error["type"] in _STRUCTURES for error in not_as_text.errors()):
            raise
        try:
            json.loads(text)
        except ValueError:
            raise UsageError(
                f"{key}: {explain(not_as_text).removeprefix('message: ')}; write it as JSON"
            ) from not_as_text
        return adapter.validate_json(text)


def _fields_in(file: Path) -> Mapping[str, Any]:
    try:
        return parse_object(sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes())
    except OSError as unreadable:
        raise UsageError(f"{file} cannot be read: {unreadable.strerror}") from unreadable
    except MalformedJson as malformed:
        raise UsageError(f"{file}: {malformed}") from malformed


def _read_text(file: Path, key: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as unreadable:
        raise UsageError(f"{key}: {file} cannot be read as text: {unreadable}") from unreadable


app = typer.Typer()


@app.command()
def send(
    type_: Annotated[
        str, typer.Argument(metavar="TYPE", help="Such as storage.get_artifact, a whole wire type, or module:Class.")
    ],
    fields: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="The message's fields.")] = None,
    file: Annotated[Path | None, typer.Option("--file", help="A JSON object with fields; - is standard input.")] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="SERVICE", help="The service, where several take it.")
    ] = None,
    acting: As = LOCAL_USER,
    trace: Trace = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the reply, print it; exit 1 on an error reply.")
    ] = False,
    timeout_s: Annotated[float, typer.Option("--timeout", min=0.1, help="How long to wait, in seconds.")] = 30.0,
    as_json: Json = False,
) -> None:
    """Send a command, or publish an event.

    A value is read as its field's type: JSON for lists and mappings, @path for a file's text (@@ for a real @).

    [bold]Examples[/bold]

    mindbus send storage.get_artifact artifact_id=art_0192… --trace t1 --wait

    mindbus send storage.search_artifacts trace_id=t1 limit=5 --wait --json

    mindbus send storage.set_trace_members trace_id=t1 members='["agent.a"]'

    mindbus send process.start --file start.json --wait

    mindbus send counter:GetTally --wait      a class in counter.py, in this folder
    """
    learn_types()
    if ":" not in type_:
        # Their types are known by name. One's own module may need a package called like one of theirs: it comes alone.
        installed_workers().checked()
    kind = message_class_of(type_)
    _require_way(kind, to, wait=wait)
    message = message_of(kind, fields or [], file)
    if wait and isinstance(message, Command):
        reply = run(_ask(message, acting, to=to, trace=trace, timeout_s=timeout_s))
        _show_reply(reply, as_json=as_json)
        raise typer.Exit(0 if reply.status == "ok" else 1)
    message_id = run(_tell(message, acting, to=to, trace=trace))
    sent = {"message_id": message_id, "type": kind.wire.type}
    show_result(sent, f"sent {kind.wire.type} as {message_id}", as_json=as_json)


async def _ask(message: Command[Any], identity: str, *, to: str | None, trace: str | None, timeout_s: float) -> Reply:
    async with on_the_bus(identity, speaks=not isinstance(message, Query)) as bus:
        return await bus.ask(message, to=to, trace=trace, timeout_s=timeout_s)


async def _tell(message: Message, identity: str, *, to: str | None, trace: str | None) -> str:
    async with on_the_bus(identity, speaks=True) as bus:
        if isinstance(message, Command):
            return await bus.send(message, to=to, trace=trace)
        return await bus.publish(cast("Event", message), trace=trace)


def _require_way(kind: type[Message], to: str | None, *, wait: bool) -> None:
    if issubclass(kind, Event):
        if wait or to:
            raise UsageError(f"{short_name(kind)} is an event: it goes to whoever listens, nobody answers it")
    elif kind.wire.service is None and to is None:
        raise UsageError(f"several services take {short_name(kind)}; say which with --to, such as --to researcher")


def _show_reply(reply: Reply, *, as_json: bool) -> None:
    if as_json:
        show_json(reply)
    elif reply.status == "ok":
        say("ok")
        show_json(reply.result or {})
    else:
        note(f"{reply.code}: {reply.message}")
        if reply.details:
            show_json(reply.details)
