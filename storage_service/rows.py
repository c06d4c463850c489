"""Conversion of manifests to and from rows."""

from datetime import datetime
from typing import Any

from sqlalchemy import Row

from bus_schema.artifacts import AIContext, Manifest, retention_of
from mindbus.files.keys import object_key
from storage_service.tables import ManifestRow


def as_row(manifest: Manifest, *, logical_id: str, generation: int, now: datetime) -> dict[str, Any]:
    """Columns of a manifest committed now, without its position."""
    kept = retention_of(manifest.retention)
    unchanged = manifest.model_dump(exclude={"checksum", "uri", "status", "context"})
    return unchanged | {
        "logical_id": logical_id,
        "sha256": manifest.sha256,
        "generation": generation,
        "context": manifest.context.model_dump(mode="json") if manifest.context else None,
        "retention_until": None if kept is None else now + kept,
        "committed_at": now,
    }


def as_manifest(row: ManifestRow | Row[Any]) -> Manifest:
    """The manifest of a row, with its permanent key."""
    return Manifest(
        id=row.id,
        version=row.version,
        supersedes=row.supersedes,
        trace_id=row.trace_id,
        step_id=row.step_id,
        created_by=row.created_by,
        created_at=row.created_at,
        artifact_type=row.artifact_type,
        content_type=row.content_type,
        uri=object_key(row.sha256, row.generation),
        size_bytes=row.size_bytes,
        checksum=f"sha256:{row.sha256}",
        status="completed",
        retention=row.retention,
        owner=row.owner,
        visibility=row.visibility,
        context=AIContext.model_validate(row.context) if row.context is not None else None,
    )
