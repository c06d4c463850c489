"""How much there is."""

from sqlalchemy import func, select

from bus_schema.glm import MemoryStats
from memory.embedding.space import EmbeddingSpace
from memory.glm.acl import readable_by
from memory.glm.tables import KemRow
from mindbus.principal import Principal
from mindbus.sql.database import Database


class Statistics:
    """Counts what the asker may read; of the rest there is no word."""

    def __init__(self, database: Database, space: EmbeddingSpace) -> None:
        self.database, self.space = database, space

    async def count(self, principal: Principal) -> MemoryStats:
        """Raises DatabaseAway."""
        readable = readable_by(principal)
        kinds = (
            select(KemRow.content_type, func.count().label("kems"), func.count(KemRow.model).label("with_vector"))
            .where(readable)
            .group_by(KemRow.content_type)
            .order_by(KemRow.content_type)
        )
        own = select(func.count()).select_from(KemRow).where(KemRow.owner == principal.owner)
        newest = select(func.max(KemRow.updated_at)).where(readable)
        async with self.database.reading() as session:
            rows = (await session.execute(kinds)).all()
            return MemoryStats(
                kems=sum(row.kems for row in rows),
                own=await session.scalar(own) or 0,
                with_vector=sum(row.with_vector for row in rows),
                by_content_type={row.content_type: row.kems for row in rows},
                newest=await session.scalar(newest),
                model=self.space.model,
                dim=self.space.dim,
            )
