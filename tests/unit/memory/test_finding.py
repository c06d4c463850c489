"""A question in words is answered page by page."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bus_schema.glm import KemPage, RetrieveKems
from memory.glm.index_sync import VectorRelay
from memory.glm.search import KemSearch
from memory.vectors.embedded import EmbeddedIndex
from retrieval.cursors import InvalidCursor
from tests.hashing_embedder import HashingEmbedder
from tests.memory_kit import RESEARCHER, Library, a_draft

KEMS = 25


class Desk:
    """Asks as the worker does."""

    def __init__(self, library: Library, path: Path) -> None:
        self.library, self.embedder = library, HashingEmbedder()
        library.kems.space = self.embedder.space
        self.index = EmbeddedIndex(path, self.embedder.space)
        self.relay = VectorRelay(library.database, self.index)
        self.search = KemSearch(library.queries, self.relay, self.embedder)

    async def fill(self) -> None:
        await self.relay.open()
        texts = [f"The release number {n} was {'moved' if n % 3 else 'cancelled'}" for n in range(KEMS)]
        vectors = await self.embedder.passages(texts)
        drafts = [
            a_draft(text, id=f"kem_{n:02}", embeddings=vector)
            for n, (text, vector) in enumerate(zip(texts, vectors, strict=True))
        ]
        await self.library.store_all(*drafts)

    async def page(self, text: str, cursor: str | None = None, **fields: Any) -> KemPage:
        wanted = RetrieveKems.model_validate({"query": {"text_query": text}, "cursor": cursor} | fields)
        return await self.search.page(wanted, RESEARCHER)


@pytest.fixture
async def desk(library: Library, tmp_path: Path) -> AsyncIterator[Desk]:
    found = Desk(library, tmp_path / "glm.vectors")
    await found.fill()
    yield found
    await found.index.close()
    await found.embedder.close()


async def test_pages_of_what_is_ranked_lead_past_everything_once(desk: Desk) -> None:
    seen: list[str] = []
    scores: list[float] = []
    cursor: str | None = None
    while not seen or cursor is not None:
        page = await desk.page("Which releases were cancelled?", cursor, page_size=4)
        seen += [item.kem.id for item in page.items]
        scores += [item.score or 0 for item in page.items]
        cursor = page.next_cursor

    assert len(seen) == len(set(seen)) == KEMS
    assert scores == sorted(scores, reverse=True)
    assert all(int(kem_id[4:]) % 3 == 0 for kem_id in seen[:9])


async def test_a_cursor_goes_with_its_own_words(desk: Desk) -> None:
    cursor = (await desk.page("release", page_size=4)).next_cursor

    with pytest.raises(InvalidCursor):
        await desk.page("releases", cursor, page_size=4)


async def test_what_was_just_stored_is_found_at_once_by_its_meaning(desk: Desk) -> None:
    page = await desk.page("cancelled", explain=True)

    assert not page.is_degraded
    assert page.items[0].explain is not None
    assert page.items[0].explain.dense is not None


async def test_a_page_without_meaning_says_so(desk: Desk) -> None:
    desk.embedder.away = True

    page = await desk.page("cancelled")

    assert page.is_degraded
    assert [item.explain for item in page.items] == [None] * 9
