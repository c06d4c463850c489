"""Server-sent events: keep-alive comments, a limit on open streams, closed with the gateway."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Request
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event
from pydantic import BaseModel
from starlette.types import Message, Receive, Scope, Send

from bus_schema.dialogue import Answered
from bus_schema.replies import Code, restarts
from gateway.problems import EXPECTED, Problem
from mindbus.errors import MindBusError

EventT = TypeVar("EventT")

_KEEP_ALIVE = format_sse_event(comment="alive")
_RETRY_MS = 2000


class AnswerChunk(BaseModel):
    """Part of an answer; `restart` means that the answer starts over, and the parts before it are void."""

    text: str
    restart: bool = False


class TooManyStreams(MindBusError, code=Code.UNAVAILABLE):
    """As many streams of events are open as the gateway keeps; close one, or raise MINDBUS_GATEWAY_MAX_STREAMS."""


class ChunkedResponse(StreamingResponse):
    """A streamed body whose generator is closed however the response ends."""

    def __init__(self, chunks: AsyncGenerator[bytes], status: int = 200, headers: dict[str, str] | None = None) -> None:
        super().__init__(chunks, status, headers)
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._chunks):
            await super().__call__(scope, receive, send)


class EventStream(ChunkedResponse):
    """A stream of server-sent events, abandoned if the client takes nothing for `stalled_after_s`."""

    media_type = "text/event-stream"

    def __init__(self, frames: AsyncGenerator[bytes], stalled_after_s: float) -> None:
        # Without these headers proxies buffer the response.
        super().__init__(frames, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._stalled_after_s = stalled_after_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(self._stalled_after_s):
                await send(message)

        with suppress(TimeoutError):
            await super().__call__(scope, receive, send_in_time)


class EventStreams:
    """All open streams of this process."""

    def __init__(self, max_streams: int, keep_alive_s: float = 15.0, stalled_after_s: float = 60.0) -> None:
        self._max_streams, self._keep_alive_s, self._stalled_after_s = max_streams, keep_alive_s, stalled_after_s
        self.open_now = 0
        self._closing = asyncio.Event()
        self._cleanups: set[asyncio.Task[None]] = set()

    def respond(self, frames: AsyncGenerator[bytes], may_go_on: Callable[[], bool] = lambda: True) -> EventStream:
        """A response with these frames, ended where it may not go on. Raises TooManyStreams."""
        self.require_room()
        return EventStream(self._with_keep_alive(frames, may_go_on), self._stalled_after_s)

    def require_room(self) -> None:
        """Raises TooManyStreams."""
        if self.open_now >= self._max_streams:
            raise TooManyStreams

    def close(self) -> None:
        """End all streams; their clients reconnect to the next gateway."""
        self._closing.set()

    async def _with_keep_alive(
        self, frames: AsyncGenerator[bytes], may_go_on: Callable[[], bool]
    ) -> AsyncGenerator[bytes]:
        self.open_now += 1
        closing = asyncio.ensure_future(self._closing.wait())
        upcoming = asyncio.ensure_future(anext(frames, b""))
        try:
            while True:
                await asyncio.wait({upcoming, closing}, timeout=self._keep_alive_s, return_when="FIRST_COMPLETED")
                if closing.done() or not may_go_on() or (upcoming.done() and not upcoming.result()):
                    return
                if upcoming.done():
                    yield upcoming.result()
                    upcoming = asyncio.ensure_future(anext(frames, b""))
                else:
                    yield _KEEP_ALIVE
        finally:
            self.open_now -= 1
            closing.cancel()
            # A cancelled generator cannot await the end of its source: a task of its own does.
            cleanup = asyncio.create_task(_close(upcoming, frames))
            self._cleanups.add(cleanup)
            cleanup.add_done_callback(self._cleanups.discard)


async def event_frames(events: AsyncGenerator[EventT], frame: Callable[[EventT], bytes]) -> AsyncGenerator[bytes]:
    """A first comment with the reconnection time, then a frame for each event."""
    yield format_sse_event(comment="from here on", retry=_RETRY_MS)
    async with aclosing(events):
        async for event in events:
            yield frame(event)


async def answer_frames(
    first: str | Answered, rest: AsyncGenerator[str | Answered], cancel: Callable[[], None]
) -> AsyncGenerator[bytes]:
    """Frames of an answer; where the reader hangs up before its end, the rest is cancelled."""
    is_over = False
    async with aclosing(rest):
        try:
            yield _answer_frame(first)
            is_over = isinstance(first, Answered)
            async for chunk in rest:
                is_over = isinstance(chunk, Answered)
                yield _answer_frame(chunk)
        except EXPECTED as error:
            is_over = True
            yield format_sse_event(event="error", data_str=Problem.of(error).model_dump_json())
        finally:
            if not is_over:
                cancel()


def _answer_frame(chunk: str | Answered) -> bytes:
    if isinstance(chunk, Answered):
        return format_sse_event(event="answered", data_str=chunk.model_dump_json())
    part = AnswerChunk(text=chunk, restart=restarts(chunk))
    return format_sse_event(event="piece", data_str=part.model_dump_json(exclude_defaults=True))


async def _close(upcoming: "asyncio.Future[bytes]", frames: AsyncGenerator[bytes]) -> None:
    upcoming.cancel()
    await asyncio.gather(upcoming, return_exceptions=True)
    await frames.aclose()


def _streams(request: Request) -> EventStreams:
    streams: EventStreams = request.app.state.streams
    return streams


# Parameters of endpoints that stream.
StreamsDependency = Annotated[EventStreams, Depends(_streams)]
LastEventId = Annotated[str | None, Header(max_length=256)]
STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}


def accepts_stream(request: Request) -> bool:
    """True if the client asks for server-sent events instead of one JSON answer."""
    return "text/event-stream" in request.headers.get("accept", "")
