"""The command `watch`: events as they happen."""

import asyncio
from typing import Annotated, Any

import typer

from bus_schema.envelope import Envelope
from mindbus.cli.console import errors, say, show_json_line
from mindbus.cli.options import LOCAL_USER, As, Json, Trace
from mindbus.cli.session import on_the_bus, run

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
    try:
        run(_watch(pattern, trace, acting, count, for_s, as_json=as_json))
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


async def _watch(
    pattern: str, trace: str | None, identity: str, count: int | None, for_s: float | None, *, as_json: bool
) -> None:
    shown = 0
    wants_heartbeats = pattern.startswith("fleet")
    async with on_the_bus(identity) as bus, bus.subscribe(pattern, trace=trace) as events:
        if not as_json:
            errors().print(f"listening to {pattern}; Ctrl-C ends it")
        try:
            async with asyncio.timeout(for_s):
                async for envelope in events:
                    if envelope.type.startswith(_HEARTBEAT) and not wants_heartbeats:
                        continue
                    _show_event(envelope, as_json=as_json)
                    shown += 1
                    if shown == count:
                        return
        except TimeoutError:
            return


def _show_event(envelope: Envelope, *, as_json: bool) -> None:
    if as_json:
        show_json_line(envelope)
        return
    data: dict[str, Any] = envelope.data or {}
    told = " ".join(f"{key}={value}" for key, value in data.items())
    name = ".".join(envelope.type.split(".")[2:4])
    where = envelope.mbtraceid or "-"
    time = envelope.time.astimezone().strftime("%H:%M:%S")
    say(f"{time}  {name:<28} {where}  {envelope.mbrequester}  {told[:_SHOWN_CHARACTERS]}")
