"""Units that are asked for, as far as the asker may read them."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Select, and_, func, or_, select

from bus_schema.glm import FoundKem, KemPage, MemoryStats
from bus_schema.kem import Kem
from bus_schema.kem_matching import meets_filter
from bus_schema.kem_query import KemQuery
from memory.embedding.space import EmbeddingSpace
from memory.errors import NoSuchKem
from memory.glm.acl import readable_by
from memory.glm.conditions import meeting, meeting_but_for_metadata
from memory.glm.cursors import cursor_after, page_key_of
from memory.glm.rows import as_kem
from memory.glm.tables import KemRow
from mindbus.principal import Principal
from mindbus.sql.database import Database
from retrieval.cursors import PageKey

_NEWEST = "updated_at desc"


class KemQueries:
    """Reads of units, each under the one condition of the ACL; nearness is the index's business."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def get(self, kem_id: str, principal: Principal) -> Kem:
        """Raises NoSuchKem."""
        async with self.database.reading() as session:
            row = await session.scalar(select(KemRow).where(KemRow.id == kem_id, readable_by(principal)))
            if row is None:
                found = await session.scalar(select(KemRow.id).where(KemRow.id == kem_id))
                raise NoSuchKem(is_denied=found is not None, kem_id=kem_id)
        return as_kem(row)

    async def page(self, query: KemQuery, principal: Principal, cursor: str | None, page_size: int) -> KemPage:
        """In the order asked for; the newest `updated_at` first otherwise. Raises InvalidCursor."""
        order = _Order(query.order_by or _NEWEST)
        place = page_key_of(cursor, query)
        rows = order.sorted(select(KemRow).where(meeting(query), readable_by(principal)))
        if place is not None:
            rows = rows.where(order.after(place))
        async with self.database.reading() as session:
            found = (await session.scalars(rows.limit(page_size + 1))).all()
        page = found[:page_size]
        is_last = len(found) <= page_size
        next_cursor = None if is_last else cursor_after(order.place(page[-1]), query)
        return KemPage(items=tuple(FoundKem(kem=as_kem(row)) for row in page), next_cursor=next_cursor)

    async def among(self, kem_ids: Sequence[str], query: KemQuery, principal: Principal) -> dict[str, Kem]:
        """Those of these units that the question means, that the asker may read: an index only proposes."""
        condition = and_(KemRow.id.in_(kem_ids), meeting_but_for_metadata(query), readable_by(principal))
        async with self.database.reading() as session:
            rows = (await session.scalars(select(KemRow).where(condition))).all()
        return {row.id: as_kem(row) for row in rows if meets_filter(row.facts, query.metadata_filters)}

    async def count(self, query: KemQuery, principal: Principal) -> int:
        """How many there are of them, for this asker."""
        condition = and_(meeting(query), readable_by(principal))
        async with self.database.reading() as session:
            return await session.scalar(select(func.count()).select_from(KemRow).where(condition)) or 0


class _Order:
    """By a time, then by id, both in one direction: no two units have the same place."""

    def __init__(self, order_by: str) -> None:
        name, direction = order_by.split()
        self._by_id, self._is_descending = name == "id", direction == "desc"
        self._time = KemRow.updated_at if name == "updated_at" else KemRow.created_at

    def sorted(self, query: Select[KemRow]) -> Select[KemRow]:
        columns = [KemRow.id] if self._by_id else [self._time, KemRow.id]
        return query.order_by(*(column.desc() if self._is_descending else column.asc() for column in columns))

    def after(self, place: PageKey) -> ColumnElement[bool]:
        time, kem_id = self._time, KemRow.id
        beyond = kem_id < place.id if self._is_descending else kem_id > place.id
        if self._by_id:
            return beyond
        later = time < place.time if self._is_descending else time > place.time
        return or_(later, and_(time == place.time, beyond))

    def place(self, row: KemRow) -> PageKey:
        return PageKey(row.updated_at if self._time is KemRow.updated_at else row.created_at, row.id)


class KemStatistics:
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
