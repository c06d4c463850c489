"""What an endpoint is given."""

from typing import Annotated

from fastapi import Depends, Request

from gateway.backend import Backend
from gateway.streams import Streams


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


def _streams(request: Request) -> Streams:
    streams: Streams = request.app.state.streams
    return streams


Desk = Annotated[Backend, Depends(_backend)]
OpenStreams = Annotated[Streams, Depends(_streams)]


def wants_stream(request: Request) -> bool:
    """Whether the client would hear events rather than wait for one answer."""
    return "text/event-stream" in request.headers.get("accept", "")
