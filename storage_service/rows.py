"""Rows: manifests and contents, inserts that tolerate concurrent ones, numbers and id ranges in order of commit."""

from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Any, cast

from sqlalchemy import Connection, Row, Select, bindparam, case, func, insert, literal, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import DeclarativeBase

from bus_schema.artifacts import Manifest, retention_of
from mindbus.files.keys import object_key
from storage_service.tables import DELETING, GONE, PINNED, BlobRow, CreationRangeRow, InputRow, ManifestRow, SequenceRow

# Commits per range; a migration has the same number.
RANGE_COMMITS = 256


_INSERTS: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
_INSERTING_INPUTS = insert(InputRow)

# Fields of a manifest that are columns under the same names.
_SAME = tuple(name for name in Manifest.model_fields if name not in ("uri", "checksum", "status"))


def as_manifest(row: ManifestRow | Row[Any]) -> Manifest:
    """The manifest of a row, with its permanent key."""
    fields: dict[str, Any] = {name: getattr(row, name) for name in _SAME}
    uri, checksum = object_key(row.sha256, row.generation), f"sha256:{row.sha256}"
    return Manifest(**fields, uri=uri, checksum=checksum, status="completed")


def inputs_of(manifest: Manifest) -> set[str]:
    return set(manifest.context.input_artifacts) if manifest.context else set()


def insert_manifest(
    connection: Connection,
    manifest: Manifest,
    *,
    logical_id: str,
    generation: int,
    committed_at: datetime,
    expired_at: datetime | None = None,
) -> bool:
    """Insert the row of a manifest at the next position; False where its id or its predecessor is taken."""
    retention = retention_of(manifest.retention)
    row = manifest.model_dump(exclude={"checksum", "uri", "status", "context"}) | {
        "position": _next_position(connection, manifest.created_at),
        "logical_id": logical_id,
        "sha256": manifest.sha256,
        "generation": generation,
        "context": manifest.context.model_dump(mode="json") if manifest.context else None,
        "retention_until": None if retention is None else committed_at + retention,
        "committed_at": committed_at,
        "expired_at": expired_at,
    }
    return connection.execute(inserting(connection, ManifestRow), row).first() is not None


def insert_inputs(connection: Connection, artifact_id: str, inputs: Iterable[str]) -> None:
    if edges := [{"artifact_id": artifact_id, "input_id": input_id} for input_id in sorted(inputs)]:
        connection.execute(_INSERTING_INPUTS, edges)


def pin_content(connection: Connection, sha256: str, until: datetime) -> int:
    """Keep a content from collection until then; one without bytes gets its next generation, which is returned."""
    statement = _pinning(connection.dialect.name)
    return int(connection.execute(statement, {"sha256": sha256, "pinned_until": until}).scalar_one())


@cache
def _pinning(dialect: str) -> Any:
    has_no_bytes = BlobRow.state.in_((GONE, DELETING))
    statement = _INSERTS[dialect](BlobRow.__table__).values(generation=1, state=PINNED)
    return statement.on_conflict_do_update(
        index_elements=["sha256"],
        set_={
            "generation": case((has_no_bytes, BlobRow.generation + 1), else_=BlobRow.generation),
            "state": case((has_no_bytes, PINNED), else_=BlobRow.state),
            "pinned_until": statement.excluded.pinned_until,
        },
    ).returning(BlobRow.generation)


async def lock_blob(session: AsyncSession, sha256: str) -> BlobRow | None:
    """The row of a content, locked until the transaction ends; SQLite has no row locks, its writers are serial."""
    return await session.scalar(select(BlobRow).where(BlobRow.sha256 == sha256).with_for_update())


async def lock_or_create_blob(session: AsyncSession, sha256: str, generation: int) -> BlobRow:
    """As `lock_blob`; a content without a row gets one, without bytes, at this generation."""
    await insert_if_absent(session, BlobRow, sha256=sha256, generation=generation, state=GONE)
    return await session.get_one(BlobRow, sha256, with_for_update=True)


