"""What is known of an object that no manifest names."""

from bus_schema.artifacts import Manifest
from bus_schema.identities import owner_of
from storage_service.blobs import Blobs, Found
from storage_service.care.copies import ManifestCopy
from storage_service.care.keys import Content

RECOVERED = "recovered"


async def recovered(blobs: Blobs, file: Found, content: Content) -> ManifestCopy | None:
    """The least of a manifest, private to who made it; None where the store does not know. Raises OSError."""
    labels = await blobs.labels(file.key)
    if labels is None:
        return None
    manifest = Manifest(
        id=labels.artifact_id,
        trace_id=RECOVERED,
        created_by=labels.created_by,
        created_at=file.modified,
        artifact_type=RECOVERED,
        content_type="application/octet-stream",
        uri=file.key,
        size_bytes=file.size_bytes,
        checksum=f"sha256:{content.sha256}",
        status="completed",
        owner=owner_of(labels.created_by),
        visibility="private",
    )
    return ManifestCopy(
        manifest=manifest, logical_id=manifest.id, generation=content.generation, committed_at=file.modified
    )
