"""Server-sent events: kept alive, bounded in number, ended with the gateway."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event
from starlette.types import Message, Receive, Scope, Send

_ALIVE = format_sse_event(comment="alive")


class TooManyStreams(Exception):
    """As many streams of events are open as the gateway keeps; close one, or raise MINDBUS_GATEWAY_MAX_STREAMS."""


class ChunkedResponse(StreamingResponse):
    """A body in pieces, whose source is closed however it ends."""

    def __init__(self, pieces: AsyncGenerator[bytes], status: int = 200, headers: dict[str, str] | None = None) -> None:
        super().__init__(pieces, status, headers)
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._pieces):
            await super().__call__(scope, receive, send)


class EventStream(ChunkedResponse):
    """A stream that is given up where its client has not taken anything for too long."""

    media_type = "text/event-stream"

    def __init__(self, frames: AsyncGenerator[bytes], stalled_after_s: float) -> None:
        # Proxies would hold back what they take for an ordinary page.
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

    def __init__(self, most: int, keep_alive_s: float = 15.0, stalled_after_s: float = 60.0) -> None:
        self._most, self._keep_alive_s, self._stalled_after_s = most, keep_alive_s, stalled_after_s
        self.open_now = 0
        self._closing = asyncio.Event()
        self._settling: set[asyncio.Task[None]] = set()

    def respond(self, frames: AsyncGenerator[bytes]) -> EventStream:
        """Stream them to a client. Raises TooManyStreams."""
        self.require_room()
        return EventStream(self._lively(frames), self._stalled_after_s)

    def require_room(self) -> None:
        """Raises TooManyStreams."""
        if self.open_now >= self._most:
            raise TooManyStreams(TooManyStreams.__doc__)

    def close(self) -> None:
        """End all of them; their clients come back to whoever listens then."""
        self._closing.set()

    async def _lively(self, frames: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        self.open_now += 1
        closing = asyncio.ensure_future(self._closing.wait())
        upcoming = asyncio.ensure_future(anext(frames, b""))
        try:
            while True:
                await asyncio.wait({upcoming, closing}, timeout=self._keep_alive_s, return_when="FIRST_COMPLETED")
                if closing.done() or (upcoming.done() and not upcoming.result()):
                    return
                if upcoming.done():
                    yield upcoming.result()
                    upcoming = asyncio.ensure_future(anext(frames, b""))
                else:
                    yield _ALIVE
        finally:
            self.open_now -= 1
            closing.cancel()
            # Whoever is cancelled here cannot wait for the end of what is under way.
            settling = asyncio.create_task(_settled(upcoming, frames))
            self._settling.add(settling)
            settling.add_done_callback(self._settling.discard)


async def _settled(upcoming: "asyncio.Future[bytes]", frames: AsyncGenerator[bytes]) -> None:
    upcoming.cancel()
    await asyncio.gather(upcoming, return_exceptions=True)
    await frames.aclose()
