"""The space that memory is in, as the database knows it."""

from sqlalchemy import select

from memory.embedding.space import EmbeddingSpace
from memory.glm.tables import SpaceRow
from mindbus.sql.database import Database

_ONLY = 1


async def space_in_use(database: Database) -> EmbeddingSpace | None:
    """Where memory has gone over to; none if it never has, so that the settings say it. Raises DatabaseAway."""
    async with database.reading() as session:
        row = await session.scalar(select(SpaceRow))
    return None if row is None else EmbeddingSpace(row.model, row.dim)


def row_of(space: EmbeddingSpace) -> SpaceRow:
    """To be merged: there is one."""
    return SpaceRow(number=_ONLY, model=space.model, dim=space.dim)
