"""What is asked for is found, page by page, by those who may read it."""

import random
from typing import Any

import pytest

from bus_schema.identities import Principal
from bus_schema.kem_match import meets_filter
from bus_schema.kem_query import KemQuery
from memory.errors import NoSuchKem
from retrieval.cursors import InvalidCursor
from tests.memory_kit import ANNA, CRITIC, RESEARCHER, Library, a_draft

SWM = Principal("svc.swm", is_trusted=True)
METADATA: dict[str, dict[str, Any]] = {
    "plain": {"source": "manual", "topic": "AI"},
    "number": {"source": "manual", "n": 1},
    "float": {"n": 1.5},
    "text": {"n": "1"},
    "truth": {"n": True},
    "lie": {"n": False},
    "list": {"n": [1, "x", True], "source": None},
    "nested": {"n": {"n": 1}},
    "long": {"n": "1" * 300, "автор": "Анна"},
    "bare": {},
}
VALUES = [True, False, 0, 1, 1.5, "1", "x", "manual", "Анна"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"source": "manual", "topic": "AI"}, {"plain"}),
        ({"n": 1}, {"number", "list"}),
        ({"n": True}, {"truth", "list"}),
        ({"n": False}, {"lie"}),
        ({"n": "1"}, {"text"}),
        ({"n": {"gte": 1}}, {"number", "float", "list"}),
        ({"n": {"gt": 1, "lt": 2}}, {"float"}),
        ({"n": {"any_of": ["1", 1.5]}}, {"text", "float"}),
        ({"автор": "Анна"}, {"long"}),
        ({"OR": [{"topic": "AI"}, {"n": {"lte": 1}}]}, {"plain", "number", "list"}),
        ({"AND": [{"source": "manual"}, {"NOT": {"topic": "AI"}}]}, {"number"}),
        ({"NOT": {"n": {"any_of": VALUES}}}, {"plain", "nested", "long", "bare"}),
        ({}, set(METADATA)),
    ],
)
async def test_metadata_selects(library: Library, wanted: dict[str, Any], found: set[str]) -> None:
    await library.store_all(*(a_draft(id=name, metadata=metadata) for name, metadata in METADATA.items()))

    assert set(await library.found(metadata_filters=wanted)) == found


def a_condition(chance: random.Random) -> Any:
    kind = chance.randrange(3)
    if kind == 0:
        return chance.choice(VALUES)
    if kind == 1:
        return {"any_of": chance.choices(VALUES, k=2)}
    return {chance.choice(["gt", "gte", "lt", "lte"]): chance.choice([0, 1, 1.5])}


def a_tree(chance: random.Random, depth: int = 0) -> dict[str, Any]:
    kind = chance.choice(["AND", "OR", "NOT", "plain"]) if depth < 3 else "plain"
    if kind == "plain":
        return {chance.choice(["n", "source", "topic", "автор"]): a_condition(chance) for _ in range(2)}
    part = a_tree(chance, depth + 1)
    return {kind: part if kind == "NOT" else [part, a_tree(chance, depth + 1)]}


async def test_the_database_means_by_a_filter_what_memory_means(library: Library) -> None:
    await library.store_all(*(a_draft(id=name, metadata=metadata) for name, metadata in METADATA.items()))

    for seed in range(100):
        tree = a_tree(random.Random(seed))
        wanted = KemQuery.model_validate({"metadata_filters": tree}).metadata_filters
        meant = {name for name, metadata in METADATA.items() if meets_filter(metadata, wanted)}
        assert set(await library.found(metadata_filters=tree)) == meant, tree


async def test_times_select_with_both_their_ends(library: Library) -> None:
    for name in ("a", "b", "c"):
        await library.store(id=name)
        library.clock.advance(hours=1)
    noon = library.clock.now.replace(hour=12)

    assert await library.found(created_at_start=noon, created_at_end=noon.replace(hour=13)) == ["b", "a"]
    await library.update("a", content="changed")
    assert await library.found(updated_at_start=noon.replace(hour=14)) == ["a", "c"]
    assert await library.found(created_at_end=noon, updated_at_end=noon) == []


