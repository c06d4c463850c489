"""Rows: manifests and contents, inserts that tolerate concurrent ones, numbers and id ranges in order of commit."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, cast

from sqlalchemy import Connection, Row, Select, and_, bindparam, case, func, insert, literal, or_, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import DeclarativeBase

from bus_schema.artifacts import Manifest, retention_of
from bus_schema.uploads import FoundManifest, PackPlace
from mindbus.files.keys import object_key
from mindbus.sql.statements import PreparedStatement
from storage_service.blobs import ContentGeneration
from storage_service.tables import DELETING, GONE, PINNED, BlobRow, CreationRangeRow, InputRow, ManifestRow, SequenceRow

# Commits per range; a migration has the same number.
RANGE_COMMITS = 256


_INSERTS: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
_INSERTING_INPUTS = PreparedStatement(insert(InputRow))

# Fields of a manifest that are columns under the same names.
_SAME = tuple(name for name in Manifest.model_fields if name not in ("uri", "checksum", "status"))


def as_manifest(row: ManifestRow | Row[Any]) -> Manifest:
    """The manifest of a row, with its permanent key."""
    fields: dict[str, Any] = {name: getattr(row, name) for name in _SAME}
    uri, checksum = object_key(row.sha256, row.generation), f"sha256:{row.sha256}"
    return Manifest(**fields, uri=uri, checksum=checksum, status="completed")


def as_found(row: Row[Any]) -> FoundManifest:
    """The manifest of a row of PLACED_MANIFESTS, with the place of its bytes."""
    return FoundManifest(**dict(as_manifest(row)), packed=packed_of(row))


def packed_of(row: BlobRow | Row[Any]) -> PackPlace | None:
    """The place of a content in a pack; None where its bytes are a file."""
    return None if row.pack is None else PackPlace(pack=row.pack, offset=row.pack_offset or 0)


def placed_content(row: BlobRow | Row[Any]) -> ContentGeneration:
    """The content of a row, with its place."""
    return ContentGeneration(row.sha256, row.generation, packed_of(row))


HAS_CONTENT = and_(BlobRow.sha256 == ManifestRow.sha256, BlobRow.generation == ManifestRow.generation)
# Manifests, each with the place of its bytes.
PLACED_MANIFESTS = select(ManifestRow.__table__, BlobRow.pack, BlobRow.pack_offset).outerjoin(BlobRow, HAS_CONTENT)


def inputs_of(manifest: Manifest) -> set[str]:
    return set(manifest.context.input_artifacts) if manifest.context else set()


@dataclass(frozen=True, slots=True)
class NewManifest:
    """A manifest with the other columns of its row."""

    manifest: Manifest
    logical_id: str
    generation: int
    committed_at: datetime
    expired_at: datetime | None = None


def insert_manifests(connection: Connection, new: Sequence[NewManifest]) -> set[str]:
    """Insert rows at the next positions, in this order; the ids of those whose id or predecessor was not taken."""
    if not new:
        return set()
    positions = _next_positions(connection, [each.manifest.created_at for each in new])
    rows = [_row_of(each) | {"position": position} for each, position in zip(new, positions, strict=True)]
    return {row.id for row in _INSERTING_MANIFESTS.all_of(connection, rows)}


def _row_of(new: NewManifest) -> dict[str, Any]:
    manifest, retention = new.manifest, retention_of(new.manifest.retention)
    return manifest.model_dump(exclude={"checksum", "uri", "status", "context"}) | {
        "logical_id": new.logical_id,
        "sha256": manifest.sha256,
        "generation": new.generation,
        "context": manifest.context.model_dump(mode="json") if manifest.context else None,
        "retention_until": None if retention is None else new.committed_at + retention,
        "committed_at": new.committed_at,
        "expired_at": new.expired_at,
    }


_INSERTING_MANIFESTS = PreparedStatement(
    lambda dialect: upserting(dialect, ManifestRow).on_conflict_do_nothing().returning(ManifestRow.id)
)


def insert_inputs(connection: Connection, inputs: Mapping[str, Iterable[str]]) -> None:
    """Insert the edges of the provenance graph, by artifact."""
    edges = [{"artifact_id": each, "input_id": used} for each, all_used in inputs.items() for used in sorted(all_used)]
    _INSERTING_INPUTS.run(connection, edges)


def pin_contents(connection: Connection, sha256s: Collection[str], until: datetime) -> dict[str, ContentGeneration]:
    """Keep contents from collection until then; one without bytes gets its next generation."""
    # In one order everywhere: two that wait for each other would both fail.
    rows = [{"sha256": sha256, "pinned_until": until} for sha256 in sorted(sha256s)]
    return {row.sha256: placed_content(row) for row in _PINNING.all_of(connection, rows)}


def _pinning(dialect: str) -> Any:
    # IN would be rendered anew for each number of rows.
    has_no_bytes = or_(BlobRow.state == GONE, BlobRow.state == DELETING)
    statement = _INSERTS[dialect](BlobRow.__table__).values(generation=1, state=PINNED)
    return statement.on_conflict_do_update(
        index_elements=["sha256"],
        set_={
            "generation": case((has_no_bytes, BlobRow.generation + 1), else_=BlobRow.generation),
            "state": case((has_no_bytes, PINNED), else_=BlobRow.state),
            "pinned_until": statement.excluded.pinned_until,
            "pack": case((has_no_bytes, None), else_=BlobRow.pack),
            "pack_offset": case((has_no_bytes, None), else_=BlobRow.pack_offset),
        },
    ).returning(BlobRow.sha256, BlobRow.generation, BlobRow.pack, BlobRow.pack_offset)


_PINNING = PreparedStatement(_pinning)


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
def inserting(table: type[DeclarativeBase]) -> PreparedStatement:
    """An INSERT that returns a row, unless any key or unique column is taken."""
    return PreparedStatement(
        lambda dialect: upserting(dialect, table).on_conflict_do_nothing().returning(literal(1).label("is_new"))
    )


def draw_numbers(connection: Connection, counter: str, count: int = 1) -> int:
    """The last of the next `count` numbers, in order of commit: the counter is locked until the transaction ends."""
    return int(_DRAWING.first(connection, {"name": counter, "value": count}).value)


def _drawing(dialect: str) -> Any:
    statement = _INSERTS[dialect](SequenceRow.__table__)
    advanced = SequenceRow.value + statement.excluded.value
    drawn = statement.on_conflict_do_update(index_elements=["name"], set_={"value": advanced})
    return drawn.returning(SequenceRow.value)


_DRAWING = PreparedStatement(_drawing)


def upserting(dialect: str, table: type[DeclarativeBase]) -> Any:
    """An INSERT of this dialect that can have ON CONFLICT."""
    return _INSERTS[dialect](table.__table__)


async def next_position(session: AsyncSession, created_at: datetime) -> int:
    """The next position of a manifest; its time of creation widens the range of the position."""
    return (await (await session.connection()).run_sync(_next_positions, [created_at]))[0]


def _next_positions(connection: Connection, created_at: Sequence[datetime]) -> list[int]:
    last = draw_numbers(connection, ManifestRow.__tablename__, len(created_at))
    positions = list(range(last - len(created_at) + 1, last + 1))
    ranges: defaultdict[int, list[datetime]] = defaultdict(list)
    for position, at in zip(positions, created_at, strict=True):
        ranges[position // RANGE_COMMITS].append(at)
    for stretch, times in ranges.items():
        span = {"stretch": stretch, "earliest": min(times), "latest": max(times)}
        _WIDENING.run(connection, [span])
    return positions


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


_WIDENING = PreparedStatement(_widening)


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
