"""The power fails before and after every effect of a collection; the next one ends what was begun."""

import dataclasses
from collections.abc import Callable, Collection, Sequence
from datetime import datetime

import pytest

from bus_schema.messages import Event
from bus_schema.storage_maintenance import ArtifactExpired, ArtifactOrphaned
from storage_service.maintenance.registry import DueArtifact, Removal
from storage_service.maintenance.sql_registry import SqlMaintenanceRegistry
from storage_service.service import StorageService
from tests.maintenance_kit import Keeper, counts
from tests.passing_blobs import PassingBlobs
from tests.power_cuts import Power, PowerCut
from tests.storage_kit import OpenDepot

pytestmark = pytest.mark.slow


class PoweredCare(SqlMaintenanceRegistry):
    power: Power

    async def expire(self, due: DueArtifact) -> bool:
        async with self.power.effect("expire"):
            return await super().expire(due)

    async def retire(self, removal: Removal, before: datetime) -> bool:
        async with self.power.effect("condemn"):
            return await super().retire(removal, before)

    async def remove_stray(self, removal: Removal) -> bool:
        async with self.power.effect("outlaw"):
            return await super().remove_stray(removal)

    async def give_up(self, removal: Removal) -> bool:
        async with self.power.effect("give up"):
            return await super().give_up(removal)

    async def finish(self, removal: Removal, *, is_there: bool) -> None:
        async with self.power.effect("finish"):
            await super().finish(removal, is_there=is_there)

    async def delete_notifications(self, seqs: Collection[int]) -> None:
        async with self.power.effect("told"):
            await super().delete_notifications(seqs)


@dataclasses.dataclass
class PoweredStore(PassingBlobs):
    power: Power

    async def move(self, key: str, target: str) -> bool:
        async with self.power.effect("move"):
            return await self.blobs.move(key, target)

    async def delete(self, key: str) -> None:
        async with self.power.effect("delete"):
            await self.blobs.delete(key)

    async def write(self, key: str, content: bytes) -> None:
        async with self.power.effect("write"):
            await self.blobs.write(key, content)


def on(power: Power) -> Callable[[StorageService], StorageService]:
    def arrange(storage: StorageService) -> StorageService:
        registry = PoweredCare(storage.database, storage.clock, {})
        registry.power = power
        care = dataclasses.replace(storage.maintenance, registry=registry, blobs=PoweredStore(storage.blobs, power))
        return dataclasses.replace(storage, maintenance=care)

    return arrange


async def litter(keeper: Keeper, mark: bytes) -> str:
    """One thing of every kind that a collection takes, beside what must stay; the id of what expires."""
    await keeper.depot.put(b"stays " + mark)
    expiring = await keeper.depot.put(b"expires " + mark, retention="1d")
    await keeper.put_object(b"unknown " + mark)
    keeper.depot.stage(b"unregistered " + mark)
    await keeper.depot.worker.maintenance.clean()
    return expiring


async def test_effects_come_in_the_order_that_loses_nothing(open_depot: OpenDepot) -> None:
    power = Power()
    keeper = Keeper(open_depot(arrange=on(power)))
    await litter(keeper, b"0")
    keeper.depot.clock.advance(days=2)

    await keeper.collect()
    await keeper.told()

    assert [moment.removeprefix("after ") for moment in power.moments if moment.startswith("after ")] == [
        *("expire", "condemn", "outlaw", "give up"),
        *("move", "finish", "move", "finish", "move", "finish"),
        *("write", "told"),
    ]
    assert len(power.moments) == 24


async def suffer(open_depot: OpenDepot, keeper: Keeper, cuts: Sequence[Power]) -> list[Event]:
    """Collections, each with its own power; what was told meanwhile."""
    told: list[Event] = []
    for power in cuts:
        powered = Keeper(open_depot(arrange=on(power), clock=keeper.depot.clock))
        try:
            await powered.collect()
            told += await powered.told()
        except PowerCut:
            assert (await keeper.audit(rehash=False)).missing == ()
    return told


async def test_a_collection_interrupted_twice_anywhere_is_ended_by_the_third(open_depot: OpenDepot) -> None:
    keeper = Keeper(open_depot())
    # An object store takes its time: there, a sample.
    cuts = range(24) if keeper.depot.files.local_root else range(3, 24, 7)
    for number, first in enumerate(cuts, start=1):
        expiring = await litter(keeper, b"%d" % first)
        keeper.depot.clock.advance(days=2)

        told = await suffer(open_depot, keeper, (Power(first), Power(first * 5 % 17), Power()))

        assert expiring in {event.artifact.artifact_id for event in told if isinstance(event, ArtifactExpired)}
        orphaned = {event.reason for event in told if isinstance(event, ArtifactOrphaned)}
        assert orphaned == {"unused", "unknown", "unregistered"}
        assert len(await keeper.keys(f"orphans/{keeper.today()}")) == 3
        assert await keeper.depot.rows("removals") == await keeper.depot.rows("notices") == 0
        assert len(await keeper.keys("objects/sha256")) == number
    assert (await keeper.audit()).damaged == ()


async def test_orphans_whose_deletion_was_interrupted_are_deleted_by_the_next_run(open_depot: OpenDepot) -> None:
    keeper = Keeper(open_depot())
    for number in range(3):
        keeper.depot.stage(b"%d" % number)
    await keeper.orphaned_after(hours=25)
    keeper.depot.clock.advance(days=8)

    cut = Keeper(open_depot(arrange=on(Power(3)), clock=keeper.depot.clock))
    with pytest.raises(PowerCut):
        await cut.collect()
    assert len(await keeper.keys("orphans")) == 1

    assert counts(await keeper.collect()) == {"deleted": 1}
