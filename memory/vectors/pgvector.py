"""Vectors in PostgreSQL, by its extension pgvector: a table for each model, beside the rows of the units."""

import hashlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Integer,
    MetaData,
    Table,
    Text,
    and_,
    any_,
    cast,
    delete,
    false,
    func,
    literal,
    not_,
    or_,
    select,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, JSONPATH, insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.types import UserDefinedType

from bus_schema.identities import Principal
from bus_schema.kem_query import AllOf, AnyOf, Between, Condition, KemQuery, MetadataFilter, NoneOf, OneOf, Scalar
from memory.vectors.index import (
    PREFIX,
    VALID_FROM,
    VALID_TO,
    IndexAway,
    IndexOfAnotherSpace,
    IndexRefused,
    NearKem,
    VectorPoint,
    epoch_seconds,
)
from mindbus.sql.database import Database
from mindbus.sql.errors import DatabaseAway
from retrieval.embedding.embedder import EmbeddingSpace

# The first that goes on looking where rights and filters have hidden what is nearest.
_OLDEST = (0, 8)
_MISSING = (
    "the database has no extension `vector` (pgvector 0.8 or later): an administrator runs CREATE EXTENSION vector"
)
# pgvector indexes no longer vectors; they are compared one by one.
_MOST_INDEXED_NUMBERS = 2000
_MOST_LISTED = 1000
_TIMES = ("created_at_ts", "updated_at_ts", VALID_FROM, VALID_TO)
_PLAIN = ("kem_version", "owner", "visibility", "readers", *_TIMES)


class _Vector(UserDefinedType[str]):
    """A vector as its text, `[1,2,3]`; the type lies in whatever schema the extension was made in."""

    cache_ok = True

    def __init__(self, schema: str, dim: int) -> None:
        self.schema, self.dim = schema, dim

    def get_col_spec(self, **_options: Any) -> str:
        return f'"{self.schema}".vector({self.dim})'

    def bind_expression(self, bindvalue: Any) -> ColumnElement[Any]:
        return cast(cast(bindvalue, Text), self)


class PgVectorIndex:
    """VectorIndex in a database, of which it is the only user; `close` disposes of it."""

    is_shared = True

    def __init__(self, database: Database, space: EmbeddingSpace) -> None:
        self.space = space
        self._database = database
        self._name = f"vectors_{hashlib.sha256(space.model.encode()).hexdigest()[:12]}"
        self._made: tuple[str, Table] | None = None

    async def exists(self) -> bool:
        async with self._session() as session:
            return await session.scalar(select(func.to_regclass(self._name))) is not None

    async def open(self) -> None:
        async with self._session() as session:
            schema = await self._schema(session)
            table = self._table(schema)
            await (await session.connection()).run_sync(table.metadata.create_all)
            await session.execute(
                text(f"CREATE INDEX IF NOT EXISTS {self._name}_facets ON {self._name} USING gin (facets)")
            )
            if self.space.dim <= _MOST_INDEXED_NUMBERS:
                nearness = f'USING hnsw (vector "{schema}".vector_cosine_ops)'
                await session.execute(text(f"CREATE INDEX IF NOT EXISTS {self._name}_near ON {self._name} {nearness}"))
            dim = await session.scalar(_DIM, {"name": self._name})
            if dim != self.space.dim:
                message = f"{IndexOfAnotherSpace.__doc__} {self._name}: {dim} numbers, not {self.space}."
                raise IndexOfAnotherSpace(message)
        self._made = schema, table

    async def write(self, points: Sequence[VectorPoint], deleted_ids: Sequence[str]) -> None:
        _, table = self._opened()
        async with self._session() as session:
            if points:
                statement = insert(table)
                new = {column.name: statement.excluded[column.name] for column in table.c if not column.primary_key}
                upsert = statement.on_conflict_do_update(index_elements=["kem_id"], set_=new)
                await session.execute(upsert, [_row_of(point) for point in points])
            if deleted_ids:
                await session.execute(delete(table).where(table.c.kem_id.in_(deleted_ids)))

    async def nearest(self, vector: bytes, query: KemQuery, principal: Principal, limit: int) -> list[NearKem]:
        schema, table = self._opened()
        wanted = literal(_text_of(vector), _Vector(schema, self.space.dim))
        distance = table.c.vector.op(f'OPERATOR("{schema}".<=>)', return_type=Float())(wanted)
        found = select(table.c.kem_id, distance.label("distance")).where(*_conditions(table, query, principal))
        async with self._session() as session:
            # Nearly in order, which finds more of what a filter leaves than an order kept strictly.
            await session.execute(text("SET LOCAL hnsw.iterative_scan = relaxed_order"))
            await session.execute(text(f"SET LOCAL hnsw.ef_search = {min(max(2 * limit, 40), _MOST_LISTED)}"))
            rows = (await session.execute(found.order_by(distance).limit(2 * limit))).all()
        nearest = sorted(
            (NearKem(row.kem_id, 1 - row.distance) for row in rows), key=lambda hit: (-hit.score, hit.kem_id)
        )
        return nearest[:limit]

    async def versions(self) -> dict[str, int]:
        _, table = self._opened()
        async with self._session() as session:
            rows = await session.execute(select(table.c.kem_id, table.c.kem_version))
            return {row.kem_id: row.kem_version for row in rows}

    async def clear(self) -> None:
        async with self._session() as session:
            await session.execute(text(f"DROP TABLE IF EXISTS {self._name}"))
        await self.open()

    async def close(self) -> None:
        await self._database.dispose()

    def _opened(self) -> tuple[str, Table]:
        if self._made is None:
            raise IndexAway(f"{self._name} is not open")
        return self._made

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[AsyncSession]:
        try:
            async with self._database.transaction() as session:
                yield session
        except DatabaseAway as error:
            raise IndexAway(f"PostgreSQL: {error}") from error
        except DBAPIError as error:
            raise IndexRefused(message=f"PostgreSQL refuses: {error.orig}") from error

    async def _schema(self, session: AsyncSession) -> str:
        """Schema of the extension. Raises IndexRefused where there is none, or one that is too old."""
        found = (await session.execute(_EXTENSION)).one_or_none()
        if found is None:
            raise IndexRefused(message=_MISSING)
        if tuple(map(int, found.version.split(".")[:2])) < _OLDEST:
            raise IndexRefused(
                message=f"pgvector {found.version} is too old; an administrator runs ALTER EXTENSION vector UPDATE"
            )
        return str(found.schema)

    def _table(self, schema: str) -> Table:
        return Table(
            self._name,
            MetaData(),
            Column("kem_id", Text, primary_key=True),
            Column("kem_version", Integer, nullable=False),
            Column("owner", Text, nullable=False),
            Column("visibility", Text, nullable=False),
            Column("readers", ARRAY(Text), nullable=False),
            *(Column(name, BigInteger) for name in _TIMES),
            Column("facets", JSONB, nullable=False),
            Column("vector", _Vector(schema, self.space.dim), nullable=False),
        )


