"""Facts are kept by who has stated them, completed but never changed, listed page by page."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bus_schema.facts import MAX_SAVED, FactPage, ListFactRecords, SaveFacts
from bus_schema.processing import Fact
from storage_service.records import Facts
from tests.storage_kit import OpenDepot

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


@pytest.fixture
def facts(open_depot: OpenDepot) -> Facts:
    return Facts(open_depot().database)


def a_fact(number: int = 1, **changes: Any) -> Fact:
    known = {
        "fact_id": f"fact_{number}",
        "kind": "fact",
        "text": f"Fact number {number}.",
        "said_by": "anna",
        "said_at": NOON,
        "message_ids": ("msg_1",),
    }
    return Fact.model_validate(known | changes)


async def save(facts: Facts, *saved: Fact) -> None:
    async with facts.database.at_hand():
        for start in range(0, len(saved), MAX_SAVED):
            await facts.save(SaveFacts(facts=saved[start : start + MAX_SAVED]))


async def pages(facts: Facts, **wanted: Any) -> list[FactPage]:
    """Every page of a list."""
    read = [await facts.page(ListFactRecords(**wanted))]
    while read[-1].next_cursor:
        read.append(await facts.page(ListFactRecords(**wanted, cursor=read[-1].next_cursor)))
    return read


async def test_a_fact_of_another_under_the_same_id_changes_nothing(facts: Facts) -> None:
    await save(facts, a_fact(1))
    await save(facts, a_fact(1, said_by="boris", text="Mine.", superseded_by="fact_9", message_ids=("msg_2",)))

    (page,) = await pages(facts)
    assert [(fact.said_by, fact.superseded_by, fact.message_ids) for fact in page.items] == [("anna", None, ("msg_1",))]


async def test_of_five_hundred_facts_none_is_lost_page_by_page(facts: Facts) -> None:
    await save(facts, *(a_fact(each, said_at=NOON + timedelta(minutes=each // 3)) for each in range(500)))
    await save(facts, *(a_fact(1000 + each, said_by="boris") for each in range(3)))

    read = await pages(facts, users=("anna",), limit=60)

    listed = [fact for page in read for fact in page.items]
    assert len(read) == 9
    assert {fact.fact_id for fact in listed} == {f"fact_{each}" for each in range(500)}
    assert len(listed) == 500
    assert [fact.said_at for fact in listed] == sorted((fact.said_at for fact in listed), reverse=True)
    assert sum(len(page.items) for page in await pages(facts)) == 503


async def test_a_fact_is_confirmed_and_superseded_once_however_often_it_is_saved(facts: Facts) -> None:
    await save(facts, a_fact())
    for by in ("fact_2", "fact_3", None):
        await save(facts, a_fact(superseded_by=by, message_ids=("msg_1", "msg_2"), text="Other words."))

    (page,) = await pages(facts, superseded=True)

    assert page.items == (a_fact(superseded_by="fact_2", message_ids=("msg_1", "msg_2")),)
    assert (await pages(facts))[0].items == ()


async def test_facts_are_found_by_kind_and_id(facts: Facts) -> None:
    await save(facts, a_fact(1), a_fact(2, kind="role", project="Полярис", supersedes="fact_9"))

    assert [fact.fact_id for fact in (await pages(facts, kind="role"))[0].items] == ["fact_2"]
    assert (await pages(facts, fact_ids=("fact_2",)))[0].items[0].project == "Полярис"