async def test_all_that_is_given_is_anded(library: Library) -> None:
    await library.store_all(*(a_draft(id=f"kem_{n}", metadata={"n": n}) for n in range(4)))

    assert await library.found(ids=["kem_1", "kem_2", "kem_9"], metadata_filters={"n": {"gte": 2}}) == ["kem_2"]


@pytest.mark.parametrize("order_by", [None, "updated_at asc", "created_at desc", "created_at asc", "id asc", "id desc"])
async def test_pages_lead_past_everything_once(library: Library, order_by: str | None) -> None:
    for moment in range(3):
        await library.store_all(*(a_draft(id=f"kem_{(moment * 7 + n) % 9}") for n in range(3)))
        library.clock.advance(seconds=1)
    everything = await library.found(order_by=order_by)

    seen: list[str] = []
    cursor: str | None = None
    while not seen or cursor is not None:
        page = await library.page(cursor=cursor, size=2, order_by=order_by)
        seen += [item.kem.id for item in page.items]
        cursor = page.next_cursor

    assert seen == everything
    assert len(set(seen)) == len(everything)


async def test_the_newest_change_comes_first(library: Library) -> None:
    for name in ("a", "b", "c"):
        await library.store(id=name)
        library.clock.advance(seconds=1)
    await library.update("a", content="changed")

    assert await library.found() == ["a", "c", "b"]


async def test_a_cursor_goes_with_its_own_question(library: Library) -> None:
    await library.store_all(*(a_draft(id=f"kem_{n}", metadata={"a": 1}) for n in range(3)))
    cursor = (await library.page(size=1, metadata_filters={"a": 1})).next_cursor
    assert cursor is not None

    with pytest.raises(InvalidCursor) as other:
        await library.page(size=1, cursor=cursor, metadata_filters={"a": 2})
    assert other.value.details == {"reason": "belongs to another question"}
    for nonsense in ("", "x", "bnVsbA", "W10", "WyJhIiwiYiIsImMiXQ", "я", "[" * 300):
        with pytest.raises(InvalidCursor):
            await library.page(cursor=nonsense, metadata_filters={"a": 1})


@pytest.mark.parametrize(
    ("rights", "readers"),
    [
        ({"visibility": "public"}, {"researcher", "critic", "anna"}),
        ({"visibility": "private"}, {"researcher"}),
        ({"visibility": "readers", "readers": ["user.anna"]}, {"researcher", "anna"}),
        ({"visibility": "readers", "readers": []}, {"researcher"}),
        ({"visibility": "private", "writers": ["agent.critic"]}, {"researcher", "critic"}),
    ],
)
async def test_every_read_is_for_those_who_may(library: Library, rights: dict[str, Any], readers: set[str]) -> None:
    stored = await library.store(id="kem_1", metadata={"secret": "yes"}, **rights)
    query = KemQuery(metadata_filters={"secret": "yes"})

    for principal in (RESEARCHER, Principal("agent.researcher.2"), CRITIC, ANNA, SWM):
        may = principal.is_trusted or principal.owner.split(".")[1] in readers
        assert await library.found(principal) == await library.found(principal, ids=["kem_1"]) == ["kem_1"] * may
        assert await library.queries.count(query, principal) == may
        assert await library.queries.among(["kem_1"], query, principal) == ({"kem_1": stored} if may else {})
        if may:
            assert await library.queries.get("kem_1", principal) == stored
        else:
            with pytest.raises(NoSuchKem):
                await library.queries.get("kem_1", principal)


async def test_what_was_shared_can_be_taken_back(library: Library) -> None:
    await library.store(id="kem_1", visibility="readers", readers=["user.anna"])
    assert await library.found(ANNA) == ["kem_1"]

    await library.update("kem_1", visibility="private")

    assert await library.found(ANNA) == []


async def test_a_page_is_full_of_what_the_asker_may_read(library: Library) -> None:
    drafts = [a_draft(id=f"kem_{n}", visibility="public" if n % 10 == 0 else "private") for n in range(100)]
    await library.store_all(*drafts)

    page = await library.page(CRITIC, size=5, order_by="id asc")

    assert [item.kem.id for item in page.items] == ["kem_0", "kem_10", "kem_20", "kem_30", "kem_40"]
