"""Search by words: the database's full-text index proposes units, BM25 scores them."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import reduce
from operator import add
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import TSQUERY
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.identities import Principal
from bus_schema.kem_query import KemQuery
from language.words import query_stems
from memory.glm.queries import matching, readable_by
from memory.glm.tables import KemRow, TextRow
from mindbus.sql.database import Database
from retrieval.bm25 import LexicalScore, idf, lexical_scores

# Texts that the index proposes for scoring.
_CANDIDATES = 300
# A query is a sentence or two; of a whole page, the first words have to do.
_MAX_STEMS = 64
# A stem of more texts than these is common: to rank all of them would take too long.
_COMMON = 1000
# Newest texts that are searched for common stems.
_NEWEST = 10_000
# SQLite's full-text index; its rowids are `TextRow.seq`.
_INDEX = sa.table("kem_words", sa.column("rowid"), sa.column("rank"))
_ROWS = sa.select(KemRow.id, TextRow.stems).join(TextRow, TextRow.kem_id == KemRow.id)
SelectT = TypeVar("SelectT", bound=sa.Select[*tuple[Any, ...]])
# The tsvector column that the migration adds on PostgreSQL.
_WORDS: Any = sa.literal_column("kem_texts.words")


class LexicalSearch:
    """BM25 over the candidates of the full-text index, under the rights and conditions of the query.

    Candidates are the best texts with rare stems of the query; if it has none, the newest with all its stems. Document
    frequencies count readable units only, so that scores tell nothing of the others.
    """

    def __init__(self, database: Database, candidates: int = _CANDIDATES, common: int = _COMMON) -> None:
        self.database, self._candidates, self._common = database, candidates, common

    async def scores(self, text: str, query: KemQuery, principal: Principal) -> dict[str, LexicalScore]:
        """Scores of the units that match the query and have some of the words of `text`, by id. Raises DatabaseAway."""
        terms = dict(list(query_stems(text).items())[:_MAX_STEMS])
        if not terms:
            return {}
        async with self.database.reading() as session:
            newest = await session.scalar(sa.select(sa.func.max(TextRow.seq))) or 0
            # A power of two: how many units are hidden from the principal must not be told.
            total = 1 << newest.bit_length()
            counts = await self._counts(session, terms, principal, total)
            texts: dict[str, str] = {}
            for candidates in self._proposals(counts, total, newest):
                allowed = candidates.where(matching(query), readable_by(principal)).limit(self._candidates)
                if texts := {row.id: row.stems for row in await session.execute(allowed)}:
                    break
        return await asyncio.to_thread(lexical_scores, terms, texts, total, counts)

    async def _counts(
        self, session: AsyncSession, stems: Collection[str], principal: Principal, total: int
    ) -> dict[str, int]:
        """Document frequency of each stem; of a common one, extrapolated from the newest texts."""
        having = (self._having(stem).where(readable_by(principal)).limit(self._common).subquery() for stem in stems)
        counting = [
            sa.select(sa.literal(stem), sa.func.count(some.c.seq), sa.func.min(some.c.seq))
            for stem, some in zip(stems, having, strict=True)
        ]
        rows = (await session.execute(sa.union_all(*counting))).all()
        return {
            stem: count if count < self._common else max(count, count * total // (total - oldest + 1))
            for stem, count, oldest in rows
            if count
        }

    def _proposals(self, counts: Mapping[str, int], total: int, newest: int) -> Iterator[sa.Select[str, str]]:
        """Candidate queries; each is run only where the one before finds nothing."""
        rare = {stem: idf(count, total) for stem, count in counts.items() if count < self._common}
        if rare:
            yield self._best(rare)
        elif counts:
            yield self._newest(counts, newest, is_all=True)
            yield self._newest(counts, newest, is_all=False)

    def _best(self, weights: Mapping[str, float]) -> sa.Select[str, str]:
        """By SQLite's own rank; PostgreSQL ranks by the idf of the stems."""
        having = self._with(_ROWS, weights, is_all=False)
        if self.database.is_sqlite:
            return having.order_by(_INDEX.c.rank)
        weighted = (sa.case((_words_have(f"'{stem}'"), weight), else_=0.0) for stem, weight in weights.items())
        return having.order_by(reduce(add, weighted).desc())

    def _newest(self, stems: Collection[str], newest: int, *, is_all: bool) -> sa.Select[str, str]:
        having = self._with(_ROWS, stems, is_all=is_all)
        return having.where(self._number > newest - _NEWEST).order_by(self._number.desc())

    def _having(self, stem: str) -> sa.Select[int]:
        """Numbers of the texts that have the stem, newest first."""
        numbers = sa.select(TextRow.seq).join(KemRow, KemRow.id == TextRow.kem_id)
        return self._with(numbers, [stem], is_all=True).order_by(self._number.desc())

    @property
    def _number(self) -> sa.SQLColumnExpression[int]:
        """Number of a text, in the full-text index where that is a table of its own."""
        return _INDEX.c.rowid if self.database.is_sqlite else TextRow.seq

    def _with(self, texts: SelectT, stems: Iterable[str], *, is_all: bool) -> SelectT:
        """Those of the texts that have all of the stems, or any."""
        if self.database.is_sqlite:
            match_query = (" AND " if is_all else " OR ").join(f'"{stem}"' for stem in stems)
            matching = sa.literal_column("kem_words").op("MATCH", is_comparison=True)(match_query)
            return texts.join(_INDEX, _INDEX.c.rowid == TextRow.seq).where(matching)
        return texts.where(_words_have((" & " if is_all else " | ").join(f"'{stem}'" for stem in stems)))


def _words_have(text_query: str) -> Any:
    return _WORDS.op("@@")(sa.cast(text_query, TSQUERY))
