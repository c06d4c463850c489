"""What an endpoint is given."""

from typing import Annotated

from fastapi import Depends, Request

from gateway.backend import Backend
from gateway.event_streams import EventStreams


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


def _streams(request: Request) -> EventStreams:
    streams: EventStreams = request.app.state.streams
    return streams


Desk = Annotated[Backend, Depends(_backend)]
OpenStreams = Annotated[EventStreams, Depends(_streams)]


def wants_stream(request: Request) -> bool:
    """Whether the client would hear events rather than wait for one answer."""
    return "text/event-stream" in request.headers.get("accept", "")
