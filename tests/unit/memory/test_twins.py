"""Units that say the same in the same words are one result of a search, with where each comes from."""

from typing import Any

import pytest

from bus_schema.kem import KemSource
from bus_schema.kem_query import KemQuery
from bus_schema.messages import Link
from memory.glm.search import KemSearch
from tests.hashing_embedder import HashingEmbedder
from tests.memory_kit import CRITIC, RESEARCHER, Library, a_draft

OFFICE = "The office is on Baker Street 12."


async def store(library: Library, search: KemSearch, text: str, **fields: Any) -> None:
    by = fields.pop("by", RESEARCHER)
    (vector,) = await HashingEmbedder().passages([text])
    await library.store(a_draft(text, embeddings=vector, **fields), by)
    await search.relay.relay()


async def found(search: KemSearch, limit: int = 20, question: str = "office Baker Street") -> dict[str, list[str]]:
    """Twins by the unit that stands for them, the best first."""
    items = (await search.rank(KemQuery(text_query=question), RESEARCHER, limit)).items
    return {item.kem.id: [twin.kem_id for twin in item.twins] for item in items}


async def test_many_that_say_the_same_hide_no_other_result(library: Library, search: KemSearch) -> None:
    for number in range(60):
        await store(library, search, OFFICE, id=f"same_{number}")
    for number in range(3):
        await store(library, search, f"The office {number} is near Baker Street.", id=f"other_{number}")

    everything = await found(search, 50)

    assert len(everything) == 4
    assert [*await found(search, 2)] == [*everything][:2]


async def test_one_stands_for_all_and_knows_where_they_come_from(library: Library, search: KemSearch) -> None:
    source = KemSource(links=(Link(kind="message", id="msg_1"),))
    await store(library, search, OFFICE, id="first")
    await store(library, search, "the office is on Baker street, 12", id="again", by=CRITIC, source=source)

    (item,) = (await search.rank(KemQuery(text_query="office Baker Street"), RESEARCHER, 20)).items

    (twin,) = item.twins
    assert {item.kem.id, twin.kem_id} == {"first", "again"}
    origins = {"first": ("agent.researcher", None), "again": ("agent.critic", source)}
    assert (twin.owner, twin.source) == origins[twin.kem_id]


@pytest.mark.parametrize(
    ("text", "metadata"),
    [
        ("The office is on Baker Street 14.", {}),
        ("The office is not on Baker Street 12.", {}),
        ("The office is on Baker Street $12.", {}),
        ("Baker Street 12 is on the office.", {}),
        ("The office was moved to Baker Street 12.", {}),
        (OFFICE, {"user_id": "anna"}),
        (OFFICE, {"status": "superseded"}),
    ],
)
async def test_what_differs_in_a_word_a_number_their_order_or_whom_it_is_about_stays(
    library: Library, search: KemSearch, text: str, metadata: dict[str, Any]
) -> None:
    await store(library, search, OFFICE, id="first")
    await store(library, search, text, id="other", metadata=metadata)
    assert await found(search) == {"first": [], "other": []}


async def test_russian_forms_are_the_same_words_and_a_negation_is_not(library: Library, search: KemSearch) -> None:
    await store(library, search, "Офис переехал на улицу Ленина.", id="first")
    await store(library, search, "офис переехал на улицы Ленина", id="form")
    await store(library, search, "Офис не переехал на улицу Ленина.", id="not")
    twins = await found(search, question="офис улица Ленина")
    assert sorted(map(sorted, ([unit, *others] for unit, others in twins.items()))) == [["first", "form"], ["not"]]


async def test_the_same_document_imported_twice_is_found_once(library: Library, search: KemSearch) -> None:
    for number, artifact in enumerate(("art_1", "art_2")):
        origin = {"artifact_id": artifact, "part": number, "page": number + 1, "path": f"{artifact}.pdf"}
        await store(library, search, OFFICE, id=artifact, metadata={"lang": "en", **origin})
    twins = await found(search)
    assert len(twins) == 1
    assert sorted([*twins, *(twin for all_of in twins.values() for twin in all_of)]) == ["art_1", "art_2"]


async def test_what_others_keep_to_themselves_is_no_twin(library: Library, search: KemSearch) -> None:
    await store(library, search, OFFICE, id="first")
    await store(library, search, OFFICE, id="secret", by=CRITIC, visibility="private")
    assert await found(search) == {"first": []}


async def test_pages_part_the_ranking_whatever_stands_for_whatever(library: Library, search: KemSearch) -> None:
    for number in range(12):
        await store(library, search, f"The office number {number % 4} is on Baker Street.", id=f"unit_{number}")
    everything = list(await found(search))
    assert len(everything) == 4
    for count in range(1, 5):
        assert list(await found(search, count)) == everything[:count]
