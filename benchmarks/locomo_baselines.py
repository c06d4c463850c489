"""What the usual ways of searching find of the same turns: BM25 over turns, nearest vectors of turns."""

from collections.abc import Sequence
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from benchmarks.locomo_data import Conversation
from config.settings import FleetSettings
from language.words import query_stems, stems
from memory.lsm.search.ranking import fit_budget
from memory.lsm.tables import TurnVectorRow
from mindbus.sql.database import Database
from retrieval.bm25 import SequencePostings
from retrieval.embedding.selection import configured_embedder
from retrieval.segments import Segments

Verdicts = dict[int, list[tuple[str, bool, bool]]]


async def baselines(
    settings: FleetSettings, talks: Sequence[Conversation], raw_ids: dict[str, str], budgets: Sequence[int]
) -> dict[str, Verdicts]:
    """Of the memory's own vectors, now that nobody else has them open."""
    database = Database(settings.database_of("lsm"), "lsm")
    async with database.reading() as session:
        rows = await session.execute(select(TurnVectorRow.raw_log_id, TurnVectorRow.data))
        vectors = {raw_log_id: np.frombuffer(data, dtype="<f4") for raw_log_id, data in rows}
    await database.dispose()
    embedder = await configured_embedder(settings)
    found: dict[str, Verdicts] = {name: {budget: [] for budget in budgets} for name in ("bm25_turns", "dense_turns")}
    for talk in talks:
        messages = [message for session in talk.sessions for message in session]
        postings = SequencePostings(Segments(timedelta(0)))
        for message in messages:
            postings.add(list(stems(f"{message.speaker}: {message.content}")))
        words = np.array([len(message.content.split()) for message in messages], dtype=np.uint32)
        matrix = np.stack([_unit(vectors[raw_ids[str(message.message_id)]]) for message in messages])
        for question in talk.questions:
            asked = np.frombuffer((await embedder.query(question.text)).raw, dtype="<f4")
            scored = {"bm25_turns": postings.scores(query_stems(question.text)), "dense_turns": matrix @ _unit(asked)}
            for name, scores in scored.items():
                for budget in budgets:
                    order = [int(each) for each in np.argsort(-scores, kind="stable")]
                    turns = {messages[place].message_id for place in fit_budget(order, words, budget)}
                    there = [each in turns for each in question.evidence]
                    found[name][budget].append((question.category, any(there), all(there)))
    await embedder.close()
    return found


def _unit(row: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(row / max(float(np.linalg.norm(row)), 1e-6), dtype=np.float32)
