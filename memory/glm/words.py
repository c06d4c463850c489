"""Units that have the words of a question."""

import asyncio
from collections.abc import Collection
from functools import reduce
from operator import add
from typing import Any

from sqlalchemy import Select, case, cast, column, func, literal_column, select, table
from sqlalchemy.dialects.postgresql import TSQUERY
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.kem_query import KemQuery
from memory.asker import Asker
from memory.glm.acl import readable_by
from memory.glm.bm25 import WordHit, rarity, word_hits
from memory.glm.conditions import meeting
from memory.glm.tables import KemRow, TextRow
from memory.stems import questioned
from mindbus.sql.database import Database

# As many as the index of words proposes, of which scores are made.
_CANDIDATES = 300
# A question is a sentence or two; whoever sends a page gets by with its first words.
_MOST_STEMS = 64
# What more texts than these have is common, however many there are.
_COMMON = 2000
# On PostgreSQL alone, where the migration adds it.
_WORDS: Any = literal_column("kem_texts.words")


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
        async with self.database.reading() as session:
            # The nearest power of two: how many there are that the asker may not read is nobody's business.
            total = 1 << (await session.scalar(select(func.max(TextRow.seq))) or 0).bit_length()
            proposed = _by_rank(asked) if self.database.is_sqlite else await _by_rarity(session, asked, total)
            wanted = proposed.where(meeting(query), readable_by(asker)).limit(self._candidates)
            texts = {row.id: row.stems for row in await session.execute(wanted)}
        return await asyncio.to_thread(word_hits, asked, texts, total)


def _by_rank(asked: Collection[str]) -> Select[str, str]:
    """As SQLite's own index has it."""
    index = table("kem_words", column("rowid"), column("rank"))
    question = " OR ".join(f'"{stem}"' for stem in asked)
    rows = _rows().join(index, index.c.rowid == TextRow.seq)
    return rows.where(literal_column("kem_words").op("MATCH")(question)).order_by(index.c.rank)


async def _by_rarity(session: AsyncSession, asked: Collection[str], total: int) -> Select[str, str]:
    """PostgreSQL counts words that are there; which of them are rare it has to be asked."""
    has = [_WORDS.op("@@")(cast(f"'{stem}'", TSQUERY)) for stem in asked]
    some = [select(TextRow.seq).where(each).limit(_COMMON).subquery() for each in has]
    counts = await session.execute(select(*(select(func.count()).select_from(each).scalar_subquery() for each in some)))
    pairs = zip(has, counts.one(), strict=True)
    weights = [case((each, rarity(count, total)), else_=0.0) for each, count in pairs]
    wanted = cast(" | ".join(f"'{stem}'" for stem in asked), TSQUERY)
    return _rows().where(_WORDS.op("@@")(wanted)).order_by(reduce(add, weights).desc())


def _rows() -> Select[str, str]:
    return select(KemRow.id, TextRow.stems).join(TextRow, TextRow.kem_id == KemRow.id)
