"""Locks, counters, in SQL or in Redis: one behaviour."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

import pytest
from redis.asyncio import Redis

from benchmarks.servers.redis import PrivateRedis
from bus_schema.swm import Lock
from memory.errors import CoordinationAway, CounterFull, LockNotFree, LockNotHeld, WrongRedis
from memory.swm.coordination import MAX_VALUE, CoordinationStore, LockQueue, LockRequest
from memory.swm.redis_coordination import RedisCoordination
from memory.swm.sql_coordination import SqlCoordination
from mindbus.sql.database import Database
from mindbus.testing.wait import until
from tests.clocks import Clock

LEASE = timedelta(seconds=30)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.backends),
        pytest.param("redis", marks=pytest.mark.backends),
    ]
)
def place(request: pytest.FixtureRequest) -> tuple[str, str | None]:
    """The URL of the database, that of Redis."""
    in_redis = request.param == "redis"
    redis_url: str | None = request.getfixturevalue("redis_url") if in_redis else None
    database_of = request.getfixturevalue(f"{'sqlite' if in_redis else request.param}_database_of")
    return database_of("swm"), redis_url


@pytest.fixture
async def stores(place: tuple[str, str | None], clock: Clock) -> AsyncIterator[CoordinationStore]:
    database = Database(place[0], "swm")
    found: CoordinationStore = (
        SqlCoordination(database, clock) if place[1] is None else RedisCoordination(place[1], clock)
    )
    await found.open()
    yield found
    await found.close()
    await database.dispose()


def want(ticket: str = "1", holder: str = "agent.editor.1") -> LockRequest:
    return LockRequest("report", holder, LEASE, ticket)


async def taken(stores: CoordinationStore, ticket: str = "1") -> Lock:
    lock = await stores.take(want(ticket))
    assert isinstance(lock, Lock)
    return lock


async def test_what_was_closed_opens_again_with_all_it_knew(stores: CoordinationStore) -> None:
    lock = await taken(stores)
    await stores.add("drafts", 1, "op-1")
    await stores.close()
    await stores.open()

    assert await taken(stores) == lock
    assert await stores.add("drafts", 1, "op-2") == 2


async def test_one_alone_holds_a_lock(stores: CoordinationStore, clock: Clock) -> None:
    lock = await taken(stores)

    assert lock.expires == clock() + LEASE
    assert await stores.take(want("2")) == lock.expires
    info = await stores.lock_info("report")
    assert (info.holder, info.fencing, info.expires) == ("agent.editor.1", 1, lock.expires)


async def test_the_same_ticket_gets_the_same_lock(stores: CoordinationStore, clock: Clock) -> None:
    lock = await taken(stores)
    clock.advance(seconds=5)

    assert await taken(stores) == lock


async def test_a_lease_ends_by_itself_and_fencing_goes_on(stores: CoordinationStore, clock: Clock) -> None:
    first = await taken(stores)
    clock.advance(seconds=30)

    assert (await stores.lock_info("report")).holder is None
    second = await taken(stores, "2")
    assert second.fencing == first.fencing + 1
    assert second.token != first.token
    with pytest.raises(LockNotHeld):
        await stores.release("report", first.token)
    with pytest.raises(LockNotHeld):
        await stores.renew("report", first.token, LEASE)


async def test_who_renews_in_time_holds_on(stores: CoordinationStore, clock: Clock) -> None:
    lock = await taken(stores)
    clock.advance(seconds=20)
    renewed = await stores.renew("report", lock.token, LEASE)
    clock.advance(seconds=20)

    assert (renewed.token, renewed.fencing) == (lock.token, lock.fencing)
    assert await stores.take(want("2")) == renewed.expires


async def test_who_is_late_has_lost_it(stores: CoordinationStore, clock: Clock) -> None:
    lock = await taken(stores)
    clock.advance(seconds=30)

    with pytest.raises(LockNotHeld):
        await stores.renew("report", lock.token, LEASE)
    with pytest.raises(LockNotHeld):
        await stores.release("report", lock.token)


async def test_to_let_go_twice_is_as_good_as_once(stores: CoordinationStore) -> None:
    lock = await taken(stores)
    await stores.release("report", lock.token)
    await stores.release("report", lock.token)

    assert (await taken(stores, "2")).fencing == 2


async def test_nobody_lets_go_for_another(stores: CoordinationStore) -> None:
    await taken(stores)

    with pytest.raises(LockNotHeld):
        await stores.release("report", "another")
    with pytest.raises(LockNotHeld):
        await stores.release("nothing", "another")


async def test_a_lock_that_nobody_has_ever_held_is_free(stores: CoordinationStore) -> None:
    info = await stores.lock_info("nothing")

    assert (info.holder, info.fencing, info.expires) == (None, 0, None)


async def test_whoever_waits_is_served_in_turn(stores: CoordinationStore, clock: Clock) -> None:
    lock_queue = LockQueue(stores, clock)
    served: list[str] = []
    first = await lock_queue.acquire(want("0"), clock())

    async def visit(ticket: str) -> None:
        lock = await lock_queue.acquire(want(ticket), clock() + timedelta(minutes=1))
        served.append(ticket)
        await stores.release("report", lock.token)
        lock_queue.notify_release("report")

    def waits(number: int) -> bool:
        return lock_queue.waiting("report") == number

    visits = []
    for number in range(1, 8):
        visits.append(asyncio.create_task(visit(str(number))))
        await until(partial(waits, number))
    await stores.release("report", first.token)
    lock_queue.notify_release("report")
    await asyncio.gather(*visits)

    assert served == [str(number) for number in range(1, 8)]
    assert lock_queue.waiting("report") == 0


async def test_a_holder_that_dies_is_followed_when_its_lease_ends(stores: CoordinationStore, clock: Clock) -> None:
    lock_queue = LockQueue(stores, clock)
    await lock_queue.acquire(want("0"), clock())
    waiting = asyncio.create_task(lock_queue.acquire(want("1"), clock() + timedelta(minutes=1)))
    await until(lambda: lock_queue.waiting("report") == 1)
    clock.advance(seconds=30)

    assert (await waiting).fencing == 2


async def test_who_has_waited_long_enough_hears_no_and_leaves_the_line(stores: CoordinationStore, clock: Clock) -> None:
    lock_queue = LockQueue(stores, clock)
    await lock_queue.acquire(want("0"), clock())

    with pytest.raises(LockNotFree):
        await lock_queue.acquire(want("1"), clock())
    waiting = asyncio.create_task(lock_queue.acquire(want("2"), clock() + timedelta(seconds=10)))
    await until(lambda: lock_queue.waiting("report") == 1)
    clock.advance(seconds=10)
    with pytest.raises(LockNotFree):
        await waiting
    assert lock_queue.waiting("report") == 0


async def test_a_counter_counts_each_operation_once(stores: CoordinationStore) -> None:
    add = stores.add

    assert await stores.value("drafts") == 0
    assert await add("drafts", 5, "op-1") == 5
    assert await add("drafts", -2, "op-2") == 3
    assert await add("drafts", 5, "op-1") == 5
    assert await add("pages", 1, "op-1") == 1
    assert await stores.value("drafts") == 3


async def test_cleared_counters_begin_anew(stores: CoordinationStore) -> None:
    for name in ("drafts", "pages"):
        await stores.add(name, 5, "op-1")

    assert await stores.clear_counters() == 2
    assert await stores.add("drafts", 1, "op-1") == 1


async def test_a_counter_stays_within_what_is_exact(stores: CoordinationStore) -> None:
    await stores.add("drafts", MAX_VALUE, "op-1")

    with pytest.raises(CounterFull):
        await stores.add("drafts", MAX_VALUE, "op-2")
    assert await stores.add("drafts", -1, "op-3") == MAX_VALUE - 1


@pytest.mark.parametrize("many", [500, pytest.param(10_000, marks=pytest.mark.proof)])
async def test_concurrent_increments_are_all_counted(stores: CoordinationStore, many: int) -> None:
    # Each is sent twice, as after a lost answer.
    additions = (stores.add("drafts", 1, f"op-{number % many}") for number in range(2 * many))
    values = await asyncio.gather(*additions)

    assert await stores.value("drafts") == many
    assert sorted(set(values)) == list(range(1, many + 1))


@pytest.mark.backends
async def test_a_redis_that_would_evict_locks_is_refused(redis_url: str, tmp_path: object) -> None:
    async with Redis.from_url(redis_url) as redis:
        await redis.config_set("maxmemory-policy", "allkeys-lru")
    stores = RedisCoordination(redis_url, Clock())

    with pytest.raises(WrongRedis, match="noeviction"):
        await stores.open()
    await stores.close()


@pytest.mark.slow
async def test_what_redis_does_after_its_asker_was_refused_is_nobodys_lock(own_redis: PrivateRedis) -> None:
    coordinating = RedisCoordination(own_redis.url, Clock())
    await coordinating.open()
    own_redis.freeze()
    with pytest.raises(CoordinationAway):
        await taken(coordinating)
    own_redis.thaw()

    async def held() -> Lock | datetime | None:
        with suppress(CoordinationAway):
            return await coordinating.take(want("2"))
        return None

    lock = await until(held)
    await coordinating.close()
    assert isinstance(lock, Lock)
