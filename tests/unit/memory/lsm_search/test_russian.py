"""Questions about Russian dialogues, asked in other words than those that were said."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from bus_schema.lsm_search import SearchEpisodes
from config.settings import FleetSettings
from memory.lsm.search.search import EpisodeSearch
from mindbus.sql.database import Database
from retrieval.embedding.selection import open_embedder
from tests.clocks import NOON
from tests.lsm_kit import ANNA, Archive, talk
from tests.postgres import DatabaseOf

_TALKS = Path(__file__).parents[3] / "data" / "russian_episodes.yaml"
_AMONG = 5
_EXPECTED = 0.85


@pytest.fixture
async def archive(sqlite_database_of: DatabaseOf) -> AsyncIterator[Archive]:
    database = Database(sqlite_database_of("lsm"), "lsm")
    yield Archive(database, FleetSettings())
    await database.dispose()


async def share_found(archive: Archive, talks: Sequence[Any]) -> float:
    """Of the questions, those whose episode is among the first few."""
    search = EpisodeSearch(archive.memory, archive.settings, open_embedder)
    asked = []
    for number, each in enumerate(talks):
        outcome = await archive.record(*talk(*each["said"], begins=NOON + timedelta(days=number)))
        asked += [(question, outcome.episode_id) for question in each["asked"]]
    while (await archive.stats()).waiting_for_vectors:
        await search.embed()
    hits = 0
    for number, (question, episode_id) in enumerate(asked):
        query = SearchEpisodes(query=question, chat_id=ANNA, touch=False)
        found = await search.find(query, NOON + timedelta(days=120), f"srch_{number}", "user.anna")
        hits += episode_id in [each.episode_id for each in found.episodes[:_AMONG]]
    await search.close()
    return hits / len(asked)


@pytest.mark.slow
async def test_the_right_episode_of_a_few_is_among_the_first(archive: Archive) -> None:
    talks = yaml.safe_load(_TALKS.read_text())[:8]

    assert await share_found(archive, talks) >= _EXPECTED


@pytest.mark.proof
async def test_of_a_hundred_questions_the_right_episode_is_among_the_first(archive: Archive) -> None:
    talks = yaml.safe_load(_TALKS.read_text())
    assert sum(len(each["asked"]) for each in talks) == 100

    assert await share_found(archive, talks) >= _EXPECTED
