"""Units that say something else of the same are shown together; those that say the same are one result."""

import gc
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bus_schema.glm import FoundKem
from bus_schema.kem_query import KemQuery
from language.dates import expressions
from language.statements import Statement, statement_content
from memory.glm.index_sync import VectorRelay
from memory.glm.search import KemSearch
from memory.vectors.embedded import EmbeddedIndex
from retrieval.embedding.embedder import Embedder
from retrieval.embedding.selection import open_embedder
from tests.hashing_embedder import HashingEmbedder
from tests.memory_kit import CRITIC, RESEARCHER, Library, a_draft

OTHERS = {"hall": "The hall is being painted.", "meals": "Lunch at the meeting is vegetarian.", "cats": "Cats sleep."}


class Memory:
    """Units with vectors of the real model."""

    def __init__(self, library: Library, ranking: KemSearch, embedder: Embedder) -> None:
        self.library, self.ranking, self.embedder = library, ranking, embedder

    async def store(self, units: dict[str, str], **fields: Any) -> None:
        vectors = await self.embedder.passages(list(units.values()))
        for (name, text), vector in zip(units.items(), vectors, strict=True):
            await self.library.store(a_draft(text, id=name, embeddings=vector, **fields))
            self.library.clock.advance(hours=1)
        await self.ranking.relay.relay()

    async def found(self, text: str, limit: int = 20) -> dict[str, FoundKem]:
        items = (await self.ranking.rank(KemQuery(text_query=text), RESEARCHER, limit)).items
        return {item.kem.id: item for item in items}


@pytest.fixture
async def memory(library: Library, tmp_path: Path) -> AsyncIterator[Memory]:
    embedder = await open_embedder()
    library.kems.space = embedder.space
    relay = VectorRelay(library.database, EmbeddedIndex(tmp_path / "glm.vectors", embedder.space))
    await relay.open()
    yield Memory(library, KemSearch(library.queries, relay, embedder, library.clock), embedder)
    await relay.index.close()
    await embedder.close()


def contradictions(found: dict[str, FoundKem]) -> dict[str, list[tuple[str, bool]]]:
    marked = {name: [(each.kem_id, each.is_newer) for each in item.contradicts] for name, item in found.items()}
    return {name: marks for name, marks in marked.items() if marks}


async def test_contradicting_units_are_shown_together_and_the_newer_is_marked(memory: Memory) -> None:
    await memory.store({"tuesday": "The meeting is on Tuesday.", **OTHERS, "thursday": "The meeting is on Thursday."})
    await memory.store({"two": "Бюджет 2 млн", "three": "Бюджет 3 млн"})

    found = await memory.found("When is the meeting?")
    assert contradictions(found)["tuesday"] == [("thursday", True)]
    assert contradictions(found)["thursday"] == [("tuesday", False)]
    assert set(list(found)[:2]) == {"tuesday", "thursday"}
    assert contradictions(await memory.found("Какой бюджет?", 2)) == {
        "two": [("three", True)],
        "three": [("two", False)],
    }
    for limit in range(1, len(found)):
        assert list(await memory.found("When is the meeting?", limit)) == list(found)[:limit]


async def test_no_text_of_a_unit_outlives_the_search_that_has_read_it(memory: Memory) -> None:
    await memory.store({"tuesday": "The exam is on Tuesday.", "thursday": "The exam is on Thursday.", **OTHERS})
    caches = statement_content, expressions._known_rules
    before = [cache.cache_info().currsize for cache in caches]
    assert "tuesday" in contradictions(await memory.found("When is the exam?"))
    gc.collect()
    assert [each.text for each in gc.get_objects() if isinstance(each, Statement)] == []
    assert [cache.cache_info().currsize for cache in caches] == before


async def test_what_contradicts_a_better_result_follows_it_before_what_fits_better(memory: Memory) -> None:
    await memory.store({"first": "Our budget for the spring campaign: 2 million."})
    await memory.store({f"other_{n}": f"What is our budget like, asked speaker {n} of the campaign." for n in range(4)})
    await memory.store({"second": "Spring campaign budget 3 million."})
    found = list(await memory.found("our budget for the spring campaign, million, speaker"))
    assert abs(found.index("first") - found.index("second")) == 1


async def test_of_many_that_contradict_a_result_only_the_best_comes_before_better_ones(memory: Memory) -> None:
    await memory.store({f"budget_{n}": f"The budget of the campaign is {n} million." for n in range(2, 10)})
    await memory.store({"asked": "The budget of the campaign was asked about."})
    found = await memory.found("The budget of the campaign is 2 million.")
    shown, ranked = list(found), sorted(found, key=lambda each: -(found[each].score or 0))
    assert len(found[shown[0]].contradicts) == 7
    assert (shown[0], ranked.index("asked"), shown.index("asked")) == (ranked[0], 1, 2)


