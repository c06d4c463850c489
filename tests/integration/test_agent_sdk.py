"""Agents before shared memory, through the SDK: on a real RabbitMQ, with the real services."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bus_schema.glm import KemChanges
from mindbus import Settings
from mindbus.sdk.agent import AgentSDK
from mindbus.sdk.swm_events import SwmEvent
from tests.fleets import Fleet, fleet_of, settings_for
from tests.memory_kit import SPACE, a_draft
from tests.waiting import until
from workers.fleet import FLEET

# What has happened is heard of within this time.
SOON_S = 1.0
ALPHA = "metadata.project_id=alpha"


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path) -> Settings:
    return settings_for(vhost_url, tmp_path, embedding_model=SPACE.model, embedding_dim=SPACE.dim)


@pytest.fixture
async def fleet(settings: Settings) -> AsyncIterator[Fleet]:
    async with fleet_of(FLEET["glm"], FLEET["swm"], settings=settings) as running:
        yield running


def sdk(fleet: Fleet, name: str) -> AgentSDK:
    return AgentSDK(bus=fleet.bus.acting_as(f"agent.{name}"), lpa_indexed_keys=["project_id"])


@pytest.fixture
def alice(fleet: Fleet) -> AgentSDK:
    return sdk(fleet, "alice")


@pytest.fixture
def bob(fleet: Fleet) -> AgentSDK:
    return sdk(fleet, "bob")


async def next_of(events: AsyncIterator[SwmEvent]) -> SwmEvent:
    async with asyncio.timeout(5):
        return await anext(events)


async def test_local_memory_is_fresh_within_a_second_of_what_another_does(alice: AgentSDK, bob: AgentSDK) -> None:
    async with (
        bob.handle_swm_events(ALPHA) as heard,
        bob.handle_swm_events("metadata.project_id=beta") as unheard,
    ):
        events = aiter(heard)
        report = await alice.publish_kems_to_swm_batch(
            [a_draft("Friday.", metadata={"project_id": "alpha"})], persist_to_glm_if_new_or_updated=True
        )
        kem_id = report.items[0].kem_id
        event = await next_of(events)
        assert (event.event_type, event.kem_id) == ("KEM_PUBLISHED", kem_id)
        assert [kem.content for kem in bob.query_local_memory()] == ["Friday."]

        await until(lambda: alice.get_kem(kem_id, force_remote=True))
        changed = await alice.update_kem(kem_id, KemChanges(content="Saturday."))
        event = await next_of(events)
        assert (event.event_type, event.kem) == ("KEM_UPDATED", changed)
        assert bob.local_memory.get(kem_id) == changed

        await alice.delete_kem(kem_id)
        event = await next_of(events)
        assert (event.event_type, event.kem_id, event.kem) == ("KEM_DELETED", kem_id, None)
        assert bob.local_memory.get(kem_id) is None
        assert alice.local_memory.get(kem_id) is None
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await anext(aiter(unheard))
