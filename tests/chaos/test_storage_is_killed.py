"""Storage is killed again and again while agents put artifacts: nothing is lost, nothing is there twice."""

import asyncio
import random
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bus_schema.fleet import State
from config.settings import FleetSettings
from mindbus.bus.deadletters import DeadLetters
from mindbus.sql.database import Database
from mindbus.testing.wait import until
from tests.busy_agents import Crowd, crowd_of
from tests.fleets import settings_for
from tests.intact import nothing_waits, require_artifacts, require_bytes, require_no_garbage, require_told_once
from tests.maintenance_kit import Keeper
from tests.management import Management
from tests.seaweed import Place
from tests.storage_kit import Depot
from tests.storage_nursery import Nursery
from tests.taps import DurableTap

SETTLED_WITHIN_S = 120
IS_KILLED_EARLY, EARLY_S, AT_WORK_S = 0.3, 2.0, 0.6
Strike = Callable[[Nursery, random.Random], Awaitable[int]]
pytestmark = [pytest.mark.chaos, pytest.mark.rabbit]


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest, vhost_url: str, s3_place: Place, tmp_path: Path) -> FleetSettings:
    database_url = None if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    stores = s3_place.settings(database_url=database_url, heartbeat_s=0.5).model_dump(exclude_unset=True)
    return settings_for(vhost_url, tmp_path, **stores)


@pytest.fixture
async def nursery(settings: FleetSettings, tmp_path: Path) -> AsyncIterator[Nursery]:
    async with Nursery(settings, tmp_path / "storage.log") as nursery:
        yield nursery


@pytest.fixture
async def depot(settings: FleetSettings, s3_place: Place, tmp_path: Path) -> AsyncIterator[Depot]:
    """The same rows, the same bytes, for who looks at them when all is over."""
    database = Database(settings.database_of("storage"), "storage")
    yield Depot(tmp_path, database, s3_place.files())
    await database.dispose()


async def restart(nursery: Nursery, chance: random.Random) -> int:
    """Kill the only one there is, perhaps while it still starts; start another."""
    (only,) = nursery.living
    is_early = chance.random() < IS_KILLED_EARLY
    if not is_early:
        await nursery.is_in(only, State.READY)
    await pass_s(chance.uniform(0, EARLY_S if is_early else AT_WORK_S))
    await nursery.kill(only)
    await nursery.start()
    return 1


async def leave_it_to_the_standby(nursery: Nursery, chance: random.Random) -> int:
    """Kill the one that leads, sometimes the one that stands by, or both; start as many anew."""
    leader = await nursery.one_leads()
    await pass_s(chance.uniform(0, AT_WORK_S))
    others = [pid for pid in nursery.living if pid != leader]
    victims = chance.choice([*[[leader]] * 6, others, [leader, *others]])
    for victim in victims:
        await nursery.kill(victim)
    for _ in victims:
        await nursery.start()
    return len(victims)


async def pass_s(seconds: float) -> None:
    ends = time.monotonic() + seconds
    await until(lambda: time.monotonic() >= ends, seconds + 1)


async def queues_are_empty(management: Management, vhost: str) -> bool:
    """Raises where some message is in a queue for good."""
    depths = {name: queue.depth for name, queue in (await management.queues(vhost)).items() if name.startswith("mb.")}
    assert not {name: depth for name, depth in depths.items() if name.endswith(".dead") and depth}
    return not any(depths.values())


@dataclass
class Fire:
    """Whoever kills, with the clock that tells how long it all takes."""

    nursery: Nursery
    seed: int
    killed: int = 0
    began: float = field(default_factory=time.monotonic)
    took_s: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    async def burn(self, crowd: Crowd, kills: int) -> None:
        """First there is one process, then there are two; half of the kills each."""
        await self._kill(crowd, kills // 2, restart)
        await self.nursery.start()
        await self._kill(crowd, kills, leave_it_to_the_standby)

    async def _kill(self, crowd: Crowd, kills: int, strike: Strike) -> None:
        while self.killed < kills:
            crowd.keep_busy()
            self.killed += await strike(self.nursery, self.chance)

    def lap(self, name: str) -> None:
        """So long it took since the last one."""
        self.took_s[name] = round(time.monotonic() - self.began - sum(self.took_s.values()))


@pytest.mark.parametrize(
    ("agents", "kills"), [(12, 4), pytest.param(20, 200, marks=[pytest.mark.proof, pytest.mark.timeout(2400)])]
)
async def test_storage_is_killed_while_many_agents_put(
    nursery: Nursery,
    depot: Depot,
    s3_place: Place,
    management: Management,
    vhost: str,
    agents: int,
    kills: int,
    request: pytest.FixtureRequest,
    report: Callable[[str], None],
) -> None:
    fire = Fire(nursery, request.config.getoption("--seed") or secrets.randbits(32))
    report(f"{kills} kills of storage, --seed {fire.seed}")
    amqp_url = str(nursery.settings.amqp_url)
    tap = DurableTap(amqp_url, "test.registered")
    starting = asyncio.create_task(nursery.start())

    async with crowd_of(agents, nursery.settings, fire.seed) as crowd:
        await starting
        await nursery.one_leads()
        await tap.open(("mb.evt", "evt.artifact.registered"))
        fire.lap("start")
        await fire.burn(crowd, kills)
        fire.lap("fire")
        await crowd.is_done(SETTLED_WITHIN_S)
    await until(lambda: nothing_waits(depot), SETTLED_WITHIN_S)
    await until(lambda: queues_are_empty(management, vhost), SETTLED_WITHIN_S)
    await nursery.stop()
    fire.lap("settling")

    heard, keeper = await tap.close(), Keeper(depot)
    require_told_once(heard, crowd.works)
    rows = await require_artifacts(depot, crowd.works)
    read_bytes = await require_bytes(keeper, len(rows))
    collected = await require_no_garbage(keeper, s3_place, rows)
    assert await DeadLetters(amqp_url).look("storage") == []
    fire.lap("audit")
    report(
        f"{fire.killed} kills, {agents} agents: {len(rows)} artifacts of {len({row.sha256 for row in rows})} contents,"
        f" {read_bytes / 1024**2:.0f} MiB read anew; puts {dict(crowd.outcomes)}; {len(heard)} events;"
        f" garbage {collected}; seconds {fire.took_s}"
    )
