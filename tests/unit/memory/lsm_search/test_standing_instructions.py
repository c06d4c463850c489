"""Instructions and preferences, which hold for whatever a person asks."""

from datetime import UTC, datetime, timedelta

import pytest

from bus_schema.lsm_search import SearchEpisodes
from memory.lsm.search.chat_index import ChatIndex, IndexedTurn
from memory.lsm.search.ranking import DEFAULT_WEIGHTS
from memory.lsm.search.turn_search import choose_turns, match_query, rank_turns

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
INSTRUCTION = "Always give me all of the distances in miles, please"
PREFERENCE = "I prefer slow trains to planes, and bicycles to both"
OF_THE_LAKE = "The lake behind hill"


def chat(*, has_assistant: bool) -> ChatIndex:
    """Two notes among many turns about a lake."""
    index = ChatIndex(timedelta(hours=1))
    contents = [INSTRUCTION, PREFERENCE, *[f"{OF_THE_LAKE}, {number}" for number in range(40)]]
    answers = [("assistant", "All right")] if has_assistant else []
    turns = [*[("user", content) for content in contents], *answers]
    index.add(
        IndexedTurn(str(number), NOW + timedelta(minutes=number), role, None, content, len(content.split()))
        for number, (role, content) in enumerate(turns)
    )
    index.put_notes({"0": ["instruction"], "1": ["preference"]})
    return index


def found(index: ChatIndex, words: int, **limits: datetime) -> list[str]:
    """Ids of the turns that answer a question about the lake."""
    query = SearchEpisodes(query="How far is the lake?", chat_id="anna", budget_words=words, **limits)
    matches = match_query(index, query, NOW + timedelta(days=1), None)
    assert matches is not None
    ranking = rank_turns(index, query, matches, None, DEFAULT_WEIGHTS)
    return [hit.raw_log_id for hit in choose_turns(index, query, matches, ranking, DEFAULT_WEIGHTS).hits]


def test_they_come_behind_the_best_turns() -> None:
    hits = found(chat(has_assistant=True), words=200)

    assert hits.index("0") == 6
    assert hits.index("1") == 7
    assert len(hits) == len(set(hits))


@pytest.mark.parametrize(("words", "expected"), [(100, {"0"}), (60, set())])
def test_they_take_a_small_part_of_the_budget(words: int, expected: set[str]) -> None:
    assert {"0", "1"} & set(found(chat(has_assistant=True), words)) == expected


def test_people_among_themselves_instruct_nobody() -> None:
    assert not {"0", "1"} & set(found(chat(has_assistant=False), words=200))


def test_what_a_filter_leaves_out_stays_out() -> None:
    hits = found(chat(has_assistant=True), words=200, since=NOW + timedelta(seconds=30))

    assert "0" not in hits
    assert "1" in hits
