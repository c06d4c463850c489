"""The timeline over HTTP: in pages and as a stream of server-sent events."""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.sse import format_sse_event
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from bus_schema.artifacts import TraceId
from bus_schema.identities import UserId
from bus_schema.timeline import (
    GetTimeline,
    GetTimelineBuckets,
    TimelineBuckets,
    TimelineEvent,
    TimelinePage,
    Topic,
)
from gateway.backend import Backend, BackendDependency
from gateway.event_streams import STREAM_RESPONSES, LastEventId, StreamsDependency, event_frames

router = APIRouter(tags=["timeline"])

# Clocks differ.
_CLOCK_SKEW = timedelta(minutes=1)


class EventConditions(BaseModel):
    """Conditions on events; all that you give must hold."""

    model_config = ConfigDict(extra="forbid")
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    user: UserId | None = None
    trace: TraceId | None = None
    topic: list[Topic] = Field(default=[], max_length=20)

    def conditions(self) -> dict[str, Any]:
        """Fields of a query but for its time."""
        return {"user_id": self.user, "trace_id": self.trace, "topics": tuple(self.topic)}

    def require_past(self, backend: Backend) -> None:
        """Raises RequestValidationError if `since` lies in the future."""
        now = backend.clock()
        if self.since is not None and self.since > now + _CLOCK_SKEW:
            message = f"lies in the future: here it is {now:%Y-%m-%dT%H:%M:%SZ}"
            raise RequestValidationError([{"type": "future", "loc": ("query", "since"), "msg": message}])


class TimelineParams(EventConditions):
    """Conditions, and the position to read from."""

    cursor: str | None = Field(default=None, max_length=256)

    def query(self, limit: int, cursor: str | None) -> GetTimeline:
        return GetTimeline(since=self.since, until=self.until, cursor=cursor, limit=limit, **self.conditions())


class TimelinePageParams(TimelineParams):
    """A page of events, or of failures."""

    limit: int = Field(default=100, ge=1, le=500)
    newest_first: bool = False
    failures_only: bool = False


class TimelineBucketsParams(EventConditions):
    """Conditions, and the number of buckets between `since` and `until`, which defaults to now."""

    since: AwareDatetime
    buckets: int = Field(default=120, ge=1, le=500)


@router.get("/timeline")
async def timeline(params: Annotated[TimelinePageParams, Query()], backend: BackendDependency) -> TimelinePage:
    """Events in the order of recording, or newest first: the items of `mindbus events --json`."""
    params.require_past(backend)
    query = params.query(params.limit, params.cursor)
    selected = {"newest_first": params.newest_first, "failures_only": params.failures_only}
    return await backend.recorded(query.model_copy(update=selected))


@router.get("/timeline/buckets")
async def timeline_buckets(
    params: Annotated[TimelineBucketsParams, Query()], backend: BackendDependency
) -> TimelineBuckets:
    """Number of events, and of failures among them, by service, topic and time."""
    params.require_past(backend)
    until = params.until or backend.clock()
    query = GetTimelineBuckets(since=params.since, until=until, buckets=params.buckets, **params.conditions())
    return await backend.counted(query)


@router.get("/events", response_class=Response, responses=STREAM_RESPONSES)
async def events(
    params: Annotated[TimelineParams, Query()],
    backend: BackendDependency,
    streams: StreamsDependency,
    last_event_id: LastEventId = None,
) -> Response:
    """Events as they happen, starting after `Last-Event-ID` or the cursor, otherwise at `since`, otherwise now."""
    params.require_past(backend)
    streams.require_room()
    cursor = last_event_id or params.cursor
    from_beginning = cursor is None and params.since is not None
    start = await backend.tail.start_cursor("0" if from_beginning else cursor)
    query = await backend.visible(params.query(200, start))
    return streams.respond(event_frames(backend.tail.follow(query), _frame), backend.is_current)


def _frame(event: TimelineEvent) -> bytes:
    return format_sse_event(id=str(event.sequence), data_str=event.model_dump_json())
