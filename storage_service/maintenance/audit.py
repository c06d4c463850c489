"""Audit: every artifact has its bytes; missing bytes are restored from the orphans."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from bus_schema.storage_maintenance import AuditPage, Trouble
from mindbus.logs import logger
from retrieval.cursors import position_of
from storage_service.blobs import Blobs, ContentGeneration
from storage_service.maintenance.manifest_copies import (
    SpentUploads,
    copy_key,
    orphan_key,
    write_copy,
)
from storage_service.maintenance.registry import MaintenanceRegistry, StoredArtifact
from storage_service.maintenance.survey import ORPHANS_KEPT

# A page ends early rather than keep the requester waiting.
_MAX_HASHED_BYTES = 2 * 1024**3


@dataclass
class _Page:
    """Findings of a page; bytes that several artifacts share are read once."""

    rehash: bool
    checked: int = 0
    hashed_bytes: int = 0
    missing: list[Trouble] = field(default_factory=list)
    damaged: list[Trouble] = field(default_factory=list)
    restored: list[Trouble] = field(default_factory=list)
    copies_written: int = 0
    seen: dict[ContentGeneration, tuple[list[Trouble], str] | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Auditor:
    """Checks and restores the bytes of artifacts; a manifest without bytes is reported, never removed."""

    registry: MaintenanceRegistry
    manifests: SpentUploads
    blobs: Blobs
    clock: Callable[[], datetime]

    async def audit(self, cursor: str | None, limit: int, *, rehash: bool) -> AuditPage:
        """Raises InvalidCursor; OSError where the store fails."""
        artifacts = await self.registry.stored_artifacts(position_of(cursor), limit)
        page = _Page(rehash)
        for artifact in artifacts:
            await self._check(page, artifact)
            page.checked += 1
            if page.hashed_bytes >= _MAX_HASHED_BYTES:
                break
        is_last = page.checked == len(artifacts) < limit
        total = await self.registry.artifact_count()
        next_cursor = None if is_last else str(artifacts[page.checked - 1].position)
        return AuditPage.model_validate(vars(page) | {"total": total, "next_cursor": next_cursor})

    async def _check(self, page: _Page, artifact: StoredArtifact) -> None:
        content = artifact.content
        if content not in page.seen:
            page.seen[content] = await self._examine(page, artifact)
        if finding := page.seen[content]:
            findings, problem = finding
            findings.append(Trouble(artifact_id=artifact.artifact_id, key=content.key, problem=problem))
            logger().error("artifact damaged", artifact_id=artifact.artifact_id, key=content.key, problem=problem)
        if await self.blobs.size_bytes(copy_key(artifact.artifact_id)) is None:
            await write_copy(self.manifests, self.blobs, artifact.artifact_id)
            page.copies_written += 1

    async def _examine(self, page: _Page, artifact: StoredArtifact) -> tuple[list[Trouble], str] | None:
        content, key = artifact.content, artifact.content.key
        is_missing = await self.blobs.size_bytes(key) is None
        if is_missing and not await restore_orphan(self.blobs, key, self.clock().date()):
            return page.missing, "has no bytes; restore them from a backup of the store"
        rehash = page.rehash or is_missing
        page.hashed_bytes += artifact.size_bytes if rehash else 0
        problem = await damage_of(self.blobs, key, content.sha256, artifact.size_bytes, rehash=rehash)
        if problem is not None:
            return page.damaged, f"{problem}; restore the bytes from a backup of the store"
        return (page.restored, "was found among the orphans") if is_missing else None


async def restore_orphan(blobs: Blobs, key: str, today: date) -> bool:
    """Move a file back from the orphans; whether it was there. Raises OSError."""
    orphan = await orphan_of(blobs, key, today)
    return orphan is not None and await blobs.move(orphan, key)


async def orphan_of(blobs: Blobs, key: str, today: date) -> str | None:
    """Key of a file among the orphans, or None. Raises OSError."""
    # One day more than orphans are kept: the day in a key may have been nearly over.
    for age in range(ORPHANS_KEPT.days + 2):
        orphan = orphan_key(key, today - timedelta(days=age))
        if await blobs.size_bytes(orphan) is not None:
            return orphan
    return None


async def damage_of(blobs: Blobs, key: str, sha256: str, size_bytes: int, *, rehash: bool) -> str | None:
    """Description of the damage of a file, or None. Raises FileNotFoundError, OSError."""
    actual_bytes = await blobs.size_bytes(key)
    if actual_bytes is None:
        raise FileNotFoundError(key)
    if actual_bytes != size_bytes:
        return f"has {actual_bytes} bytes, not {size_bytes}"
    if rehash and (digest := (await blobs.digest(key)).sha256) != sha256:
        return f"has the sha256 {digest}"
    return None
