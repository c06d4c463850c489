"""The timeline has every event of every topic, once, in order, whatever dies meanwhile."""

from pathlib import Path

import pytest

import mindbus
from bus_schema.timeline import GetTimeline, TimelineEvent
from config.settings import FleetSettings
from mindbus.sdk.artifacts import open_artifacts
from mindbus.testing.wait import until
from tests.fleets import Fleet, fleet_of, settings_for
from tests.installed import FLEET
from workers.tracker import TrackerWorker

STORAGE = FLEET["storage"]


class Rained(mindbus.Event, topic="weather", name="rained"):
    """A topic that MindBus knows nothing of."""

    user_id: str | None = None
    millimetres: int


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path) -> FleetSettings:
    return settings_for(vhost_url, tmp_path, heartbeat_s=0.1)


async def timeline(fleet: Fleet, **wanted: object) -> list[TimelineEvent]:
    return list((await fleet.bus.request(GetTimeline.model_validate(wanted))).items)


async def test_events_of_every_topic_are_recorded_once_heartbeats_never(settings: FleetSettings) -> None:
    async with fleet_of(STORAGE, TrackerWorker, settings=settings) as fleet:
        for millimetres in range(300):
            await fleet.bus.publish(Rained(millimetres=millimetres, user_id="ан на" if millimetres % 2 else "anna"))
        async with open_artifacts(fleet.bus, settings) as artifacts:
            await artifacts.put(b"bytes", artifact_type="note", trace="run_1")
        await until(lambda: _count(fleet, 301), 30)
        found = await timeline(fleet, limit=500)

    rains = [event for event in found if event.topic == "weather"]
    assert [event.envelope.data["millimetres"] for event in rains if event.envelope.data] == list(range(300))
    assert {event.user_id for event in rains} == {None, "anna"}
    assert [event.name for event in found if event.topic != "weather"] == ["artifact.registered"]


async def test_what_happens_while_storage_is_away_is_recorded_when_it_is_back(settings: FleetSettings) -> None:
    async with fleet_of(TrackerWorker, settings=settings) as fleet:
        with pytest.raises(mindbus.Unroutable):
            await fleet.bus.request(GetTimeline())
        for millimetres in range(20):
            await fleet.bus.publish(Rained(millimetres=millimetres))
        async with fleet_of(STORAGE, settings=settings) as back:
            await until(lambda: _count(back, 20), 30)


async def _count(fleet: Fleet, wanted: int) -> bool:
    return len(await timeline(fleet, limit=500)) == wanted
