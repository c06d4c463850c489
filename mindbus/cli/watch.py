"""The command `watch`: events as they happen."""

from typing import Annotated

import typer

from bus_schema.envelope import Envelope
from mindbus.cli.console import errors, say, show_json_line
from mindbus.cli.options import LOCAL_USER, As, Json, Trace
from mindbus.cli.session import on_the_bus, run_until_interrupted, show_each

app = typer.Typer()

_HEARTBEAT = "mb.evt.fleet.heartbeat."
_SHOWN_CHARACTERS = 160


@app.command()
def watch(
    pattern: Annotated[str, typer.Argument(help="Topic.name, where * is one word and # any number of them.")] = "#",
    trace: Trace = None,
    acting: As = LOCAL_USER,
    count: Annotated[int | None, typer.Option("--count", min=1, help="Stop after that many.")] = None,
    for_s: Annotated[float | None, typer.Option("--for", min=0.1, help="Stop after that many seconds.")] = None,
    as_json: Json = False,
) -> None:
    """Show events as they are told; with --json one envelope a line. Heartbeats only when fleet is asked for.

    [bold]Examples[/bold]

    mindbus watch

    mindbus watch 'process.*' --trace run_0192…

    mindbus watch 'artifact.#' --json --count 1
    """
    wants_heartbeats = pattern.startswith("fleet")

    async def listen() -> None:
        async with on_the_bus(acting) as bus, bus.subscribe(pattern, trace=trace) as events:
            if not as_json:
                errors().print(f"listening to {pattern}; Ctrl-C ends it")
            shown = (event async for event in events if wants_heartbeats or not event.type.startswith(_HEARTBEAT))
            await show_each(shown, show_json_line if as_json else _show_event, count, for_s)

    run_until_interrupted(listen())


def _show_event(envelope: Envelope) -> None:
    data = " ".join(f"{key}={value}" for key, value in (envelope.data or {}).items())
    name = ".".join(envelope.type.split(".")[2:4])
    where = envelope.mbtraceid or "-"
    time = envelope.time.astimezone().strftime("%H:%M:%S")
    say(f"{time}  {name:<28} {where}  {envelope.mbrequester}  {data[:_SHOWN_CHARACTERS]}")