_EXTENSION = text(
    "SELECT nspname AS schema, extversion AS version FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace "
    "WHERE extname = 'vector'"
)
# The number of numbers is the modifier of the type.
_DIM = text("SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass(:name) AND attname = 'vector'")


def _row_of(point: VectorPoint) -> dict[str, Any]:
    return {
        "kem_id": point.kem_id,
        **{name: point.payload.get(name) for name in _PLAIN},
        "facets": _facets_of(point.payload),
        "vector": _text_of(point.vector),
    }


def _facets_of(payload: Mapping[str, Any]) -> dict[str, list[Scalar]]:
    """All values by key as lists, so that one and several are looked for alike."""
    facets = ((key.removeprefix(PREFIX), value) for key, value in payload.items() if key.startswith(PREFIX))
    return {key: value if isinstance(value, list) else [value] for key, value in facets}


def _text_of(vector: bytes) -> str:
    return f"[{','.join(map(str, np.frombuffer(vector, dtype='<f4').tolist()))}]"


def _conditions(table: Table, query: KemQuery, principal: Principal) -> Iterable[ColumnElement[bool]]:
    yield _matching(table.c.facets, query.metadata_filters)
    if query.ids:
        yield table.c.kem_id.in_(query.ids)
    if not principal.is_trusted:
        mine = literal(principal.owner) == any_(table.c.readers)
        yield or_(table.c.visibility == "public", table.c.owner == principal.owner, mine)
    spans = (
        (table.c.created_at_ts, query.created_at_start, query.created_at_end),
        (table.c.updated_at_ts, query.updated_at_start, query.updated_at_end),
    )
    for column, start, end in spans:
        if start is not None:
            yield column >= epoch_seconds(start)
        if end is not None:
            yield column <= epoch_seconds(end)
    if query.as_of is not None:
        time = epoch_seconds(query.as_of)
        yield or_(table.c[VALID_FROM].is_(None), table.c[VALID_FROM] <= time)
        yield or_(table.c[VALID_TO].is_(None), table.c[VALID_TO] >= time)


def _matching(facets: ColumnElement[Any], metadata_filter: MetadataFilter) -> ColumnElement[bool]:
    match metadata_filter:
        case AllOf(AND=parts):
            return and_(true(), *(_matching(facets, part) for part in parts))
        case AnyOf(OR=parts):
            return or_(false(), *(_matching(facets, part) for part in parts))
        case NoneOf(NOT=part):
            return not_(_matching(facets, part))
        case _:
            return and_(true(), *(_having(facets, key, condition) for key, condition in metadata_filter.items()))


def _having(facets: ColumnElement[Any], key: str, condition: Condition) -> ColumnElement[bool]:
    match condition:
        case OneOf(any_of=values):
            return or_(*(_having(facets, key, value) for value in values))
        case Between():
            bounds = condition.model_dump(exclude_none=True)
            tests = " && ".join(f"@ {_SIGNS[name]} ${name}" for name in bounds)
            path = f'$[*] ? (@.type() == "number" && {tests})'
            is_met = func.jsonb_path_exists(facets.op("->")(key), cast(path, JSONPATH), cast(bounds, JSONB))
            return func.coalesce(is_met, False)
        case _:
            return facets.contains({key: [condition]})


_SIGNS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