async def insert_if_absent(session: AsyncSession, table: type[DeclarativeBase], **values: Any) -> bool:
    """Insert a row; False where any key or unique column of it is taken."""
    # RETURNING works on both databases; not every driver counts inserted rows.
    statement = (
        upserting(session.get_bind().dialect.name, table).values(values).on_conflict_do_nothing().returning(literal(1))
    )
    return (await session.execute(statement)).first() is not None


@cache
def _inserting(dialect: str, table: type[DeclarativeBase]) -> Any:
    return _INSERTS[dialect](table.__table__).on_conflict_do_nothing().returning(literal(1))


def inserting(connection: Connection, table: type[DeclarativeBase]) -> Any:
    """An INSERT that returns a row, unless any key or unique column is taken."""
    return _inserting(connection.dialect.name, table)


def draw_numbers(connection: Connection, counter: str, count: int = 1) -> int:
    """The last of the next `count` numbers, in order of commit: the counter is locked until the transaction ends."""
    return int(connection.execute(_drawing(connection.dialect.name), {"name": counter, "value": count}).scalar_one())


@cache
def _drawing(dialect: str) -> Any:
    statement = _INSERTS[dialect](SequenceRow.__table__)
    advanced = SequenceRow.value + statement.excluded.value
    drawn = statement.on_conflict_do_update(index_elements=["name"], set_={"value": advanced})
    return drawn.returning(SequenceRow.value)


def upserting(dialect: str, table: type[DeclarativeBase]) -> Any:
    """An INSERT of this dialect that can have ON CONFLICT."""
    return _INSERTS[dialect](table.__table__)


async def next_position(session: AsyncSession, created_at: datetime) -> int:
    """The next position of a manifest; its time of creation widens the range of the position."""
    return await (await session.connection()).run_sync(_next_position, created_at)


def _next_position(connection: Connection, created_at: datetime) -> int:
    position = draw_numbers(connection, ManifestRow.__tablename__)
    span = {"stretch": position // RANGE_COMMITS, "earliest": created_at, "latest": created_at}
    connection.execute(_widening(connection.dialect.name), span)
    return position


@cache
def _widening(dialect: str) -> Any:
    insertion = _INSERTS[dialect](CreationRangeRow.__table__)
    widened = {
        "earliest": case(
            (insertion.excluded.earliest < CreationRangeRow.earliest, insertion.excluded.earliest),
            else_=CreationRangeRow.earliest,
        ),
        "latest": case(
            (insertion.excluded.latest > CreationRangeRow.latest, insertion.excluded.latest),
            else_=CreationRangeRow.latest,
        ),
    }
    return insertion.on_conflict_do_update(index_elements=["stretch"], set_=widened)


async def positions_of(
    session: AsyncSession, position: int, made_after: datetime | None, made_before: datetime | None
) -> tuple[int, int] | None:
    """The first position from `position` on and the last at which an artifact made in that time may be, or None."""
    query = _overlapping(made_after is not None, made_before is not None)
    values = {"stretch": position // RANGE_COMMITS, "made_after": made_after, "made_before": made_before}
    row = (await session.execute(query, values)).one()
    first, last = cast("tuple[int | None, int | None]", row)
    if first is None or last is None:
        return None
    return max(position, first * RANGE_COMMITS), (last + 1) * RANGE_COMMITS - 1


@cache
def _overlapping(has_begin: bool, has_end: bool) -> Select[int, int]:
    overlaps = [CreationRangeRow.stretch >= bindparam("stretch", type_=CreationRangeRow.stretch.type)]
    if has_begin:
        overlaps.append(CreationRangeRow.latest >= bindparam("made_after", type_=CreationRangeRow.latest.type))
    if has_end:
        overlaps.append(CreationRangeRow.earliest < bindparam("made_before", type_=CreationRangeRow.earliest.type))
    return select(func.min(CreationRangeRow.stretch), func.max(CreationRangeRow.stretch)).where(*overlaps)
