"""The commands `memory`: search, get, watch and count units of shared memory."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any

import typer
from cachetools import LRUCache

from bus_schema.envelope import Envelope
from bus_schema.glm import GetMemoryStats, KemDeleted, KemUpdated, RetrieveKems
from bus_schema.kem import Kem, KemNotice
from bus_schema.kem_query import KemQuery
from bus_schema.messages import Event, UnknownType, message_class
from mindbus.bus.client import Client
from mindbus.cli.console import note, say_data, show_json_line, show_result
from mindbus.cli.options import LOCAL_USER, TIMES, As, Json, SearchWords
from mindbus.cli.session import answer_to, on_the_bus, run, run_until_interrupted, show_each
from mindbus.sdk.kem_filters import Filter, FilterSubject
from mindbus.terminal import escape_controls
from mindbus_fleet.cli.memory_edit import add, rm, update
from mindbus_fleet.cli.memory_import import import_
from mindbus_fleet.cli.memory_options import (
    FilterText,
    KemIdArgument,
    filter_of,
    get_kem,
    query_of,
    show_kem,
    show_stats,
    show_units,
    times_of,
    unit_json,
)

_REMEMBERED = 10_000


def search(
    query: SearchWords,
    top: Annotated[int, typer.Option("--top", min=1, max=200, help="The most to show.")] = 5,
    filter_: FilterText = None,
    as_of: Annotated[
        datetime | None, typer.Option("--as-of", formats=TIMES, help="Only what held at that time.")
    ] = None,
    known_at: Annotated[
        datetime | None,
        typer.Option("--known-at", formats=TIMES, help="Only what was known then to hold, then or at --as-of."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show what each score is made of.")] = False,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Find what is nearest, by meaning and by words, among what you may read.

    [bold]Examples[/bold]

    mindbus memory search "when is the release"

    mindbus memory search "когда релиз" --top 3 --filter 'metadata.project_id=apollo' --explain

    mindbus memory search "deadline" --filter 'metadata.kind=plan OR metadata.kind=decision' --json

    mindbus memory search "when is the release" --as-of 2026-11-01 --known-at 2026-10-01
    """
    wanted = query_of(filter_, text_query=query, **times_of(as_of=as_of, known_at=known_at))
    found = answer_to(lambda: RetrieveKems(query=wanted, page_size=top, explain=explain), acting).items
    show_result(
        [unit_json(each) for each in found], lambda _all: show_units(found, is_explained=explain), as_json=as_json
    )


def get(
    kem_id: KemIdArgument,
    vector: Annotated[bool, typer.Option("--vector", help="With its vector, in JSON.")] = False,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Show a unit, and everything that is known about it.

    [bold]Examples[/bold]

    mindbus memory get kem_0192…

    mindbus memory get kem_0192… --json --as agent.critic
    """
    show_kem(run(_get(kem_id, acting)), as_json=as_json, with_vector=vector)


def watch(
    filter_: FilterText = None,
    count: Annotated[int | None, typer.Option("--count", min=1, help="Stop after this many events.")] = None,
    for_s: Annotated[float | None, typer.Option("--for", min=0.1, help="Stop after this many seconds.")] = None,
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

    async def listen() -> None:
        async with on_the_bus(acting, goes_on=None) as bus:
            if not as_json:
                note("watching memory; Ctrl-C ends it")
            changes = Watch(bus, wanted).changes()
            await show_each(changes, show_json_line if as_json else _show_change, count, for_s)

    run_until_interrupted(listen())


def stats(acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Count what you may read.

    [bold]Example[/bold]

    mindbus memory stats
    """
    show_result(answer_to(GetMemoryStats, acting), show_stats, as_json=as_json)


async def _get(kem_id: str, identity: str) -> Kem:
    async with on_the_bus(identity) as bus:
        return await get_kem(kem_id, bus)


def _show_change(change: dict[str, Any]) -> None:
    metadata = " ".join(f"{key}={value}" for key, value in change.get("metadata", {}).items())
    say_data(escape_controls(f"{change['event']:<10} {change['kem_id']}  {change['by']}  {metadata}"))


class Watch:
    """Changes of the units that match a filter; units hidden from the requester are left out."""

    def __init__(self, bus: Client, wanted: Filter) -> None:
        self._bus, self._wanted = bus, wanted
        self._known: LRUCache[str, dict[str, Any]] = LRUCache(_REMEMBERED)

    async def changes(self) -> AsyncIterator[dict[str, Any]]:
        async with self._bus.subscribe("kem.*") as events:
            async for envelope in events:
                change = await self._look(envelope)
                if change is not None:
                    yield change

    async def _look(self, envelope: Envelope) -> dict[str, Any] | None:
        name = envelope.type.split(".")[3]
        event = _event(envelope)
        kem_id = getattr(event, "kem_id", None)
        if kem_id is None:
            return None
        told = {"event": name, "kem_id": kem_id, "at": envelope.time.isoformat(), "by": envelope.requester}
        if isinstance(event, KemNotice):
            metadata = await self._readable(event)
            told |= {"version": event.version, "metadata": metadata}
        else:
            # Of what is gone nobody can be asked any more who might read it: whoever heard of it before may know.
            metadata = self._known.get(kem_id)
        if metadata is None:
            self._known.pop(kem_id, None)
            return None
        self._known[kem_id] = metadata
        return told if self._wanted.matches(FilterSubject(_kind(event), kem_id, metadata)) else None

    async def _readable(self, notice: KemNotice) -> dict[str, Any] | None:
        if notice.visibility == "public":
            return notice.metadata
        page = await self._bus.request(RetrieveKems(query=KemQuery(ids=(notice.kem_id,)), page_size=1))
        return page.items[0].kem.metadata if page.items else None


def _event(envelope: Envelope) -> Event | None:
    try:
        kind = message_class(envelope.type)
    except UnknownType:
        return None
    return kind.model_validate(envelope.data) if issubclass(kind, Event) else None


def _kind(event: Event | None) -> str:
    if isinstance(event, KemNotice):
        return "KEM_UPDATED" if isinstance(event, KemUpdated) or event.version > 1 else "KEM_PUBLISHED"
    return "KEM_DELETED" if isinstance(event, KemDeleted) else "KEM_EVICTED"


app = typer.Typer(no_args_is_help=True, help="What agents know together: add, search, get, change, watch.")

for command in (add, search, get, update, rm, watch, stats):
    app.command()(command)
app.command("import")(import_)
