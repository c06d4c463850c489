"""Memory helps those who speak; without it they speak all the same."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bus_schema.episodes import Layer, RawTurn
from bus_schema.glm import FoundKem, KemPage, RetrieveKems
from bus_schema.identities import owner_of
from bus_schema.kem import Kem
from bus_schema.lsm_search import FoundEpisode, FoundEpisodes, SearchEpisodes
from config.settings import FleetSettings
from mindbus import MessageContext, Worker, WorkerContext, on_command
from mindbus.errors import TemporaryFailure
from mindbus.sdk.recall import EpisodeRecall, KemRecall
from mindbus.sdk.requests import CircuitBreaker
from tests.clocks import NOON
from tests.fleets import fleet_of, settings_for

KEM = Kem(id="kem_1", owner="agent.a", content="Релиз 24 марта.", created_at=NOON, updated_at=NOON, version=1)


class Memory(Worker):
    """Finds one unit for Anna, unless it is out of sorts."""

    name = "glm"

    def __init__(self, _kit: WorkerContext) -> None:
        self.is_well = True
        self.asked: list[tuple[str, RetrieveKems]] = []

    @on_command
    async def retrieve(self, query: RetrieveKems, context: MessageContext) -> KemPage:
        self.asked.append((context.requester, query))
        if not self.is_well:
            raise TemporaryFailure("out of sorts")
        return KemPage(items=(FoundKem(kem=KEM, score=1.0),) if context.owner == "user.anna" else ())


@pytest.fixture
def settings(tmp_path: Path) -> FleetSettings:
    return settings_for(f"memory://{tmp_path}", tmp_path)


def ids(found: Iterable[FoundKem]) -> list[str]:
    return [each.kem.id for each in found]


async def test_it_asks_in_the_name_of_the_person_for_what_still_holds(settings: FleetSettings) -> None:
    async with fleet_of(Memory, settings=settings) as fleet:
        recall = KemRecall(fleet.bus.acting_as("svc.dialogue"), 5)

        assert ids(await recall.about("  Когда релиз?  ", "user.anna")) == ["kem_1"]
        assert ids(await recall.about("Когда релиз?", "user.boris")) == []

        (requester, query), _ = fleet[Memory].asked
    assert requester == "user.anna"
    assert query.query.text_query == "Когда релиз?"
    assert query.query.metadata_filters.model_dump() == {"NOT": {"status": "superseded"}}  # type: ignore[union-attr]


async def test_a_role_of_ones_own_asks_for_itself(settings: FleetSettings) -> None:
    async with fleet_of(Memory, settings=settings) as fleet:
        recall = KemRecall(fleet.bus.acting_as("agent.mycritic", service="mycritic"), 5)

        assert await recall.about("Когда релиз?", "user.anna") == ()
        assert [owner_of(requester) for requester, _ in fleet[Memory].asked] == ["agent.mycritic"]


async def test_nothing_is_asked_where_nothing_was_said_or_nobody_waits(settings: FleetSettings) -> None:
    async with fleet_of(Memory, settings=settings) as fleet:
        assert await KemRecall(fleet.bus, 5).about(" \n", "user.anna") == ()
        assert await KemRecall(fleet.bus, 0).about("When is it?", "user.anna") == ()
        assert fleet[Memory].asked == []


async def test_without_a_memory_nothing_is_remembered(settings: FleetSettings) -> None:
    async with fleet_of(settings=settings) as fleet:
        assert await KemRecall(fleet.bus, 5).about("When is it?", "user.anna") == ()


async def test_a_memory_that_does_not_answer_is_left_alone_for_a_while(settings: FleetSettings) -> None:
    now = 0.0
    async with fleet_of(Memory, settings=settings) as fleet:
        memory = fleet[Memory]
        recall = KemRecall(fleet.bus, 0.1, CircuitBreaker(1, 15.0, lambda: now))
        memory.is_well = False

        with capture_logs() as logged:
            assert await recall.about("When is it?", "user.anna") == ()
            memory.is_well, asked = True, len(memory.asked)
            assert await recall.about("When is it?", "user.anna") == ()
        assert len(memory.asked) == asked
        # It is said once, not with every question.
        assert [entry["log_level"] for entry in logged if "shared memory" in entry["event"]] == ["warning"]

        now = 16.0
        assert ids(await KemRecall(fleet.bus, 5, CircuitBreaker(1, 15.0, lambda: now)).about("When?", "user.anna")) == [
            "kem_1"
        ]


class LongTerm(Worker):
    """Answers in the order of time, as where a question asks for one."""

    name = "lsm"

    @on_command
    async def search(self, _query: SearchEpisodes) -> FoundEpisodes:
        return FoundEpisodes(
            search_id="srch_1",
            confidence="found",
            unpacked=False,
            words=4,
            episodes=tuple(self._episode(number, score) for number, score in enumerate((0.1, 0.9))),
        )

    @staticmethod
    def _episode(number: int, score: float) -> FoundEpisode:
        turn = RawTurn(raw_log_id=f"raw_{number}", role="user", content=f"Said {number}.", time=NOON)
        about = {"episode_id": f"ep_{number}", "layer": Layer.COLD, "headline": "", "started_at": NOON}
        return FoundEpisode.model_validate(about | {"score": score, "turns": (turn,)})


async def test_a_prompt_gets_the_best_first_whatever_the_order_of_the_search(settings: FleetSettings) -> None:
    async with fleet_of(lambda _kit: LongTerm(), settings=settings) as fleet:
        found = await EpisodeRecall(fleet.bus.acting_as("svc.dialogue"), 5).about("In what order?", "anna")

    assert [each.id for each in found.items] == ["raw_1", "raw_0"]
