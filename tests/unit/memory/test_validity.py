"""Units say from when to when they hold; what supersedes them ends that, and a search prefers what holds."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bus_schema.kem_match import matches_query
from bus_schema.kem_query import KemQuery
from memory.errors import HoldsLater, NoSuchKem, NotYoursToWrite
from memory.glm.index_sync import VectorRelay
from memory.glm.search import KemSearch
from memory.glm.store import RejectedDraft, StoredKem
from memory.vectors.embedded import EmbeddedIndex
from mindbus.errors import Rejected
from tests.clocks import NOON
from tests.hashing_embedder import HashingEmbedder
from tests.memory_kit import CRITIC, RESEARCHER, SPACE, Library, a_draft, a_vector

DAY = timedelta(days=1)


async def test_a_unit_holds_until_another_supersedes_it(library: Library) -> None:
    await library.store(id="friday")
    library.clock.advance(hours=1)
    newer = await library.store(id="monday", content="The release was moved to Monday.", supersedes=["friday"])

    older = await library.queries.get("friday", RESEARCHER)
    assert (older.valid_from, older.valid_to, older.version) == (None, library.clock(), 2)
    assert (newer.supersedes, newer.valid_from, newer.valid_to) == (("friday",), library.clock(), None)
    assert await library.found(as_of=NOON + timedelta(minutes=30)) == ["friday"]
    assert await library.found(as_of=library.clock()) == ["monday"]


async def test_what_is_known_beforehand_supersedes_from_then_on(library: Library) -> None:
    await library.store(id="old", valid_from=NOON - DAY)
    await library.store(id="new", valid_from=NOON + DAY, supersedes=["old"])

    assert await library.found(as_of=NOON) == ["old"]
    assert await library.found(as_of=NOON + DAY) == ["new"]
    assert await library.found(as_of=NOON - 2 * DAY) == []


async def test_stored_again_it_holds_from_when_it_did(library: Library) -> None:
    await library.store(id="old")
    library.clock.advance(hours=1)
    first = await library.store(id="new", supersedes=["old"])
    library.clock.advance(hours=1)
    again = await library.store(id="new", supersedes=["old"])

    assert again.valid_from == first.valid_from
    assert (await library.queries.get("old", RESEARCHER)).valid_to == first.valid_from


async def test_what_has_ended_before_stays_as_it_is(library: Library) -> None:
    ended = await library.store(id="old", valid_to=NOON - DAY)
    await library.store(id="new", supersedes=["old"])

    assert await library.queries.get("old", RESEARCHER) == ended


@pytest.mark.parametrize(
    ("superseded", "error"),
    [
        ({"id": "later", "valid_from": NOON + DAY}, HoldsLater),
        ({"id": "of_others", "visibility": "public"}, NotYoursToWrite),
        ({"id": "hidden", "visibility": "private"}, NoSuchKem),
        (None, NoSuchKem),
    ],
)
async def test_what_cannot_be_superseded_leaves_both_as_they_were(
    library: Library, superseded: dict[str, Any] | None, error: type[Rejected]
) -> None:
    by = RESEARCHER if error is HoldsLater else CRITIC
    older = await library.store(a_draft(**superseded), by) if superseded else None
    with pytest.raises(error):
        await library.store(id="new", supersedes=[older.id if older else "unknown"])

    assert await library.found(by) == ([older.id] if older else [])
    if older is not None:
        assert await library.queries.get(older.id, by) == older


async def test_a_batch_supersedes_what_came_before_in_it(library: Library) -> None:
    outcomes = await library.store_all(
        a_draft("1", id="1"), a_draft("2", id="2", supersedes=["1"], valid_from=NOON + DAY)
    )

    assert all(isinstance(outcome, StoredKem) for outcome in outcomes)
    first = await library.queries.get("1", RESEARCHER)
    assert (first.valid_to, first.version) == (NOON + DAY, 1)


async def test_one_that_is_refused_ends_nothing_that_came_before_in_its_batch(library: Library) -> None:
    first, refused = await library.store_all(
        a_draft("1", id="1"), a_draft("2", id="2", supersedes=["1", "nowhere"], valid_from=NOON + DAY)
    )

    assert isinstance(first, StoredKem)
    assert isinstance(refused, RejectedDraft)
    kept = await library.queries.get("1", RESEARCHER)
    assert (kept.valid_to, kept.superseded_by) == (None, None)


async def test_of_two_that_supersede_one_the_earlier_ends_it(library: Library) -> None:
    await library.store(id="old")
    drafts = [a_draft(id=f"{days}", supersedes=["old"], valid_from=NOON + days * DAY) for days in (2, 1, 3)]
    outcomes = await library.store_all(*drafts)

    assert not any(isinstance(outcome, RejectedDraft) for outcome in outcomes)
    old = await library.queries.get("old", RESEARCHER)
    assert (old.valid_to, old.version) == (NOON + DAY, 2)


async def test_one_whose_end_is_lifted_is_superseded_no_more(library: Library) -> None:
    await library.store(id="old")
    await library.store(id="new", supersedes=["old"])
    assert (await library.update("old", content="The same.")).superseded_by == "new"
    assert (await library.update("old", valid_to=None)).superseded_by is None
    assert (await library.queries.get("old", RESEARCHER)).superseded_by is None


async def test_an_update_sets_and_lifts_a_bound(library: Library) -> None:
    await library.store(id="it")
    ended = await library.update("it", valid_to=(NOON + DAY).isoformat())
    assert ended.valid_to == NOON + DAY
    assert (await library.update("it", valid_to=None)).valid_to is None


TEXTS = {
    "friday": "When is the release of Aurora? The release of Aurora is on Friday.",
    "monday": "The release of Aurora: moved to Monday.",
    "cats": "Cats sleep; cats eat; cats know.",
    "hall": "The hall is being painted.",
}


async def store_texts(library: Library, search: KemSearch, **fields: dict[str, Any]) -> None:
    for name, text in TEXTS.items():
        (vector,) = await HashingEmbedder().passages([text])
        await library.store(a_draft(text, id=name, embeddings=vector, **fields.get(name, {})))
    await search.relay.relay()


async def ranked(search: KemSearch, **query: Any) -> dict[str, float]:
    """Validity by id, the best first."""
    wanted = KemQuery.model_validate({"text_query": "When is the release of Aurora?"} | query)
    items = (await search.rank(wanted, RESEARCHER, 10)).items
    assert [item.score for item in items] == sorted((item.score or 0 for item in items), reverse=True)
    return {item.kem.id: item.explain.validity for item in items if item.explain is not None}


@pytest.mark.parametrize(
    "ended", [{"valid_to": NOON}, {"valid_from": NOON + DAY}, {"metadata": {"status": "superseded"}}]
)
async def test_what_holds_comes_before_what_fits_better_but_does_not(
    library: Library, search: KemSearch, ended: dict[str, Any]
) -> None:
    await store_texts(library, search, friday=ended)
    found = await ranked(search)

    assert list(found)[:2] == ["monday", "friday"]
    assert found["monday"] == 1
    assert found["friday"] < 1


async def test_without_an_end_the_better_fit_is_first(library: Library, search: KemSearch) -> None:
    await store_texts(library, search)
    found = await ranked(search)

    assert next(iter(found)) == "friday"
    assert set(found.values()) == {1.0}


async def test_a_search_as_of_a_time_finds_what_held_then(library: Library, search: KemSearch) -> None:
    await store_texts(library, search, friday={"valid_to": NOON}, monday={"valid_from": NOON})

    assert "monday" not in await ranked(search, as_of=NOON - DAY)
    before = await ranked(search, as_of=NOON - DAY)
    assert (next(iter(before)), before["friday"]) == ("friday", 1)
    assert "friday" not in await ranked(search, as_of=NOON)


async def test_what_was_believed_at_a_time_is_found_apart_from_what_held_then(
    library: Library, search: KemSearch
) -> None:
    (vector,) = await HashingEmbedder().passages([TEXTS["friday"]])
    await library.store(a_draft(TEXTS["friday"], id="friday", embeddings=vector))
    await library.store(a_draft("The release of Aurora has a speaker.", id="ended", embeddings=vector))
    library.clock.advance(hours=10)
    # Learnt late: by then it had been so for nine hours.
    since = NOON + timedelta(hours=1)
    await library.store(a_draft(TEXTS["monday"], id="monday", supersedes=["friday"], valid_from=since))
    await library.update("ended", valid_to=since.isoformat())
    await search.relay.relay()

    between = NOON + timedelta(hours=5)
    assert set(await ranked(search, as_of=between)) == {"monday"}
    assert set(await ranked(search, known_at=between)) == {"friday", "ended"}
    assert set(await ranked(search, as_of=between, known_at=library.clock())) == {"monday"}
    assert set(await ranked(search, as_of=between, known_at=between)) == {"friday", "ended"}
    assert set(await ranked(search, as_of=NOON, known_at=between)) == {"friday", "ended"}
    assert set((await ranked(search, known_at=between)).values()) == {1.0}
    assert sorted(await library.found(known_at=between)) == ["ended", "friday"]
    for kem in [await library.queries.get(each, RESEARCHER) for each in ("friday", "ended", "monday")]:
        assert matches_query(kem, KemQuery(known_at=between)) is (kem.id != "monday")
    # An end that is lifted, or set anew, was learnt anew.
    assert (await library.update("ended", valid_to=None)).end_learnt_at is None
    library.clock.advance(hours=1)
    assert (await library.update("ended", valid_to=since.isoformat())).end_learnt_at == library.clock()
    assert (await library.update("ended", content="The same.")).end_learnt_at == library.clock()


async def test_pages_part_the_ranking(library: Library, search: KemSearch) -> None:
    await store_texts(library, search, friday={"valid_to": NOON})
    query = KemQuery(text_query="When is the release of Aurora?")
    everything = [item.kem.id for item in (await search.rank(query, RESEARCHER, 10)).items]

    for count in range(1, len(everything) + 1):
        assert [item.kem.id for item in (await search.rank(query, RESEARCHER, count)).items] == everything[:count]


async def test_what_supersedes_is_found_where_the_older_one_would_have_been(
    library: Library, search: KemSearch
) -> None:
    await store_texts(library, search)
    before = list(await ranked(search))
    library.clock.advance(hours=1)
    await library.store(a_draft("Postponed by a week.", id="later", supersedes=["friday"]))
    library.clock.advance(hours=1)
    await library.store(a_draft("Cancelled.", id="never", supersedes=["later"]))
    await search.relay.relay()

    wanted = KemQuery(text_query="When is the release of Aurora?")
    first, *others = (await search.rank(wanted, RESEARCHER, 10)).items
    assert (before[0], first.kem.id) == ("friday", "never")
    assert first.explain is not None
    assert (first.explain.raised_by, first.explain.validity) == ("later", 1)
    older = {item.kem.id: item for item in others}
    assert first.score is not None
    for outdated in ("friday", "later"):
        assert older[outdated].score == pytest.approx(first.score / 2)
    assert older["friday"].kem.superseded_by == "later"
    assert "never" not in await ranked(search, as_of=NOON)


async def test_what_supersedes_in_secret_is_not_shown_to_others(library: Library, search: KemSearch) -> None:
    await store_texts(library, search)
    library.clock.advance(hours=1)
    secret = a_draft("Cancelled.", id="secret", supersedes=["friday"], visibility="private")
    await library.store(secret)

    wanted = KemQuery(text_query="When is the release of Aurora?")
    found = (await search.rank(wanted, CRITIC, 2)).items
    assert [item.kem.id for item in found] == ["monday", "friday"]


async def test_two_that_supersede_each_other_are_both_found(library: Library, search: KemSearch) -> None:
    await store_texts(library, search)
    for newer, older in (("monday", "friday"), ("friday", "monday")):
        library.clock.advance(hours=1)
        await library.store(a_draft(TEXTS[newer], id=newer, supersedes=[older]))

    assert {"monday", "friday"} < set(await ranked(search))


async def test_a_unit_whose_time_has_come_is_deleted(library: Library, tmp_path: Path) -> None:
    relay = VectorRelay(library.database, EmbeddedIndex(tmp_path / "glm.vectors", SPACE))
    await relay.open()
    await library.store(id="lunch", expires_at=NOON + timedelta(hours=1), embeddings=a_vector(1, 0, 0, 0))
    await library.store(id="later", expires_at=NOON + timedelta(hours=3))
    await library.store(id="kept")
    await relay.relay()

    assert await library.expire() == []
    library.clock.advance(hours=2)
    assert await library.expire() == ["lunch"]
    assert await library.expire() == []

    assert sorted(await library.found()) == ["kept", "later"]
    await relay.relay()
    assert (await relay.check()).is_clean
    await library.update("later", expires_at=None)
    library.clock.advance(hours=2)
    assert await library.expire() == []
    await relay.index.close()
