"""The commands `memory`: search, get, watch and count units of shared memory."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from bus_schema.glm import FoundKem, GetMemoryStats, MemoryStats, RetrieveKems
from bus_schema.kem import Kem
from mindbus.cli.console import errors, say, show_json, show_json_line
from mindbus.cli.options import LOCAL_USER, As, Json
from mindbus.cli.session import on_the_bus, run
from mindbus.sdk.kem_filters import Filter
from mindbus.terminal import escape_controls
from mindbus_fleet.cli.memory_edit import add, rm, update
from mindbus_fleet.cli.memory_import import import_
from mindbus_fleet.cli.memory_options import (
    FilterText,
    KemIdArgument,
    filter_of,
    found_json,
    get_kem,
    query_of,
    show_found,
    show_kem,
    show_stats,
)
from mindbus_fleet.cli.memory_watch import Watch


def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What you look for, in your own words.")],
    top: Annotated[int, typer.Option("--top", min=1, max=200, help="At most so many.")] = 5,
    filter_: FilterText = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say what each score is made of.")] = False,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Find what is nearest, by meaning and by words, among what you may read.

    [bold]Examples[/bold]

    mindbus memory search "when is the release"

    mindbus memory search "когда релиз" --top 3 --filter 'metadata.project_id=apollo' --explain

    mindbus memory search "deadline" --filter 'metadata.kind=plan OR metadata.kind=decision' --json
    """
    wanted = RetrieveKems(query=query_of(filter_, text_query=query), page_size=top, explain=explain)
    found = run(_search(wanted, acting))
    if as_json:
        show_json([found_json(each) for each in found])
    else:
        show_found(found, is_explained=explain)


def get(
    kem_id: KemIdArgument,
    vector: Annotated[bool, typer.Option("--vector", help="With its vector, in JSON.")] = False,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Show a unit with all that is known of it.

    [bold]Examples[/bold]

    mindbus memory get kem_0192…

    mindbus memory get kem_0192… --json --as agent.critic
    """
    show_kem(run(_get(kem_id, acting)), as_json=as_json, with_vector=vector)


def watch(
    filter_: FilterText = None,
    count: Annotated[int | None, typer.Option("--count", min=1, help="Stop after that many.")] = None,
    for_s: Annotated[float | None, typer.Option("--for", min=0.1, help="Stop after that many seconds.")] = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Show changes of memory as they happen, as far as you may read the units; with --json a change a line.

    Filters may name event types, too: KEM_PUBLISHED, KEM_UPDATED, KEM_EVICTED, KEM_DELETED.

    [bold]Examples[/bold]

    mindbus memory watch --filter 'metadata.project_id=apollo'

    mindbus memory watch --filter 'KEM_DELETED OR KEM_EVICTED' --json
    """
    wanted = filter_of(filter_)
    try:
        run(_watch(wanted, acting, count, for_s, as_json=as_json))
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def stats(acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Count what you may read.

    [bold]Example[/bold]

    mindbus memory stats
    """
    found = run(_stats(acting))
    if as_json:
        show_json(found)
    else:
        show_stats(found)


async def _search(wanted: RetrieveKems, identity: str) -> Sequence[FoundKem]:
    async with on_the_bus(identity) as bus:
        return (await bus.request(wanted)).items


async def _get(kem_id: str, identity: str) -> Kem:
    async with on_the_bus(identity) as bus:
        return await get_kem(kem_id, bus)


async def _stats(identity: str) -> MemoryStats:
    async with on_the_bus(identity) as bus:
        return await bus.request(GetMemoryStats())


async def _watch(wanted: Filter, identity: str, count: int | None, for_s: float | None, *, as_json: bool) -> None:
    shown = 0
    async with on_the_bus(identity) as bus:
        if not as_json:
            errors().print("watching memory; Ctrl-C ends it")
        try:
            async with asyncio.timeout(for_s):
                async for change in Watch(bus, wanted).changes():
                    _show_change(change, as_json=as_json)
                    shown += 1
                    if shown == count:
                        return
        except TimeoutError:
            return


def _show_change(change: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        show_json_line(change)
        return
    metadata = " ".join(f"{key}={value}" for key, value in change.get("metadata", {}).items())
    say(escape_controls(f"{change['event']:<10} {change['kem_id']}  {change['by']}  {metadata}"))


app = typer.Typer(no_args_is_help=True, help="What agents know together: add, search, get, change, watch.")

for command in (add, search, get, update, rm, watch, stats):
    app.command()(command)
app.command("import")(import_)
