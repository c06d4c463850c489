"""Calls take their turn at an endpoint: chats at once, background work when there is room, interrupted for a chat."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from agents.models.endpoint import ModelEndpoint
from agents.models.errors import ModelInterrupted
from mindbus.testing.wait import until


class Work:
    """Background calls by name: how often each has begun, and which are let go on."""

    def __init__(self, endpoint: ModelEndpoint) -> None:
        self.endpoint = endpoint
        self.begun: list[str] = []
        self.goes_on = asyncio.Event()

    def start(self, name: str) -> asyncio.Task[str]:
        return asyncio.create_task(self.endpoint.background(self._call(name)))

    def _call(self, name: str) -> Callable[[], Awaitable[str]]:
        async def call() -> str:
            self.begun.append(name)
            await self.goes_on.wait()
            return name

        return call


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_where_one_is_served_at_a_time_a_chat_interrupts_the_call_in_flight_which_begins_again() -> None:
    work = Work(ModelEndpoint(1))
    first, second = work.start("first"), work.start("second")
    await settled()
    assert work.begun == ["first"]

    async with work.endpoint.chat():
        await settled()
        assert work.begun == ["first"]
    await settled()
    assert work.begun in (["first", "first"], ["first", "second"])

    work.goes_on.set()
    assert [await first, await second] == ["first", "second"]
    assert sorted(work.begun) == ["first", "first", "second"]


async def test_where_four_are_served_at_once_background_work_leaves_a_place_for_a_chat() -> None:
    work = Work(ModelEndpoint(4))
    calls = [work.start(str(number)) for number in range(5)]
    await settled()
    assert len(work.begun) == 3

    async with work.endpoint.chat():
        await settled()
        assert len(work.begun) == 3
        async with work.endpoint.chat():
            work.goes_on.set()
            await settled()
    await asyncio.gather(*calls)

    assert sorted(work.begun) == ["0", "1", "2", "2", "3", "4"], "the second chat interrupts the youngest call"


async def test_a_chat_in_another_process_counts_until_it_ends_or_takes_too_long() -> None:
    work = Work(ModelEndpoint(1))
    call = work.start("call")
    await settled()

    work.endpoint.chat_elsewhere("msg_1", 60)
    await settled()
    assert not call.done()
    work.endpoint.chat_ended_elsewhere("msg_1")
    await settled()
    assert work.begun == ["call", "call"]
    work.endpoint.chat_elsewhere("msg_2", 0.01)
    work.goes_on.set()

    assert await call == "call"
    assert len(work.begun) == 3


async def test_a_cancelled_call_does_not_begin_again() -> None:
    work = Work(ModelEndpoint(1))
    call = work.start("call")
    await settled()

    call.cancel()
    await asyncio.wait([call])
    async with work.endpoint.chat():
        pass
    await settled()

    assert call.cancelled()
    assert work.begun == ["call"]


async def test_an_error_is_the_callers_and_makes_room() -> None:
    endpoint = ModelEndpoint(1)

    async def fail() -> str:
        raise ConnectionError

    results = await asyncio.gather(*(endpoint.background(fail) for _ in range(3)), return_exceptions=True)

    assert [type(each) for each in results] == [ConnectionError] * 3


async def test_a_streamed_call_shows_what_came_before_a_chat_interrupted_it() -> None:
    endpoint = ModelEndpoint(1)
    shown: list[str] = []
    goes_on = asyncio.Event()

    async def pieces() -> AsyncIterator[str]:
        yield "one "
        await goes_on.wait()
        yield "two"

    async def listen() -> None:
        async for piece in endpoint.background_pieces(pieces):
            shown.append(piece)

    listening = asyncio.create_task(listen())
    await until(lambda: shown == ["one "])
    async with endpoint.chat():
        with pytest.raises(ModelInterrupted):
            await listening
    goes_on.set()
    await listen()

    assert shown == ["one ", "one ", "two"]
