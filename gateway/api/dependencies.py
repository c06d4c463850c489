"""Dependencies and parameter types that the endpoints share."""

from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request

from gateway.backend import Backend
from gateway.event_streams import EventStreams


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


def _streams(request: Request) -> EventStreams:
    streams: EventStreams = request.app.state.streams
    return streams


BackendDependency = Annotated[Backend, Depends(_backend)]
StreamsDependency = Annotated[EventStreams, Depends(_streams)]
Cursor = Annotated[str | None, Query(max_length=256)]
LastEventId = Annotated[str | None, Header(max_length=256)]
STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}


def accepts_stream(request: Request) -> bool:
    """True if the client asks for server-sent events instead of one JSON answer."""
    return "text/event-stream" in request.headers.get("accept", "")
