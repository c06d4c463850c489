"""The timeline, over HTTP: in pages, as a stream."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.sse import format_sse_event
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from bus_schema.artifacts import TraceId
from bus_schema.identities import UserId
from bus_schema.timeline import GetTimeline, TimelinePage, Topic
from gateway.api.dependencies import Desk, OpenStreams
from gateway.backend import Backend

router = APIRouter(tags=["timeline"])

# Clocks differ.
_AHEAD = timedelta(minutes=1)
_RETRY_MS = 2000


class TimelineParams(BaseModel):
    """Which events; all given conditions are ANDed."""

    model_config = ConfigDict(extra="forbid")
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    user: UserId | None = None
    trace: TraceId | None = None
    topic: list[Topic] = Field(default=[], max_length=20)
    cursor: str | None = Field(default=None, max_length=256)

    def query(self, limit: int, cursor: str | None) -> GetTimeline:
        """The same as storage is asked."""
        return GetTimeline(
            since=self.since,
            until=self.until,
            user_id=self.user,
            trace_id=self.trace,
            topics=tuple(self.topic),
            cursor=cursor,
            limit=limit,
        )

    def require_past(self, desk: Backend) -> None:
        """Raises RequestValidationError where it asks for what cannot have happened yet."""
        now = desk.clock()
        if self.since is not None and self.since > now + _AHEAD:
            said = f"lies in the future: here it is {now:%Y-%m-%dT%H:%M:%SZ}"
            raise RequestValidationError([{"type": "future", "loc": ("query", "since"), "msg": said}])


class TimelinePageParams(TimelineParams):
    limit: int = Field(default=100, ge=1, le=500)


@router.get("/timeline")
async def timeline(wanted: Annotated[TimelinePageParams, Query()], desk: Desk) -> TimelinePage:
    """What has happened, in the order in which it was recorded: the items of `mindbus events --json`."""
    wanted.require_past(desk)
    return await desk.timeline(wanted.query(wanted.limit, wanted.cursor))


@router.get("/events", response_class=Response, responses={200: {"content": {"text/event-stream": {}}}})
async def events(
    wanted: Annotated[TimelineParams, Query()],
    desk: Desk,
    streams: OpenStreams,
    last_event_id: Annotated[str | None, Header(max_length=256)] = None,
) -> Response:
    """What happens, as it happens, from where `Last-Event-ID` or a cursor says; else from `since`, else from now."""
    wanted.require_past(desk)
    streams.require_room()
    cursor = last_event_id or wanted.cursor
    from_beginning = cursor is None and wanted.since is not None
    place = await desk.place("0" if from_beginning else cursor)
    return streams.respond(_frames(desk, wanted.query(200, place)))


async def _frames(desk: Backend, query: GetTimeline) -> AsyncGenerator[bytes]:
    yield format_sse_event(comment="from here on", retry=_RETRY_MS)
    async with aclosing(desk.follow(query)) as happening:
        async for event in happening:
            yield format_sse_event(id=str(event.sequence), data_str=event.model_dump_json())
