"""EventStreams of events: alive, bounded, ended in good order."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from starlette.types import Message

from gateway.event_streams import EventStream, EventStreams, TooManyStreams
from mindbus.testing.wait import until


class Client:
    """One end of a connection, as the web server has it; a stalled one takes nothing more."""

    def __init__(self, *, is_stalled: bool = False) -> None:
        self.body = b""
        self.is_stalled = is_stalled
        self.has_left = asyncio.Event()

    async def receive(self) -> Message:
        await self.has_left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self.is_stalled and message["type"] == "http.response.body":
            await asyncio.Event().wait()
        self.body += message.get("body", b"")

    def hear(self, stream: EventStream) -> "asyncio.Task[None]":
        return asyncio.create_task(stream({"type": "http", "asgi": {"spec_version": "2.3"}}, self.receive, self.send))


class Frames:
    """Frames on demand, with a record of whether their source was closed."""

    def __init__(self) -> None:
        self.waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.is_closed = False

    async def __call__(self) -> AsyncGenerator[bytes]:
        try:
            while (frame := await self.waiting.get()) is not None:
                yield frame
        finally:
            self.is_closed = True


async def test_frames_come_as_they_are_and_end_the_stream_with_their_own() -> None:
    streams, client, frames = EventStreams(1), Client(), Frames()
    hearing = client.hear(streams.respond(frames()))
    frames.waiting.put_nowait(b"one;")
    await until(lambda: client.body == b"one;")
    frames.waiting.put_nowait(b"two;")
    frames.waiting.put_nowait(None)
    await hearing

    assert client.body == b"one;two;"
    assert streams.open_now == 0


async def test_a_silent_stream_says_that_it_is_alive_and_loses_nothing() -> None:
    streams, client, frames = EventStreams(1, keep_alive_s=0.01), Client(), Frames()
    hearing = client.hear(streams.respond(frames()))
    await until(lambda: client.body.count(b": alive\n\n") >= 3)
    frames.waiting.put_nowait(b"data: 1\n\n")
    frames.waiting.put_nowait(None)
    await hearing

    assert client.body.count(b"data: 1\n\n") == 1


async def test_there_are_so_many_at_most_and_who_leaves_makes_room() -> None:
    streams, client, frames = EventStreams(1), Client(), Frames()
    hearing = client.hear(streams.respond(frames()))
    await until(lambda: streams.open_now == 1)
    with pytest.raises(TooManyStreams):
        streams.respond(Frames()())

    client.has_left.set()
    await hearing

    await until(lambda: frames.is_closed)
    assert streams.open_now == 0
    streams.require_room()


async def test_a_client_that_takes_nothing_is_given_up() -> None:
    streams, client, frames = EventStreams(1, stalled_after_s=0.05), Client(is_stalled=True), Frames()
    frames.waiting.put_nowait(b"data: 1\n\n")

    await client.hear(streams.respond(frames()))

    await until(lambda: frames.is_closed and streams.open_now == 0)


async def test_all_end_with_the_gateway() -> None:
    streams, client, frames = EventStreams(1), Client(), Frames()
    hearing = client.hear(streams.respond(frames()))
    await until(lambda: streams.open_now == 1)

    streams.close()
    await hearing

    await until(lambda: frames.is_closed)
