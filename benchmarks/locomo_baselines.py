"""What the usual ways of searching find of the same turns: BM25 over turns, nearest vectors of turns."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from benchmarks.locomo_data import Conversation, Question
from bus_schema.lsm import SaidMessage
from config.settings import FleetSettings
from language.words import query_stems, stems
from memory.lsm.search.ranking import fit_budget
from memory.lsm.tables import TurnVectorRow
from mindbus.sql.database import Database
from retrieval.bm25 import SequencePostings
from retrieval.embedding.selection import configured_embedder
from retrieval.segments import Segments

Verdicts = dict[int, list[tuple[str, bool, bool]]]
Order = Sequence[int]


@dataclass(frozen=True)
class RankedTurns:
    """A question with the places of its talk's messages, best first, by each way of searching."""

    talk: Conversation
    question: Question
    words: NDArray[np.uint32]
    orders: Mapping[str, Order]

    def found(self, way: str, budget: int) -> list[SaidMessage]:
        """Messages that fit the budget, whole."""
        messages = messages_of(self.talk)
        return [messages[place] for place in fit_budget(self.orders[way], self.words, budget)]


async def baselines(
    settings: FleetSettings, talks: Sequence[Conversation], raw_ids: dict[str, str], budgets: Sequence[int]
) -> dict[str, Verdicts]:
    """Verdicts of the usual ways of searching, by budget."""
    found: dict[str, Verdicts] = {name: {budget: [] for budget in budgets} for name in ("bm25_turns", "dense_turns")}
    async for ranked in ranked_turns(settings, talks, raw_ids):
        for name, verdicts in found.items():
            for budget in budgets:
                turns = {each.message_id for each in ranked.found(name, budget)}
                there = [each in turns for each in ranked.question.evidence]
                verdicts[budget].append((ranked.question.category, any(there), all(there)))
    return found


async def ranked_turns(
    settings: FleetSettings, talks: Sequence[Conversation], raw_ids: dict[str, str]
) -> AsyncIterator[RankedTurns]:
    """Every question, by the memory's own vectors, now that nobody else has them open.

    `dense_user_turns` ranks the user's turns alone.
    """
    vectors = await _vectors(settings)
    embedder = await configured_embedder(settings)
    for talk in talks:
        messages = messages_of(talk)
        postings = SequencePostings(Segments(timedelta(0)))
        for message in messages:
            said = f"{message.speaker}: {message.content}" if message.speaker else message.content
            postings.add(list(stems(said)))
        words = np.array([len(message.content.split()) for message in messages], dtype=np.uint32)
        matrix = np.stack([_unit(vectors[raw_ids[str(message.message_id)]]) for message in messages])
        is_user = np.array([message.role == "user" for message in messages])
        for question in talk.questions:
            asked = np.frombuffer((await embedder.query(question.text)).raw, dtype="<f4")
            by_words, by_vectors = postings.scores(query_stems(question.text)), matrix @ _unit(asked)
            users = np.argsort(-by_vectors, kind="stable")
            orders = {
                "bm25_turns": np.argsort(-by_words, kind="stable").tolist(),
                "dense_turns": users.tolist(),
                "dense_user_turns": users[is_user[users]].tolist(),
            }
            yield RankedTurns(talk, question, words, orders)
    await embedder.close()


def messages_of(talk: Conversation) -> list[SaidMessage]:
    """Messages of all sessions, in their order."""
    return [message for session in talk.sessions for message in session]


async def _vectors(settings: FleetSettings) -> dict[str, NDArray[np.float32]]:
    """Vectors of all turns by their ids."""
    database = Database(settings.database_of("lsm"), "lsm")
    async with database.reading() as session:
        rows = await session.execute(select(TurnVectorRow.raw_log_id, TurnVectorRow.data))
        vectors = {raw_log_id: np.frombuffer(data, dtype="<f4") for raw_log_id, data in rows}
    await database.dispose()
    return vectors


def _unit(row: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(row / max(float(np.linalg.norm(row)), 1e-6), dtype=np.float32)
