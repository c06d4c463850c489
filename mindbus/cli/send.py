"""The command `send`: one command or event to the bus."""

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from bus_schema.messages import Command, Event, Message
from bus_schema.replies import Reply
from mindbus.cli.console import errors, say, show_json
from mindbus.cli.errors import UsageError
from mindbus.cli.message_input import class_named, learn_types, message_of, short_name
from mindbus.cli.options import LOCAL_USER, As, Json, Trace
from mindbus.cli.session import on_the_bus, run
from mindbus.registry import installed_workers

app = typer.Typer()

_HEARTBEAT = "mb.evt.fleet.heartbeat."
_SHOWN_CHARACTERS = 160


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
    installed_workers().checked()
    kind = class_named(type_)
    _require_way(kind, to, wait=wait)
    message = message_of(kind, fields or [], file)
    if wait and isinstance(message, Command):
        reply = run(_ask(message, acting, to=to, trace=trace, timeout_s=timeout_s))
        _show_reply(reply, as_json=as_json)
        raise typer.Exit(0 if reply.status == "ok" else 1)
    message_id = run(_tell(message, acting, to=to, trace=trace))
    if as_json:
        show_json({"message_id": message_id, "type": kind.wire.type})
    else:
        say(f"sent {kind.wire.type} as {message_id}")


async def _ask(message: Command[Any], identity: str, *, to: str | None, trace: str | None, timeout_s: float) -> Reply:
    async with on_the_bus(identity) as bus:
        return await bus.ask(message, to=to, trace=trace, timeout_s=timeout_s)


async def _tell(message: Message, identity: str, *, to: str | None, trace: str | None) -> str:
    async with on_the_bus(identity) as bus:
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
        errors().print(f"{reply.code}: {reply.message}", markup=False, soft_wrap=True)
        if reply.details:
            show_json(reply.details)