async def test_no_contradiction_is_told_of_what_was_superseded_is_of_others_or_is_hidden(memory: Memory) -> None:
    await memory.store({"old": "The meeting is on Tuesday."})
    await memory.store({"new": "The meeting is on Thursday."}, supersedes=["old"])
    await memory.store({"apollo": "The budget is 2 million."}, metadata={"project_id": "apollo"})
    await memory.store({"zeus": "The budget is 3 million."}, metadata={"project_id": "zeus"})
    await memory.store({"anna": "The vacation starts on 5 May."}, metadata={"user_id": "anna"})
    await memory.store({"boris": "The vacation starts on 6 May."}, metadata={"user_id": "boris"})
    await memory.store({"mine": "My birthday is on 5 May."})
    await memory.library.store(a_draft("My birthday is on 6 May.", id="hers"), CRITIC)
    secret = a_draft("The meeting is on Friday.", id="secret", visibility="private")
    await memory.library.store(secret, CRITIC)

    assert contradictions(await memory.found("When is the meeting?")) == {}
    assert contradictions(await memory.found("What is the budget?")) == {}
    assert contradictions(await memory.found("When does the vacation start?")) == {}
    assert contradictions(await memory.found("My birthday")) == {}


@pytest.mark.parametrize(
    ("one", "other", "question"),
    [
        ("The launch is on 5 May.", "Launch: 5 May 2025", "When is the launch?"),
        ("Запуск 5 мая", "Запуск состоится 5 мая 2025 года", "Когда запуск?"),
        ("Бюджет 2 млн", "Бюджет составляет 2 млн", "Какой бюджет?"),
    ],
)
async def test_what_says_the_same_in_other_words_is_one_result(
    memory: Memory, one: str, other: str, question: str
) -> None:
    await memory.store({"one": one, **OTHERS, "other": other})
    found = await memory.found(question)
    assert len({"one", "other"} & found.keys()) == 1
    first = next(iter(found.values()))
    assert {first.kem.id, *(twin.kem_id for twin in first.twins)} == {"one", "other"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Alice hired Bob.", "Alice fired Bob."),
        ("The minimum length of a password is 12 characters.", "The maximum length of a password is 12 characters."),
        ("The import of grain is taxed.", "The export of grain is taxed."),
        ("The employer pays the premium.", "The employee pays the premium."),
        ("Her mother lives in Berlin.", "Her father lives in Berlin."),
        ("Payment is due before delivery.", "Payment is due after delivery."),
        ("We bought two thousand printers.", "We bought two million printers."),
        ("The launch is on 5 May.", "The launch is on 6 May."),
        ("Anna pays Boris.", "Boris pays Anna."),
    ],
)
async def test_what_differs_in_a_value_or_a_meaning_stays(memory: Memory, one: str, other: str) -> None:
    await memory.store({"one": one, "other": other})
    assert {"one", "other"} <= (await memory.found(one)).keys()


@pytest.mark.parametrize("units", [3, 5, 20])
async def test_a_question_about_nothing_in_a_small_memory_finds_nothing(memory: Memory, units: int) -> None:
    texts = [
        "The release of Aurora is on November 27.",
        "Anna is in charge of the budget, which is 3 million.",
        "Customers pay by invoice within thirty days.",
        *(f"The pump in hall {number} was mended by a plumber." for number in range(17)),
    ]
    await memory.store({f"unit_{number}": text for number, text in enumerate(texts[:units])})

    for nonsense in ("qwerty zxcv", "purple elephant dentist", "Who plays the harp?"):
        assert await memory.found(nonsense) == {}, nonsense
    for question, name in (
        ("How much money do we have?", "unit_1"),
        ("How long do buyers have to settle their bills?", "unit_2"),
        ("Aurora", "unit_0"),
    ):
        assert next(iter(await memory.found(question)), None) == name, question


async def test_a_question_in_another_language_than_a_unit_hides_nothing(memory: Memory) -> None:
    await memory.store({"parking": "The garage has forty parking spaces.", "lunch": "Lunch is served at noon."})
    assert await memory.found("Кто играет на арфе?")
    assert await memory.found("Who plays the harp?") == {}
    await memory.store({"hall": "Зал красят."})
    assert await memory.found("Who plays the harp?")


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_the_parts_of_every_score_come_to_it(library: Library, search: KemSearch, seed: int) -> None:
    chance = random.Random(seed)
    said = ["release", "meeting", "budget", "Aurora", "Tuesday", "moved", "Релиз", "бюджет", "вторник", "5", "12"]
    for number in range(30):
        text = " ".join(chance.choices(said, k=chance.randint(2, 9)))
        (vector,) = await HashingEmbedder().passages([text])
        older = [f"unit_{chance.randrange(number)}"] if number and chance.random() < 0.3 else []
        bound = {"valid_to": library.clock()} if chance.random() < 0.2 and not older else {}
        draft = a_draft(text, id=f"unit_{number}", embeddings=chance.choice([vector, None]), supersedes=older, **bound)
        library.clock.advance(hours=1)
        await library.store(draft)
    await search.relay.relay()

    kinds = set()
    for number in range(12):
        embedder = search.embedder if number % 4 else None
        asked = KemSearch(search.queries, search.relay, embedder, library.clock)
        query = KemQuery(text_query=" ".join(chance.choices(said, k=chance.randint(1, 4))))
        for item in (await asked.rank(query, RESEARCHER, 50)).items:
            parts = item.explain
            assert parts is not None
            kinds |= {("raised", parts.raised > 0), ("validity", parts.validity), ("dense", parts.dense is None)}
            total = (parts.base + parts.by_words + parts.by_meaning + parts.raised) * parts.validity
            assert total == pytest.approx(item.score)
    assert {("raised", True), ("validity", 0.5), ("dense", True), ("dense", False)} <= kinds
