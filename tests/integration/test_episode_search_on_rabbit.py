"""The search of long-term memory as others meet it: on a real RabbitMQ, through the client."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from bus_schema.lsm import RecordExchange, SaidMessage
from bus_schema.lsm_events import EpisodeTouched
from bus_schema.lsm_search import Feedback, FoundEpisodes, SearchEpisodes, TuneSearch
from bus_schema.lsm_statistics import GetEpisodeStats
from bus_schema.replies import Code
from mindbus import ReplyError, WorkerContext
from mindbus.testing.wait import until
from tests.clocks import NOON
from tests.fleets import Fleet, fleet_of, settings_for
from tests.hashing_embedder import HashingEmbedder
from tests.lsm_kit import ANNA
from workers.lsm.worker import LsmWorker, lsm_with

TALK = ("My dog Rex is ill.", "Did you see a vet?", "Yes, Doctor Pavlova gave us pills.")


@pytest.fixture
def embedder() -> HashingEmbedder:
    return HashingEmbedder()


@pytest.fixture
async def fleet(vhost_url: str, tmp_path: Path, embedder: HashingEmbedder) -> AsyncIterator[Fleet]:
    async def opening() -> HashingEmbedder:
        return embedder

    def lsm(context: WorkerContext) -> LsmWorker:
        return lsm_with(opening, context)

    lsm.name = "lsm"  # type: ignore[attr-defined]  # as a Worker class has one
    async with fleet_of(lsm, settings=settings_for(vhost_url, tmp_path)) as running:
        yield running


async def said(fleet: Fleet, *contents: str) -> None:
    messages = [
        SaidMessage(role="user", content=text, time=NOON + timedelta(minutes=place))
        for place, text in enumerate(contents)
    ]
    await fleet.bus.request(RecordExchange(chat_id=ANNA, messages=tuple(messages)))


async def found(fleet: Fleet, query: str = "Which vet did Rex see?") -> FoundEpisodes:
    return await fleet.bus.request(SearchEpisodes(query=query, chat_id=ANNA, budget_words=60))


async def test_what_was_said_is_found_told_and_learnt_from(fleet: Fleet, embedder: HashingEmbedder) -> None:
    async with fleet.bus.subscribe(EpisodeTouched) as touched:
        await said(fleet, *TALK)
        answer = await found(fleet)
        assert [turn.content for turn in answer.episodes[0].turns] == list(TALK)
        assert answer.search_id is not None
        feedback = Feedback(search_id=answer.search_id, used=(answer.episodes[0].turns[2].raw_log_id,))
        with pytest.raises(ReplyError) as foreign:
            await fleet.bus.acting_as("agent.stranger").request(feedback)
        assert foreign.value.code is Code.NOT_FOUND

        assert (await anext(aiter(touched))).search_id == answer.search_id
    await fleet.bus.request(feedback)
    assert (await fleet.bus.request(GetEpisodeStats())).with_feedback == 1
    assert not (await fleet.bus.request(TuneSearch(apply=True))).applied


async def test_an_embedder_that_is_down_degrades_the_search_that_goes_on(
    fleet: Fleet, embedder: HashingEmbedder
) -> None:
    await said(fleet, *TALK)

    async def all_have_vectors() -> bool:
        return not (await fleet.bus.request(GetEpisodeStats())).waiting_for_vectors

    await until(all_have_vectors, 10, "every turn has its vector")
    assert not (await found(fleet)).is_degraded
    embedder.away = True

    answer = await found(fleet, "Who gave us pills?")

    assert answer.is_degraded
    assert "Yes, Doctor Pavlova gave us pills." in [turn.content for turn in answer.episodes[0].turns]
