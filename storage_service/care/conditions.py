"""What is due, what is unused, what is astray: as conditions on the tables."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, case, exists, false, literal, or_, select

from bus_schema.storage_maintenance import OrphanReason
from storage_service.models import GONE, LIVE, PINNED, BlobRow, ManifestRow, TraceRow

_RUNNING = (
    exists().where(TraceRow.trace_id == ManifestRow.trace_id, TraceRow.closed_at.is_(None)).correlate(ManifestRow)
)


def due_reason(now: datetime, retention: Mapping[str, timedelta]) -> ColumnElement[Any]:
    """Why an artifact is due."""
    return case((_own(now), literal("own")), (_type(now, retention), literal("type")), else_=literal("process"))


def is_due(now: datetime, retention: Mapping[str, timedelta]) -> ColumnElement[bool]:
    """The earliest of what its maker, the operator, its process allow; never while its process runs."""
    ended = select(TraceRow.trace_id).where(TraceRow.kept_until <= now)
    over = or_(_own(now), _type(now, retention), ManifestRow.trace_id.in_(ended))
    return and_(ManifestRow.expired_at.is_(None), over, ~_RUNNING)


def is_unused(before: datetime, now: datetime, retention: Mapping[str, timedelta]) -> ColumnElement[bool]:
    """The condition on a content; an artifact that is due does not hold its bytes."""
    holder = exists().where(
        ManifestRow.sha256 == BlobRow.sha256,
        ManifestRow.generation == BlobRow.generation,
        ManifestRow.expired_at.is_(None),
        ~is_due(now, retention),
    )
    return and_(BlobRow.state.in_((PINNED, LIVE)), BlobRow.pinned_until < before, ~holder.correlate(BlobRow))


def stray_reason(blob: BlobRow | None, generation: int, *, is_held: bool) -> OrphanReason | None:
    """Why an object that lies in the store belongs to nobody; None where it does, or may yet.

    A generation beyond that of a content in use comes from a later state of a database that was restored since: it
    waits for a rebuild, or for the content to go.
    """
    if is_held:
        return None
    if blob is None:
        return "unknown"
    if generation < blob.generation:
        return "outdated"
    if blob.state == GONE:
        return "unused" if generation == blob.generation else "unknown"
    return None


def _own(now: datetime) -> ColumnElement[bool]:
    # Never NULL: what is not due must be so in a negation, too.
    return and_(ManifestRow.retention_until.is_not(None), ManifestRow.retention_until <= now)


def _type(now: datetime, retention: Mapping[str, timedelta]) -> ColumnElement[bool]:
    by_type = [
        and_(ManifestRow.artifact_type == artifact_type, ManifestRow.committed_at <= now - kept)
        for artifact_type, kept in retention.items()
    ]
    return or_(false(), *by_type)
