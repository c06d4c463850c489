"""Units that have the words of a question."""

import asyncio
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Select, cast, column, func, literal_column, select, table
from sqlalchemy.dialects.postgresql import TSQUERY

from bus_schema.kem_query import KemQuery
from memory.asker import Asker
from memory.glm.acl import readable_by
from memory.glm.bm25 import WordHit, word_hits
from memory.glm.conditions import meeting
from memory.glm.tables import KemRow, TextRow
from memory.stems import questioned
from mindbus.sql.database import Database

# As many as the index of words proposes, of which scores are made.
_CANDIDATES = 300
# A question is a sentence or two; whoever sends a page gets by with its first words.
_MOST_STEMS = 64


class Words:
    """The database's index of words proposes, under the rights and the filters of the question; BM25 decides.

    How common a word is, only the units tell that the asker may read: scores say nothing of the others.
    """

    def __init__(self, database: Database, candidates: int = _CANDIDATES) -> None:
        self.database, self._candidates = database, candidates

    async def found(self, text: str, query: KemQuery, asker: Asker) -> dict[str, WordHit]:
        """Those that the question means apart from its text, by their ids. Raises DatabaseAway."""
        asked = dict(list(questioned(text).items())[:_MOST_STEMS])
        if not asked:
            return {}
        wanted = self._proposed(asked).where(meeting(query), readable_by(asker)).limit(self._candidates)
        async with self.database.reading() as session:
            texts = {row.id: row.stems for row in await session.execute(wanted)}
            newest = await session.scalar(select(func.max(TextRow.seq))) or 0
        # The nearest power of two: how many there are that the asker may not read is nobody's business.
        return await asyncio.to_thread(word_hits, asked, texts, 1 << newest.bit_length())

    def _proposed(self, asked: Iterable[str]) -> Select[str, str]:
        rows = select(KemRow.id, TextRow.stems).join(TextRow, TextRow.kem_id == KemRow.id)
        if self.database.is_sqlite:
            index = table("kem_words", column("rowid"), column("rank"))
            question = " OR ".join(f'"{stem}"' for stem in asked)
            rows = rows.join(index, index.c.rowid == TextRow.seq)
            return rows.where(literal_column("kem_words").op("MATCH")(question)).order_by(index.c.rank)
        words: Any = literal_column("kem_texts.words")
        wanted = cast(" | ".join(f"'{stem}'" for stem in asked), TSQUERY)
        return rows.where(words.op("@@")(wanted)).order_by(func.ts_rank(words, wanted).desc())
