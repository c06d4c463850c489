"""A question in words finds what answers it, by meaning, by words, for those who may read it."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bus_schema.glm import FoundKem
from bus_schema.identities import Principal
from bus_schema.kem_query import KemQuery
from language.words import Language, language_of
from memory.glm.index_sync import VectorRelay
from memory.glm.lexical import LexicalSearch
from memory.glm.search import KemSearch, RankedKems
from memory.vectors.embedded import EmbeddedIndex
from memory.vectors.index import IndexAway, IndexRefused, NearKem
from retrieval.embedding.e5 import mean_passage
from retrieval.embedding.embedder import WrongVector
from retrieval.embedding.selection import open_embedder
from retrieval.similarity import as_floats
from tests.hashing_embedder import HashingEmbedder
from tests.memory_documents import documents
from tests.memory_kit import ANNA, CRITIC, RESEARCHER, Library, a_draft, a_vector

TEXTS = {
    "friday": "The release was moved to Friday.",
    "monday": "Релиз перенесли на понедельник.",
    "cats": "Cats sleep; cats eat; cats know.",
    "long": "The release. " + "Nothing else is said here at all. " * 50,
}


class FailingIndex(EmbeddedIndex):
    """Fails with its `trouble`, while it has one."""

    trouble: Exception | None = None

    async def nearest(self, vector: bytes, query: KemQuery, principal: Principal, limit: int) -> list[NearKem]:
        if self.trouble is not None:
            raise self.trouble
        return await super().nearest(vector, query, principal, limit)


class Searcher:
    """All that a search needs; what is stored is embedded as kps would."""

    def __init__(self, library: Library, path: Path) -> None:
        self.embedder = HashingEmbedder()
        self.index = FailingIndex(path, self.embedder.space)
        self.library = library
        library.kems.space = self.embedder.space
        self.relay = VectorRelay(library.database, self.index)
        self.ranking = KemSearch(library.queries, self.relay, self.embedder)

    async def store(self, content: str, **fields: Any) -> None:
        (vector,) = await self.embedder.passages([content])
        await self.library.store(a_draft(content, embeddings=vector, **fields))
        await self.relay.relay()

    async def ranked(self, text: str | None, by: Principal = RESEARCHER, limit: int = 10, **query: Any) -> RankedKems:
        return await self.ranking.rank(KemQuery.model_validate({"text_query": text} | query), by, limit)

    async def ids(self, text: str | None, by: Principal = RESEARCHER, limit: int = 10, **query: Any) -> list[str]:
        return [item.kem.id for item in (await self.ranked(text, by, limit, **query)).items]


@pytest.fixture
async def search(library: Library, tmp_path: Path) -> AsyncIterator[Searcher]:
    found = Searcher(library, tmp_path / "glm.vectors")
    await found.relay.open()
    for name, text in TEXTS.items():
        await found.store(text, id=name, metadata={"length": len(text)})
    yield found
    await found.index.close()
    await found.embedder.close()


def explained(found: RankedKems, kem_id: str) -> FoundKem:
    return next(item for item in found.items if item.kem.id == kem_id)


async def test_the_best_answer_comes_first_with_its_reasons(search: Searcher) -> None:
    found = await search.ranked("Which releases moved?")

    assert [item.kem.id for item in found.items][:2] == ["friday", "long"]
    assert not found.is_degraded
    best = explained(found, "friday")
    assert best.score is not None
    assert 0 < best.score < 1
    assert best.explain is not None
    assert best.explain.words == ("releases", "moved")
    assert best.explain.dense is not None
    assert best.explain.lexical is not None
    other = explained(found, "cats").explain
    assert other is not None
    assert (other.lexical, other.words) == (0, ())


async def test_russian_is_found_in_any_of_its_forms(search: Searcher) -> None:
    found = await search.ranked("О переносе релиза на понедельники")

    assert found.items[0].kem.id == "monday"
    assert found.items[0].explain is not None
    assert found.items[0].explain.words == ("релиза", "понедельники")


TROUBLES = {"index": IndexAway("out for lunch"), "refusal": IndexRefused(message="not by this field")}


@pytest.mark.parametrize("what", ["embedder", "none", *TROUBLES])
async def test_whatever_is_away_words_still_find(search: Searcher, what: str) -> None:
    if what == "none":
        search.ranking.embedder = None
    search.embedder.away, search.index.trouble = what == "embedder", TROUBLES.get(what)

    found = await search.ranked("Friday's release")

    assert found.is_degraded
    assert [item.kem.id for item in found.items] == ["friday", "long"]
    assert found.items[0].explain is not None
    assert found.items[0].explain.dense is None


async def test_a_vector_beside_the_text_says_what_is_meant(search: Searcher) -> None:
    search.embedder.away = True
    (vector,) = await HashingEmbedder().passages(["cats sleep"])

    found = await search.ranked("release", embedding_query=vector)

    assert not found.is_degraded
    assert {item.kem.id for item in found.items[:3]} == {"friday", "long", "cats"}


async def test_a_vector_of_another_model_is_refused_even_beside_a_text(search: Searcher) -> None:
    with pytest.raises(WrongVector):
        await search.ranked("release", embedding_query=a_vector(1, 0, 0, 0))


async def test_what_is_changed_or_deleted_is_not_found_by_its_older_words(search: Searcher) -> None:
    search.embedder.away = True
    await search.library.update("friday", content="Dogs bark.")
    await search.library.delete("long")

    assert await search.ids("release moved") == []
    assert await search.ids("barking") == ["friday"]


async def test_a_unit_without_a_vector_is_found_by_its_words(search: Searcher) -> None:
    await search.library.store(id="bare", content="A zebra crossing")

    found = await search.ranked("zebras")

    assert found.items[0].kem.id == "bare"
    assert found.items[0].explain is not None
    assert found.items[0].explain.dense is None


async def test_filters_hold_for_words_too(search: Searcher) -> None:
    assert set(await search.ids("release", metadata_filters={"length": {"lt": 40}})) == {"friday", "monday", "cats"}
    search.embedder.away = True
    assert await search.ids("releases", metadata_filters={"length": {"lt": 40}}) == ["friday"]
    assert await search.ids("releases", ids=["long", "cats"]) == ["long"]
    later = search.library.clock.now.replace(year=2100)
    assert await search.ids("releases", created_at_start=later) == []


@pytest.mark.parametrize("away", [False, True])
async def test_what_is_private_is_neither_found_nor_felt(search: Searcher, away: bool) -> None:
    before = await search.ranked("moved release zebra", ANNA)
    for number in range(3):
        content = "The zebra release was moved"
        await search.store(content, id=f"secret_{number}", visibility="private", metadata={"length": 1})
    search.embedder.away = away
    after = await search.ranked("moved release zebra", ANNA)

    assert [item.kem.id for item in after.items if item.kem.id.startswith("secret")] == []
    assert [item.kem.id for item in (await search.ranked("zebra", CRITIC)).items if "secret" in item.kem.id] == []
    assert len(await search.ids("zebra release", limit=3)) == 3
    words = {item.kem.id: item.explain.lexical for item in before.items if item.explain and item.explain.lexical}
    assert {i.kem.id: i.explain.lexical for i in after.items if i.explain and i.explain.lexical} == words


async def test_another_order_is_kept_among_the_best(search: Searcher) -> None:
    assert await search.ids("release", order_by="id asc") == ["cats", "friday", "long", "monday"]
    assert await search.ids("release", order_by="id desc", limit=2) == ["monday", "long"]


async def test_a_rare_word_is_not_lost_among_many_common_ones(search: Searcher) -> None:
    search.ranking.lexical = LexicalSearch(search.library.database, candidates=5)
    search.embedder.away = True
    common = [a_draft("A common release moved again", id=f"common_{n}") for n in range(20)]
    await search.library.store_all(*common, a_draft("Zebra", id="rare"))

    assert "rare" in await search.ids("release moved common zebra")


async def test_of_common_words_the_newest_texts_that_have_them_all_are_judged(search: Searcher) -> None:
    search.ranking.lexical = LexicalSearch(search.library.database, candidates=5, common=10)
    search.embedder.away = True
    await search.library.store_all(*(a_draft("A common note", id=f"common_{n:02}") for n in range(20)))
    await search.library.store_all(*(a_draft("A common report", id=f"report_{n:02}") for n in range(20)))

    assert set(await search.ids("common note")) == {f"common_{n}" for n in range(15, 20)}
    # Nobody has both.
    assert set(await search.ids("note report")) == {f"report_{n}" for n in range(15, 20)}
    rare = await search.ranked("common note zebra release")
    assert {item.kem.id for item in rare.items} == {"friday", "long"}


async def test_a_common_word_is_little_evidence_however_many_texts_are_judged(search: Searcher) -> None:
    search.ranking.lexical = LexicalSearch(search.library.database, candidates=5, common=10)
    await search.library.store_all(*(a_draft("A common note", id=f"common_{n}") for n in range(60)))

    found = await search.ranked("common cats")
    assert [item.kem.id for item in found.items][:1] == ["cats"]


async def test_the_limit_cuts_what_is_least(search: Searcher) -> None:
    everything = await search.ids("release moved")

    assert await search.ids("release moved", limit=2) == everything[:2]


@pytest.mark.parametrize("text", ["?!", "🙂", "' OR 1=1 --", '"', "NEAR(", "a:b*", "' | ! & <->", "\\", "ё" * 500])
async def test_no_text_is_a_command(search: Searcher, text: str) -> None:
    search.embedder.away = True

    assert await search.ids(text) == []


async def test_a_question_is_embedded_once(search: Searcher) -> None:
    await search.ranked("release")
    search.embedder.away = True

    assert not (await search.ranked("release")).is_degraded


@pytest.mark.parametrize("units", [60, 8])
async def test_a_question_that_no_unit_is_about_finds_nothing(library: Library, tmp_path: Path, units: int) -> None:
    embedder = await open_embedder()
    library.kems.space = embedder.space
    relay = VectorRelay(library.database, EmbeddedIndex(tmp_path / "glm.vectors", embedder.space))
    await relay.open()
    asked = [each for each in documents(200) if language_of(each.text) is Language.ENGLISH][:units]
    texts = [each.text for each in asked]
    vectors = await embedder.passages(texts)
    await library.store_all(*(a_draft(text, embeddings=vector) for text, vector in zip(texts, vectors, strict=True)))
    await relay.relay()
    ranking = KemSearch(library.queries, relay, embedder)

    async def found(text: str) -> int:
        return len((await ranking.rank(KemQuery(text_query=text), RESEARCHER, 10)).items)

    assert await found("zxcv asdf") == 0
    # A word that a unit has, or a meaning that is near to one.
    assert await found(f"zxcv {max(re.findall(r'[A-Za-z]+', texts[0]), key=len)}") == min(units, 10)
    questions = [question for each in asked for question in each.questions]
    assert [question for question in questions if not await found(question)] == []
    # The mean that is subtracted is that of passages of no subject.
    first = await embedder.passages([each.text.split(". ")[0][:200] for each in documents(200)[::5]])
    mean = np.mean([as_floats(vector.raw) for vector in first], axis=0)
    assert np.linalg.norm(mean - mean_passage()) < 0.1
    await relay.index.close()
    await embedder.close()
