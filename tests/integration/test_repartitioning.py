"""`topology migrate` redistributes what waits over another number of partitions, each user's in their order."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from config.settings import FleetSettings
from mindbus.bus.claims import Claims
from mindbus.bus.connection import connect
from mindbus.bus.queue_moves import StillInUse
from mindbus.bus.topology import Topology, backbone, of_service, rungs_of
from mindbus.bus.topology_admin import apply, compare, migrate
from mindbus.errors import TemporaryFailure
from mindbus.files.store import open_files
from mindbus.management import Management
from mindbus.testing.wait import until
from tests.brokers import Broker
from tests.fleets import fleet_of, settings_for
from tests.partitions_kit import COUNT, USERS, Chat, Chatter

SAID = 5


def topology(partitions: int) -> Topology:
    own = of_service("chatter", takes_commands=True, event_keys=(), is_ordered=True, partitions=partitions)
    return backbone(rungs_of("50ms,100ms,300ms")) + own


@pytest.fixture
def api(broker: Broker, vhost: str) -> Management:
    login = f"{broker.username}:{broker.password}@"
    return Management(broker.management_url.replace("://", f"://{login}"), vhost)


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path) -> FleetSettings:
    return settings_for(vhost_url, tmp_path)


def of(settings: FleetSettings, partitions: int) -> FleetSettings:
    return settings.model_copy(update={"partitions": f"chatter={partitions}"})


async def say(settings: FleetSettings, numbers: Iterable[int], note: str = "") -> None:
    async with connect(settings=settings) as bus:
        for number in numbers:
            for user in USERS:
                await bus.send(Chat(user_id=user, number=number, note=note if number % 2 else ""))


async def until_waiting(api: Management, depths: int) -> None:
    async def is_there() -> bool:
        return sum(queue.depth for queue in await api.queues() if queue.name.startswith("mb.q.chatter")) == depths

    await until(is_there)


@pytest.mark.parametrize(("before", "after"), [(1, COUNT), (COUNT, 1), (2, COUNT)])
async def test_what_waits_is_redistributed_in_order(
    settings: FleetSettings, vhost_url: str, api: Management, before: int, after: int
) -> None:
    await apply(vhost_url, topology(before))
    await say(of(settings, before), range(SAID), note="x" * 70_000)
    await until_waiting(api, SAID * len(USERS))

    assert await migrate(vhost_url, api, topology(after), Claims(open_files(settings)).redeem) == ["chatter"]

    assert await compare(api, topology(after)) == []
    await say(of(settings, after), range(SAID, 2 * SAID))
    async with fleet_of(Chatter, settings=of(settings, after)) as fleet:
        await until(lambda: fleet[Chatter].count() == 2 * SAID * len(USERS))
        assert fleet[Chatter].heard == {user: list(range(2 * SAID)) for user in USERS}
    assert await migrate(vhost_url, api, topology(after)) == []


async def test_one_that_was_cut_short_goes_on_where_it_was(
    settings: FleetSettings, vhost_url: str, api: Management
) -> None:
    await apply(vhost_url, topology(1))
    await say(settings, range(SAID), note="x" * 70_000)
    await until_waiting(api, SAID * len(USERS))
    redeem, redeemed = Claims(open_files(settings)).redeem, list[str]()

    async def fail_half_way(key: str) -> dict[str, Any]:
        redeemed.append(key)
        if len(redeemed) > len(USERS):
            raise OSError("the file store is away")
        return await redeem(key)

    with pytest.raises(TemporaryFailure, match="away"):
        await migrate(vhost_url, api, topology(COUNT), fail_half_way)
    assert await migrate(vhost_url, api, topology(COUNT), redeem) == ["chatter"]

    async with fleet_of(Chatter, settings=of(settings, COUNT)) as fleet:
        await until(lambda: fleet[Chatter].count() == SAID * len(USERS))
        assert fleet[Chatter].heard == {user: list(range(SAID)) for user in USERS}


async def test_while_a_worker_consumes_nothing_is_moved(
    settings: FleetSettings, vhost_url: str, api: Management
) -> None:
    async with fleet_of(Chatter, settings=settings):
        with pytest.raises(StillInUse, match=r"mb\.q\.chatter"):
            await migrate(vhost_url, api, topology(COUNT))
