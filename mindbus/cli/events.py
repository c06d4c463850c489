"""The command `events`: the timeline that the tracker keeps."""

import json
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from bus_schema.timeline import GetTimeline, TimelineEvent
from mindbus.cli.console import show_result, show_table
from mindbus.cli.errors import UsageError
from mindbus.cli.options import LOCAL_USER, As, Json, Trace
from mindbus.cli.session import items_of

app = typer.Typer()

_PAGE = 500
_SHOWN_CHARACTERS = 100
# Clocks differ.
_AHEAD = timedelta(minutes=1)
_FORMATS = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S.%f%z"]


@app.command()
def events(
    since: Annotated[datetime | None, typer.Option("--since", formats=_FORMATS, help="Not before then.")] = None,
    until: Annotated[datetime | None, typer.Option("--until", formats=_FORMATS, help="Before then.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="About that user.")] = None,
    topic: Annotated[list[str] | None, typer.Option("--topic", help="Of that topic; may be given again.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="At most so many.")] = 200,
    oldest: Annotated[bool, typer.Option("--oldest", help="The first of them instead of the last.")] = False,
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
    data = {key: value for key, value in (event.envelope.data or {}).items() if value not in (None, [], {})}
    shown_fields = "  ".join(f"{key}: {_text(value)}" for key, value in data.items())
    at = event.time.astimezone().strftime("%m-%d %H:%M:%S")
    return at, event.name, event.trace_id or "-", event.envelope.mbrequester, shown_fields[:_SHOWN_CHARACTERS]


def _text(value: object) -> str:
    """A value as people read it: a text on one line, anything nested as JSON."""
    return " ".join(value.split()) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
