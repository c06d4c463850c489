"""Both Redis servers of the working memory stop for half a minute, while agents go on."""

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from redis.asyncio import Redis

from benchmarks.servers.redis import PrivateRedis
from bus_schema.ids import mint
from bus_schema.kem_query import KemQuery
from bus_schema.replies import Code
from bus_schema.swm import Lock
from mindbus import AgentSDK
from mindbus.sdk.errors import MemoryAway
from mindbus.sdk.requests import RetryPolicy
from mindbus.testing.wait import until
from tests.fleets import fleet_of, settings_for
from tests.installed import FLEET
from tests.memory_kit import SPACE, a_draft
from tests.redises import private_redis

pytestmark = pytest.mark.proof

AWAY_S = 30


@pytest.fixture
async def redises() -> AsyncIterator[list[PrivateRedis]]:
    """One for the units at hand, one for locks with counters."""
    servers = [private_redis(keeps=True), private_redis(keeps=True)]
    for server in servers:
        await server.start()
    yield servers
    for server in servers:
        await server.remove()


@pytest.fixture
async def memory(vhost_url: str, tmp_path: Path, redises: list[PrivateRedis]) -> AsyncIterator[AgentSDK]:
    where = {"cache_redis_url": redises[0].url, "redis_url": redises[1].url}
    settings = settings_for(vhost_url, tmp_path, embedding_model=SPACE.model, embedding_dim=SPACE.dim, **where)
    async with fleet_of(FLEET["glm"], FLEET["swm"], settings=settings) as fleet:
        yield AgentSDK(bus=fleet.bus.acting_as("agent.alice"), retry_policy=RetryPolicy(attempts=1))


@dataclass
class Agent:
    """Goes on whatever is away; it knows what it was promised, what it was refused."""

    memory: AgentSDK
    published: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    async def publish(self) -> None:
        draft = a_draft(f"fact {len(self.published)}", metadata={"project_id": "alpha"})
        (item,) = (await self.memory.publish_kems_to_swm_batch([draft], persist_to_glm_if_new_or_updated=True)).items
        assert item.status == "stored"
        self.published.append(item.kem_id)

    async def go_on(self) -> None:
        await self.publish()
        await until(self.can_read, what="reads fall through to the global memory")
        with pytest.raises(MemoryAway) as no_lock:
            await self.memory.acquire_distributed_lock("report")
        operation_id = mint("op")
        with pytest.raises(MemoryAway) as no_count:
            await self.memory.increment_distributed_counter("drafts", operation_id=operation_id)
        assert no_lock.value.code is no_count.value.code is Code.UNAVAILABLE
        self.refused.append(operation_id)

    async def can_read(self) -> bool:
        """The oldest as well as the newest."""
        ends = {self.published[0], self.published[-1]}
        page = await self.memory.query_swm(KemQuery(ids=tuple(ends)))
        return {item.kem.id for item in page.items} == ends

    async def is_kept(self, kem_id: str) -> None:
        await until(lambda: self.memory.get_kem(kem_id, force_remote=True), what="the global memory has it")

    async def lock(self) -> Lock | None:
        try:
            return await self.memory.acquire_distributed_lock("report")
        except MemoryAway:
            return None


@pytest.mark.parametrize("is_frozen", [False, True], ids=["killed", "frozen"])
async def test_agents_go_on_nothing_is_lost_all_recovers(
    memory: AgentSDK, redises: list[PrivateRedis], is_frozen: bool, report: Callable[[str], None]
) -> None:
    agent = Agent(memory)
    await agent.publish()
    await until(lambda: memory.get_kem(agent.published[0], force_remote=True))
    held = await memory.acquire_distributed_lock("report", lease_ms=100)
    counted = await memory.increment_distributed_counter("drafts")

    for server in redises:
        await stop(server, is_frozen=is_frozen)
    back_at = time.monotonic() + AWAY_S
    while time.monotonic() < back_at:
        await agent.go_on()
    for server in redises:
        await bring_back(server, is_frozen=is_frozen)

    began = time.monotonic()
    lock = await until(agent.lock, 60, what="locks are there again")
    await until(lambda: _are_at_hand(redises[0], agent.published), 60, what="the cache has what it missed")
    took_s = time.monotonic() - began
    report(f"{len(agent.published)} units published; locks and all units there {took_s:.1f} s after Redis")
    assert lock is not None
    assert lock.fencing > held.fencing
    for operation_id in agent.refused:
        # Whoever was refused tries again: what had been counted all the same is counted once.
        await memory.increment_distributed_counter("drafts", operation_id=operation_id)
    assert await memory.get_distributed_counter("drafts") == counted + len(agent.refused)
    for kem_id in agent.published:
        await agent.is_kept(kem_id)


async def stop(server: PrivateRedis, *, is_frozen: bool) -> None:
    if is_frozen:
        server.freeze()
    else:
        await server.kill()


async def bring_back(server: PrivateRedis, *, is_frozen: bool) -> None:
    if is_frozen:
        server.thaw()
    else:
        await server.start()


async def _are_at_hand(server: PrivateRedis, published: list[str]) -> bool:
    async with Redis.from_url(server.url) as redis:
        return await redis.exists(*(f"swm_kem:{kem_id}" for kem_id in published)) == len(published)
