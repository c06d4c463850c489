"""An agent's own memory: found by metadata, never older than what it heard (spec 000 §4.3.2)."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery
from config.settings import FleetSettings
from mindbus.bus.connection import new_client, new_sender
from mindbus.bus.memory import MemoryBroker
from mindbus.sdk.errors import RankedQueryUnsupported
from mindbus.sdk.local_memory import LocalAgentMemory, dropping_stale
from tests.clocks import NOON
from tests.lost_connections import LostConnections


def a_kem(kem_id: str = "kem_1", minute: int = 0, **fields: Any) -> Kem:
    now = NOON + timedelta(minutes=minute)
    stamp = {"owner": "agent.alice", "created_at": now, "updated_at": now, "version": 1}
    return Kem.model_validate({"id": kem_id, "content": "It is Friday."} | stamp | fields)


@pytest.fixture
def memory() -> LocalAgentMemory:
    return LocalAgentMemory(["topic"])


def found(memory: LocalAgentMemory, **query: Any) -> list[str]:
    return [kem.id for kem in memory.query(KemQuery.model_validate(query))]


def test_units_are_found_by_metadata_the_newest_first(memory: LocalAgentMemory) -> None:
    memory.keep(a_kem("a", 1, metadata={"topic": "ai", "pages": 3}))
    memory.keep(a_kem("b", 2, metadata={"topic": ["ai", "право"], "pages": 9}))
    memory.keep(a_kem("c", 3, metadata={"topic": "law"}))

    assert found(memory) == ["c", "b", "a"]
    assert found(memory, order_by="created_at asc") == ["a", "b", "c"]
    assert found(memory, metadata_filters={"topic": "ai"}) == ["b", "a"]
    assert found(memory, metadata_filters={"topic": "право"}) == ["b"]
    assert found(memory, metadata_filters={"topic": "ai", "pages": {"gt": 5}}) == ["b"]
    assert found(memory, metadata_filters={"OR": [{"topic": "law"}, {"pages": 3}]}) == ["c", "a"]
    assert found(memory, ids=["a", "c", "x"], updated_at_start=NOON + timedelta(minutes=2)) == ["c"]


def test_nearness_is_not_looked_for_here(memory: LocalAgentMemory) -> None:
    with pytest.raises(RankedQueryUnsupported, match="retrieve_kems"):
        memory.query(KemQuery(text_query="Friday"))


def test_what_is_done_to_a_unit_that_was_handed_out_changes_nothing(memory: LocalAgentMemory) -> None:
    kem = a_kem(metadata={"topic": "ai", "tags": ["x"]})
    memory.keep(kem)
    for each in (kem, memory.get("kem_1"), *memory.query()):
        assert each is not None
        each.metadata["topic"] = "law"
        tags = each.metadata["tags"]
        assert isinstance(tags, list)
        tags.append("y")

    kept = memory.get("kem_1")
    assert kept is not None
    assert kept.metadata == {"topic": "ai", "tags": ["x"]}


def test_an_answer_that_news_overtook_is_not_believed(memory: LocalAgentMemory) -> None:
    asked_at = memory.moment()
    memory.keep(a_kem(version=2, content="Saturday."))
    memory.keep(a_kem(version=1), asked_at)

    assert memory.get("kem_1") is None, "which of the two is newer, nobody can say"

    asked_at = memory.moment()
    memory.drop("kem_1")
    memory.keep(a_kem(), asked_at)
    assert memory.get("kem_1") is None

    asked_at = memory.moment()
    memory.clear()
    memory.keep(a_kem(), asked_at)
    assert memory.get("kem_1") is None


def test_an_answer_that_agrees_with_the_news_is_kept(memory: LocalAgentMemory) -> None:
    asked_at = memory.moment()
    memory.keep(a_kem())
    memory.keep(a_kem(), asked_at)

    assert memory.get("kem_1") == a_kem()


async def test_after_a_lost_connection_nothing_is_believed(memory: LocalAgentMemory, tmp_path: Path) -> None:
    settings, transport = FleetSettings(data_dir=tmp_path), LostConnections(MemoryBroker())
    async with (
        new_client(transport, new_sender("alice", "agent.alice", settings), settings) as bus,
        dropping_stale(bus, memory),
    ):
        memory.keep(a_kem())
        transport.begin_anew()

    assert memory.get("kem_1") is None


def test_news_of_another_unit_is_no_reason_for_doubt(memory: LocalAgentMemory) -> None:
    asked_at = memory.moment()
    memory.keep(a_kem("a"))
    memory.keep(a_kem("b"), asked_at)

    assert sorted(found(memory)) == ["a", "b"]


def test_the_unimportant_goes_first_where_there_is_no_room() -> None:
    memory = LocalAgentMemory(max_bytes=3 * 2100)
    memory.keep(a_kem("a", metadata={"priority": 5}))
    for kem_id in "bcd":
        memory.keep(a_kem(kem_id))

    assert sorted(found(memory)) == ["a", "c", "d"]
    assert len(memory) == 3
