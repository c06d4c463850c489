"""A lease lasts as long as the work, or the work ends with it."""

import asyncio
from dataclasses import dataclass

import pytest

from bus_schema.replies import Code
from mindbus import ReplyError
from mindbus.sdk.coordination import renew_lease
from mindbus.sdk.errors import LockLost, MemoryFailed
from mindbus.testing.wait import until

LEASE_S = 0.3


@dataclass
class Lessor:
    """Renews, unless it is told to fail."""

    renewals: int = 0
    failure: Exception | None = None

    async def __call__(self) -> None:
        self.renewals += 1
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def lessor() -> Lessor:
    return Lessor()


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_it_is_renewed_until_the_work_is_done(lessor: Lessor) -> None:
    async with renew_lease(lessor, 1.0, now()):
        await until(lambda: lessor.renewals > 1)
    renewals = lessor.renewals

    assert [task.get_name() for task in asyncio.all_tasks() if task.get_name() == "lease"] == []
    assert lessor.renewals == renewals


async def test_where_it_is_lost_the_work_is_cut_short(lessor: Lessor) -> None:
    lessor.failure = ReplyError(Code.CONFLICT, "somebody else holds it")
    with pytest.raises(LockLost):
        async with renew_lease(lessor, LEASE_S, now()):
            await asyncio.Event().wait()

    assert lessor.renewals == 1


async def test_where_nobody_answers_the_work_ends_with_it(lessor: Lessor) -> None:
    lessor.failure = MemoryFailed("silence")
    with pytest.raises(LockLost):
        async with renew_lease(lessor, LEASE_S, now()):
            await asyncio.Event().wait()

    assert lessor.renewals > 1


async def test_one_that_was_waited_for_is_renewed_before_the_work_begins(lessor: Lessor) -> None:
    async with renew_lease(lessor, LEASE_S, now() - 60):
        assert lessor.renewals == 1

    lessor.failure = ReplyError(Code.CONFLICT, "it ended before it was heard of")
    with pytest.raises(LockLost):
        async with renew_lease(lessor, LEASE_S, now() - 60):
            pytest.fail("the work began")


async def test_the_works_own_timeouts_are_its_own(lessor: Lessor) -> None:
    with pytest.raises(TimeoutError):
        async with renew_lease(lessor, LEASE_S, now()):
            raise TimeoutError
