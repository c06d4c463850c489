"""Whoever works with an index in a thread has ended when the search lets it go."""

import asyncio

import pytest

from memory.lsm.search.search import _both


class Slow:
    """Work that goes on until it may end."""

    def __init__(self) -> None:
        self.may_end, self.has_ended = asyncio.Event(), False

    async def work(self) -> str:
        await self.may_end.wait()
        self.has_ended = True
        return "done"


async def fail() -> str:
    raise ZeroDivisionError


async def let_all_run() -> None:
    """Everything that can go on has gone on."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_an_error_comes_out_once_both_have_ended() -> None:
    slow = Slow()
    both = asyncio.create_task(_both(fail(), slow.work()))
    await let_all_run()
    assert not both.done()

    slow.may_end.set()
    with pytest.raises(ZeroDivisionError):
        await both
    assert slow.has_ended


async def test_a_cancellation_waits_for_both_too() -> None:
    one, other = Slow(), Slow()
    both = asyncio.create_task(_both(one.work(), other.work()))
    await let_all_run()
    both.cancel()
    await let_all_run()
    assert not both.done()

    for each in (one, other):
        each.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await both
    assert one.has_ended
    assert other.has_ended


async def test_results_come_in_their_order() -> None:
    slow = Slow()
    slow.may_end.set()

    async def quick() -> int:
        return 1

    assert await _both(slow.work(), quick()) == ("done", 1)
