"""What was written is found again by questions in other words, in English and in Russian, by the real model."""

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bus_schema.kem_query import KemQuery
from memory.embedding.choice import open_embedder
from memory.embedding.embedder import Embedder
from memory.glm.nearness import Nearness
from memory.glm.ranking import Ranking
from memory.glm.tables import MIGRATIONS, PRAGMAS
from memory.glm.vector_relay import VectorRelay
from memory.glm.words import Words
from memory.vectors.embedded import EmbeddedIndex
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade
from tests.memory_documents import Document, documents
from tests.memory_kit import RESEARCHER, Library, a_draft

TOP = 5
SHORT, LONG = 40, 200
WANTED = 0.95


@dataclass(frozen=True)
class Asked:
    """A question, with where its answer came."""

    question: str
    name: str
    rank: int | None

    @property
    def is_russian(self) -> bool:
        return bool(re.search("[а-я]", self.question))


@pytest.fixture
async def embedder() -> AsyncIterator[Embedder]:
    found = await open_embedder()
    yield found
    await found.close()


async def asked(texts: list[Document], embedder: Embedder, folder: Path) -> list[Asked]:
    library = Library(Database(f"sqlite+aiosqlite:///{folder / 'glm.db'}", "glm", PRAGMAS))
    await upgrade(library.database, MIGRATIONS)
    library.writing.space = embedder.space
    index = EmbeddedIndex(folder / "glm.vectors", embedder.space)
    relay = VectorRelay(library.database, index)
    await relay.open()
    made = await embedder.passages([each.text for each in texts])
    pairs = zip(texts, made, strict=True)
    await library.store_all(*(a_draft(each.text, id=each.name, embeddings=vector) for each, vector in pairs))
    await relay.relay()
    ranking = Ranking(Nearness(index, library.retrieval), Words(library.database), embedder)
    found: list[Asked] = []
    for each in texts:
        for question in each.questions:
            ranked = await ranking.ranked(KemQuery(text_query=question), RESEARCHER, TOP)
            names = [item.kem.id for item in ranked.items]
            found.append(Asked(question, each.name, names.index(each.name) if each.name in names else None))
    await index.close()
    await library.database.dispose()
    return found


def share(found: list[Asked], within: int = TOP) -> float:
    return sum(each.rank is not None and each.rank < within for each in found) / len(found)


@pytest.mark.slow
@pytest.mark.parametrize("count", [SHORT, pytest.param(LONG, marks=pytest.mark.proof)])
async def test_the_right_document_is_among_the_first_five(
    count: int, embedder: Embedder, tmp_path: Path, report: Callable[[str], None]
) -> None:
    found = await asked(documents(count), embedder, tmp_path)
    russian, english = [each for each in found if each.is_russian], [each for each in found if not each.is_russian]

    report(
        f"{count} documents, {len(found)} questions: top {TOP} {share(found):.0%}"
        f" (Russian {share(russian):.0%}, English {share(english):.0%}), first {share(found, 1):.0%}"
    )
    missed = [(each.name, each.question) for each in found if each.rank is None]
    assert share(found) >= WANTED, missed


def test_the_questions_are_as_many_in_either_language_and_none_repeats_a_name() -> None:
    texts = documents(LONG)
    questions = [question for each in texts for question in each.questions]

    assert len(texts) == len({each.name for each in texts}) == LONG
    assert len(questions) == len(set(questions)) == 100
    assert sum(bool(re.search("[а-я]", question)) for question in questions) == 50
    for each in texts:
        assert len(each.text) <= 2000
        assert not any(each.name in question for question in each.questions)
