"""What an episode says, with such vectors as there are."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from memory.lsm.matters import Matter
from memory.lsm.reading import turns_of
from memory.lsm.rows import as_turn
from memory.lsm.tables import EpisodeOfTurnRow, TurnRow, TurnVectorRow, wants_vector


@dataclass(frozen=True, slots=True)
class Text:
    """The turns of an episode with such vectors as there are."""

    turns: Sequence[TurnRow]
    vectors: Mapping[str, bytes]

    @property
    def has_vectors(self) -> bool:
        """Whether every turn that says anything has one."""
        return bool(self.vectors) and len(self.vectors) == sum(bool(turn.content) for turn in self.turns)

    def matter(self, begin: int = 0, end: int | None = None) -> Matter:
        """What it is about, or what a part of it is."""
        return Matter.of([as_turn(turn) for turn in self.turns[begin:end]], self.vectors)


async def text_of(session: AsyncSession, episode_id: str) -> Text:
    """Of one episode, in the order in which it was said."""
    turns = await turns_of(session, episode_id)
    query = select(TurnVectorRow).where(TurnVectorRow.raw_log_id.in_([turn.id for turn in turns]))
    return Text(turns, {row.raw_log_id: row.data for row in await session.scalars(query)})


async def lacking_vectors(session: AsyncSession, episode_ids: Collection[str]) -> set[str]:
    """Those of the episodes in which some turn still waits for its vector."""
    of_turn = EpisodeOfTurnRow.raw_log_id
    query = (
        select(EpisodeOfTurnRow.episode_id)
        .join(TurnRow, TurnRow.id == of_turn)
        .outerjoin(TurnVectorRow, TurnVectorRow.raw_log_id == of_turn)
        .where(wants_vector(), EpisodeOfTurnRow.episode_id.in_(episode_ids), TurnVectorRow.raw_log_id.is_(None))
    )
    return set(await session.scalars(query.distinct()))


async def mean_of(session: AsyncSession, text: Text) -> tuple[str | None, bytes | None]:
    """The model of its vectors, with their mean direction; nothing where they cancel each other out."""
    query = select(TurnVectorRow.model).where(TurnVectorRow.raw_log_id == next(iter(text.vectors)))
    model = await session.scalar(query)
    vectors = [np.frombuffer(raw, "<f4") for raw in text.vectors.values()]
    mean = np.mean(vectors, axis=0)
    length = float(np.linalg.norm(mean))
    return (model, (mean / length).astype("<f4").tobytes()) if length else (None, None)
