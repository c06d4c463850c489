"""Units that have the words of a question."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import reduce
from operator import add
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    case,
    cast,
    column,
    func,
    literal,
    literal_column,
    select,
    table,
    union_all,
)
from sqlalchemy.dialects.postgresql import TSQUERY
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.kem_query import KemQuery
from language.words import query_stems
from memory.glm.acl import readable_by
from memory.glm.conditions import meeting
from memory.glm.tables import KemRow, TextRow
from mindbus.principal import Principal
from mindbus.sql.database import Database
from retrieval.bm25 import LexicalScore, idf, lexical_scores

# As many as the index of words proposes, of which scores are made.
_CANDIDATES = 300
# A question is a sentence or two; whoever sends a page gets by with its first words.
_MOST_STEMS = 64
# What more texts than these have is common, however many there are: to rank all of them would take too long.
_COMMON = 1000
# Of common words, so many texts are looked at, the newest.
_LOOKED_AT = 10_000
# SQLite's own index of words, whose rows have the numbers of texts.
_INDEX = table("kem_words", column("rowid"), column("rank"))
# On PostgreSQL alone, where the migration adds it.
_WORDS: Any = literal_column("kem_texts.words")


class LexicalSearch:
    """The database's index of words proposes, under the rights and the filters of the question; BM25 decides.

    Texts with its rare words are proposed, the best of them; of a question that has none, the newest with all its
    words. How common a word is, only the units tell that the asker may read: scores say nothing of the others.
    """

    def __init__(self, database: Database, candidates: int = _CANDIDATES, common: int = _COMMON) -> None:
        self.database, self._candidates, self._common = database, candidates, common

    async def found(self, text: str, query: KemQuery, principal: Principal) -> dict[str, LexicalScore]:
        """Those that the question means apart from its text, by their ids. Raises DatabaseAway."""
        asked = dict(list(query_stems(text).items())[:_MOST_STEMS])
        if not asked:
            return {}
        async with self.database.reading() as session:
            newest = await session.scalar(select(func.max(TextRow.seq))) or 0
            # The nearest power of two: how many there are that the asker may not read is nobody's business.
            total = 1 << newest.bit_length()
            counts = await self._counts(session, asked, principal, total)
            texts: dict[str, str] = {}
            for proposed in self._proposals(counts, total, newest):
                wanted = proposed.where(meeting(query), readable_by(principal)).limit(self._candidates)
                if texts := {row.id: row.stems for row in await session.execute(wanted)}:
                    break
        return await asyncio.to_thread(lexical_scores, asked, texts, total, counts)

    async def _counts(
        self, session: AsyncSession, asked: Collection[str], principal: Principal, total: int
    ) -> dict[str, int]:
        """How many texts have each stem; of a common one, as many as there would be if all were like the newest."""
        having = (self._having(stem).where(readable_by(principal)).limit(self._common).subquery() for stem in asked)
        counting = [
            select(literal(stem), func.count(some.c.seq), func.min(some.c.seq))
            for stem, some in zip(asked, having, strict=True)
        ]
        rows = (await session.execute(union_all(*counting))).all()
        return {
            stem: count if count < self._common else max(count, count * total // (total - oldest + 1))
            for stem, count, oldest in rows
            if count
        }

    def _proposals(self, counts: Mapping[str, int], total: int, newest: int) -> Iterator[Select[str, str]]:
        """Each only where the one before it finds nothing."""
        rare = {stem: idf(count, total) for stem, count in counts.items() if count < self._common}
        if rare:
            yield self._best(rare)
        elif counts:
            yield self._newest(counts, newest, is_all=True)
            yield self._newest(counts, newest, is_all=False)

    def _best(self, weights: Mapping[str, float]) -> Select[str, str]:
        """By the rank that SQLite has for a text; PostgreSQL has to be told what is rare."""
        if self.database.is_sqlite:
            rows = _rows().join(_INDEX, _INDEX.c.rowid == TextRow.seq)
            return rows.where(_matching(_quoted(weights, " OR "))).order_by(_INDEX.c.rank)
        found = (case((_words_have(f"'{stem}'"), weight), else_=0.0) for stem, weight in weights.items())
        return (
            _rows().where(_words_have(" | ".join(f"'{stem}'" for stem in weights))).order_by(reduce(add, found).desc())
        )

    def _newest(self, stems: Collection[str], newest: int, *, is_all: bool) -> Select[str, str]:
        oldest = newest - _LOOKED_AT
        if self.database.is_sqlite:
            matching = _matching(_quoted(stems, " AND " if is_all else " OR "))
            rows = _rows().join(_INDEX, _INDEX.c.rowid == TextRow.seq)
            return rows.where(matching, _INDEX.c.rowid > oldest).order_by(_INDEX.c.rowid.desc())
        having = _words_have((" & " if is_all else " | ").join(f"'{stem}'" for stem in stems))
        return _rows().where(having, TextRow.seq > oldest).order_by(TextRow.seq.desc())

    def _having(self, stem: str) -> Select[int]:
        """The newest first."""
        numbers = select(TextRow.seq).join(KemRow, KemRow.id == TextRow.kem_id)
        if self.database.is_sqlite:
            matching = numbers.join(_INDEX, _INDEX.c.rowid == TextRow.seq).where(_matching(_quoted([stem], "")))
            return matching.order_by(_INDEX.c.rowid.desc())
        return numbers.where(_words_have(f"'{stem}'")).order_by(TextRow.seq.desc())


def _rows() -> Select[str, str]:
    return select(KemRow.id, TextRow.stems).join(TextRow, TextRow.kem_id == KemRow.id)


def _quoted(stems: Iterable[str], joint: str) -> str:
    return joint.join(f'"{stem}"' for stem in stems)


def _matching(words: str) -> ColumnElement[bool]:
    return literal_column("kem_words").op("MATCH", is_comparison=True)(words)


def _words_have(words: str) -> Any:
    return _WORDS.op("@@")(cast(words, TSQUERY))
