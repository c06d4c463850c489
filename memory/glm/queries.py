"""Queries of the global memory: SQL conditions of KEM queries and read rights, page cursors, reads of units."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Select, and_, exists, false, func, not_, or_, select, true

from bus_schema.glm import FoundKem, KemPage, MemoryStats
from bus_schema.identities import Principal
from bus_schema.kem import Kem
from bus_schema.kem_match import meets_filter, order_of
from bus_schema.kem_query import AllOf, AnyOf, Between, Condition, KemQuery, MetadataFilter, NoneOf, OneOf, Scalar
from memory.errors import NoSuchKem
from memory.glm.tables import FacetRow, KemRow, ReaderRow, as_kem
from mindbus.sql.database import Database
from retrieval.cursors import InvalidCursor, PageKey, decode_cursor, digest_of, encode_cursor
from retrieval.embedding.embedder import EmbeddingSpace

_ANY = select(KemRow.id).limit(1)


def readable_by(principal: Principal) -> ColumnElement[bool]:
    """Condition that every read carries, so that a denied unit looks exactly like an absent one."""
    if principal.is_trusted:
        return true()
    is_reader = exists().where(ReaderRow.kem_id == KemRow.id, ReaderRow.reader == principal.owner).correlate(KemRow)
    return or_(KemRow.visibility == "public", KemRow.owner == principal.owner, is_reader)


def matching(query: KemQuery) -> ColumnElement[bool]:
    """All conditions of a query, similarity apart."""
    return and_(_matching(query.metadata_filters), matching_apart_from_metadata(query))


def matching_apart_from_metadata(query: KemQuery) -> ColumnElement[bool]:
    """Ids and times only: for few rows, comparing their metadata is faster than looking up the facets."""
    conditions: list[ColumnElement[bool]] = [KemRow.id.in_(query.ids)] if query.ids else []
    bounds = (
        (KemRow.created_at, query.created_at_start, query.created_at_end),
        (KemRow.updated_at, query.updated_at_start, query.updated_at_end),
    )
    for time, start, end in bounds:
        if start is not None:
            conditions.append(time >= start)
        if end is not None:
            conditions.append(time <= end)
    if query.holds_at is not None:
        conditions.append(not_(_outdated(query.holds_at, query.known_at)))
    return and_(true(), *conditions)


def _outdated(time: datetime, known_at: datetime | None) -> ColumnElement[bool]:
    """Condition of units that do not hold at a time, by what they say of themselves, and said at the other time."""
    begins_later = and_(KemRow.valid_from.is_not(None), KemRow.valid_from > time)
    has_ended = and_(KemRow.valid_to.is_not(None), KemRow.valid_to <= time)
    if known_at is None:
        return or_(begins_later, has_ended)
    was_known = or_(KemRow.end_learnt_at.is_(None), KemRow.end_learnt_at <= known_at)
    return or_(KemRow.created_at > known_at, begins_later, and_(has_ended, was_known))


def answerable_by_index(query: KemQuery) -> KemQuery:
    """The query as the index can answer it, which does not know since when an end is known."""
    if query.known_at is None:
        return query
    learnt = min(query.known_at, query.created_at_end or query.known_at)
    return query.model_copy(update={"as_of": None, "known_at": None, "created_at_end": learnt})


def _matching(conditions: MetadataFilter) -> ColumnElement[bool]:
    match conditions:
        case AllOf(AND=parts):
            return and_(*map(_matching, parts))
        case AnyOf(OR=parts):
            return or_(*map(_matching, parts))
        case NoneOf(NOT=part):
            return not_(_matching(part))
        case _:
            # Lists of ids instead of EXISTS per row, so that the database may begin with the rarest value.
            kem_ids = (
                select(FacetRow.kem_id).where(FacetRow.key == key, _facet_meets(condition))
                for key, condition in conditions.items()
            )
            return and_(true(), *(KemRow.id.in_(ids) for ids in kem_ids))


def _facet_meets(condition: Condition) -> ColumnElement[bool]:
    match condition:
        case OneOf(any_of=values):
            return or_(false(), *map(_equal, values))
        case Between(gt=gt, gte=gte, lt=lt, lte=lte):
            bounds = {">": gt, ">=": gte, "<": lt, "<=": lte}
            return and_(*(FacetRow.number.bool_op(sign)(bound) for sign, bound in bounds.items() if bound is not None))
        case _:
            return _equal(condition)


def _equal(value: Scalar) -> ColumnElement[bool]:
    if isinstance(value, bool):
        return FacetRow.flag == value
    return FacetRow.text == value if isinstance(value, str) else FacetRow.number == value


# A reader who goes on for so long wants an order, not a ranking.
MAX_RANK = 10_000


def cursor_after(key: PageKey, query: KemQuery) -> str:
    """Cursor of the page after this unit; it tells nothing that the page did not."""
    return encode_cursor(key.id, key.time.isoformat(), scope=_scope(query))


def page_key_of(cursor: str | None, query: KemQuery) -> PageKey | None:
    """Key of the last item before the page. Raises InvalidCursor, also where it was given with another query."""
    if cursor is None:
        return None
    match decode_cursor(cursor, scope=_scope(query)):
        case [kem_id, time]:
            return PageKey.parse(time, kem_id)
    raise InvalidCursor(reason="not a cursor")


def cursor_at(rank: int, query: KemQuery) -> str:
    """Cursor of a ranked page: the number of results before it."""
    return encode_cursor(rank, scope=_scope(query))


def rank_of(cursor: str | None, query: KemQuery) -> int:
    """Number of results before the page. Raises InvalidCursor."""
    if cursor is None:
        return 0
    match decode_cursor(cursor, scope=_scope(query)):
        case [int(rank)] if 0 < rank <= MAX_RANK:
            return rank
    raise InvalidCursor(reason="not a cursor")


def _scope(query: KemQuery) -> str:
    return digest_of(query.model_dump_json())


class KemQueries:
    """Units by id, by condition and by page; similarity is the search's part."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def get(self, kem_id: str, principal: Principal) -> Kem:
        """One unit. Raises NoSuchKem."""
        async with self.database.reading() as session:
            row = await session.scalar(select(KemRow).where(KemRow.id == kem_id, readable_by(principal)))
            if row is None:
                existing = await session.scalar(select(KemRow.id).where(KemRow.id == kem_id))
                raise NoSuchKem(is_denied=existing is not None, kem_id=kem_id)
        return as_kem(row)

    async def is_empty(self) -> bool:
        """Whether there is no unit at all. Raises DatabaseAway."""
        return await self.database.read(lambda connection: connection.execute(_ANY).first()) is None

    async def page(self, query: KemQuery, principal: Principal, cursor: str | None, page_size: int) -> KemPage:
        """A page in the order of the query, by default the newest `updated_at` first. Raises InvalidCursor."""
        order = _Order(query)
        key = page_key_of(cursor, query)
        statement = order.sorted(select(KemRow).where(matching(query), readable_by(principal)))
        if key is not None:
            statement = statement.where(order.after(key))
        async with self.database.reading() as session:
            rows = (await session.scalars(statement.limit(page_size + 1))).all()
        page = rows[:page_size]
        is_last = len(rows) <= page_size
        next_cursor = None if is_last else cursor_after(order.key_of(page[-1]), query)
        return KemPage(items=tuple(FoundKem(kem=as_kem(row)) for row in page), next_cursor=next_cursor)

    async def among(self, kem_ids: Sequence[str], query: KemQuery, principal: Principal) -> dict[str, Kem]:
        """Those of these units that match the query and are readable: for candidates that an index proposes."""
        condition = and_(KemRow.id.in_(kem_ids), matching_apart_from_metadata(query), readable_by(principal))
        async with self.database.reading() as session:
            rows = (await session.scalars(select(KemRow).where(condition))).all()
        return {row.id: as_kem(row) for row in rows if meets_filter(row.facts, query.metadata_filters)}

    async def vectors(
        self, kem_ids: Collection[str], query: KemQuery, principal: Principal, space: EmbeddingSpace
    ) -> dict[str, bytes]:
        """Vectors in a space of those of these units that match the query and are readable."""
        of_space = and_(KemRow.id.in_(kem_ids), KemRow.model == space.model)
        condition = and_(of_space, matching_apart_from_metadata(query), readable_by(principal))
        async with self.database.reading() as session:
            rows = (await session.execute(select(KemRow.id, KemRow.vector, KemRow.facts).where(condition))).all()
        return {
            row.id: row.vector
            for row in rows
            if len(row.vector) == space.bytes_of_vector and meets_filter(row.facts, query.metadata_filters)
        }

    async def outdated(
        self, kem_ids: Collection[str], time: datetime, known_at: datetime | None = None
    ) -> dict[str, str | None]:
        """Those of these units that do not hold at the time, or are facts that were superseded; by which unit."""
        is_status = (FacetRow.key == "status", FacetRow.text == "superseded")
        is_superseded = exists().where(FacetRow.kem_id == KemRow.id, *is_status).correlate(KemRow)
        condition = or_(_outdated(time, known_at), is_superseded)
        async with self.database.reading() as session:
            rows = await session.execute(
                select(KemRow.id, KemRow.superseded_by).where(KemRow.id.in_(kem_ids), condition)
            )
            return {row.id: row.superseded_by for row in rows}

    async def count(self, query: KemQuery, principal: Principal) -> int:
        condition = and_(matching(query), readable_by(principal))
        async with self.database.reading() as session:
            return await session.scalar(select(func.count()).select_from(KemRow).where(condition)) or 0

    async def statistics(self, principal: Principal, space: EmbeddingSpace) -> MemoryStats:
        """Totals and counts by content type of the readable units. Raises DatabaseAway."""
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
                model=space.model,
                dim=space.dim,
            )


class _Order:
    """Order by a time, then by id, both in one direction, so that no two units share a position."""

    def __init__(self, query: KemQuery) -> None:
        name, self._is_descending = order_of(query)
        self._by_id = name == "id"
        self._time = KemRow.updated_at if name == "updated_at" else KemRow.created_at

    def sorted(self, statement: Select[KemRow]) -> Select[KemRow]:
        columns = [KemRow.id] if self._by_id else [self._time, KemRow.id]
        return statement.order_by(*(column.desc() if self._is_descending else column.asc() for column in columns))

    def after(self, key: PageKey) -> ColumnElement[bool]:
        time, kem_id = self._time, KemRow.id
        beyond = kem_id < key.id if self._is_descending else kem_id > key.id
        if self._by_id:
            return beyond
        is_after = time < key.time if self._is_descending else time > key.time
        return or_(is_after, and_(time == key.time, beyond))

    def key_of(self, row: KemRow) -> PageKey:
        return PageKey(row.updated_at if self._time is KemRow.updated_at else row.created_at, row.id)
