"""The commands `events` and `watch`: the timeline that the tracker keeps, and events as they happen."""

import json
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from bus_schema.envelope import Envelope
from bus_schema.fleet import STATES
from bus_schema.timeline import GetTimeline, TimelineEvent
from mindbus.cli.console import note, say_data, show_json_line, show_result, show_table
from mindbus.cli.errors import UsageError
from mindbus.cli.options import LOCAL_USER, TIMES, As, Json, Trace
from mindbus.cli.session import items_of, on_the_bus, run_until_interrupted, show_each

app = typer.Typer()

_PAGE = 500
_SHOWN_CHARACTERS = 100
_SHOWN_WATCHED_CHARACTERS = 160
_READ_FIRST = frozenset({"text", "content", "preview", "title", "name", "reason", "status", "user_id"})
# Clocks differ.
_AHEAD = timedelta(minutes=1)


@app.command()
def events(
    since: Annotated[datetime | None, typer.Option("--since", formats=TIMES, help="From this time on.")] = None,
    until: Annotated[datetime | None, typer.Option("--until", formats=TIMES, help="Before this time.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="Only about this user.")] = None,
    topic: Annotated[list[str] | None, typer.Option("--topic", help="Only of this topic; may be repeated.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="The most to show.")] = 200,
    oldest: Annotated[bool, typer.Option("--oldest", help="Show the first instead of the last.")] = False,
    trace: Trace = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Show the last events of the timeline, of every topic, in the order in which they were recorded.

    [bold]Examples[/bold]

    mindbus events --user anna --limit 20

    mindbus events --trace run_0192…

    mindbus events --since 2026-03-14T12:00:00 --topic notification --json
    """
    _require_past(since)
    query = GetTimeline(
        since=since.astimezone() if since else None,
        until=until.astimezone() if until else None,
        user_id=user,
        trace_id=trace,
        topics=tuple(topic or ()),
        limit=min(limit, _PAGE),
        newest_first=not oldest,
    )
    read = items_of(lambda: query, acting, limit)
    timeline = read if oldest else read[::-1]
    columns = ("at", "event", "trace", "by", "data")
    show_result(timeline, lambda _events: show_table(columns, map(event_row, timeline)), as_json=as_json)


def _require_past(since: datetime | None) -> None:
    now = datetime.now(UTC)
    if since is not None and since.astimezone() > now + _AHEAD:
        local_time = now.astimezone().isoformat(timespec="seconds")
        raise UsageError(f"--since lies in the future: here it is {local_time}, and nothing has happened after that")


def event_row(event: TimelineEvent) -> tuple[str, ...]:
    at, fields = event.time.astimezone().strftime("%m-%d %H:%M:%S"), _fields_of(event.envelope)
    return at, event.name, event.trace_id or "-", event.envelope.requester, _cut(fields, _SHOWN_CHARACTERS)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"


def _fields_of(envelope: Envelope) -> str:
    """Fields on one line: those that people read first, such as texts; then others; ids last."""
    data = {key: value for key, value in (envelope.data or {}).items() if value not in (None, "", [], {})}
    ordered = sorted(data, key=lambda key: (key not in _READ_FIRST, _is_id(key)))
    return "  ".join(f"{key}: {_text(data[key])}" for key in ordered)


def _is_id(field: str) -> bool:
    return field.endswith(("_id", "_ids", "sha256"))


def _text(value: object) -> str:
    """A value as people read it: a text on one line, anything nested as JSON."""
    return " ".join(value.split()) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@app.command()
def watch(
    pattern: Annotated[str, typer.Argument(help="Topic.name, where * is one word and # any number of them.")] = "#",
    trace: Trace = None,
    acting: As = LOCAL_USER,
    count: Annotated[int | None, typer.Option("--count", min=1, help="Stop after this many events.")] = None,
    for_s: Annotated[float | None, typer.Option("--for", min=0.1, help="Stop after this many seconds.")] = None,
    as_json: Json = False,
) -> None:
    """Show events as they happen; with --json one envelope per line. Heartbeats are shown only if you ask for fleet.

    [bold]Examples[/bold]

    mindbus watch

    mindbus watch 'process.*' --trace run_0192…

    mindbus watch 'artifact.#' --json --count 1
    """
    wants_states = pattern.startswith("fleet")

    async def listen() -> None:
        async with on_the_bus(acting, goes_on=None) as bus, bus.subscribe(pattern, trace=trace) as events:
            if not as_json:
                note(f"listening to {pattern}; Ctrl-C ends it")
            shown = (event async for event in events if wants_states or event.type not in STATES)
            await show_each(shown, show_json_line if as_json else _show_envelope, count, for_s)

    run_until_interrupted(listen())


def _show_envelope(envelope: Envelope) -> None:
    name = ".".join(envelope.type.split(".")[2:4])
    time = envelope.time.astimezone().strftime("%H:%M:%S")
    fields = _cut(_fields_of(envelope), _SHOWN_WATCHED_CHARACTERS)
    say_data(f"{time}  {name:<28} {envelope.mbtraceid or '-'}  {envelope.requester}  {fields}")
