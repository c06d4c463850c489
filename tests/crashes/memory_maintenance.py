"""The care registry in memory."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from bus_schema.messages import Event
from bus_schema.storage_maintenance import ArtifactExpired, ArtifactOrphaned, OrphanReason
from storage_service.blobs import ContentGeneration
from storage_service.maintenance.registry import (
    DueArtifact,
    Notification,
    Removal,
    StoredArtifact,
    UnusedContent,
)
from storage_service.tables import DELETING, GONE, LIVE, PINNED
from tests.crashes.memory_database import Blob, Connection, Tables, at_hand


class MemoryCareRegistry:
    """What SqlCareRegistry does, where only an artifact's own retention makes it due."""

    def __init__(self, connection: Connection, clock: Callable[[], datetime]) -> None:
        self.connection, self.clock = connection, clock

    async def artifact_count(self) -> int:
        """As in CareRegistry."""
        tables = await self.connection.read()
        return sum(row.expired_at is None for row in tables.manifests.values())

    async def stored_artifacts(self, after: int, limit: int) -> Sequence[StoredArtifact]:
        """As in CareRegistry."""
        rows = sorted((await self.connection.read()).manifests.values(), key=lambda row: row.position)
        kept = [row for row in rows if row.position > after and row.expired_at is None]
        return [
            StoredArtifact(
                row.manifest.id,
                row.position,
                ContentGeneration(row.manifest.sha256, row.generation),
                row.manifest.size_bytes,
            )
            for row in kept[:limit]
        ]

    async def due(self, after: int, limit: int) -> Sequence[DueArtifact]:
        """As in CareRegistry."""
        rows = sorted((await self.connection.read()).manifests.values(), key=lambda row: row.position)
        due = [row for row in rows if row.position > after and row.is_due(self.clock())]
        return [DueArtifact(row.manifest.id, row.position, row.manifest.size_bytes, "own") for row in due[:limit]]

    async def expire(self, due: DueArtifact) -> bool:
        """As in CareRegistry."""

        def expire(tables: Tables) -> bool:
            row = tables.manifests[due.artifact_id]
            if not row.is_due(self.clock()):
                return False
            tables.manifests[due.artifact_id] = replace(row, expired_at=self.clock())
            manifest = row.manifest
            _notice(
                tables,
                ArtifactExpired(
                    artifact=manifest.ref,
                    trace_id=manifest.trace_id,
                    step_id=manifest.step_id,
                    artifact_type=manifest.artifact_type,
                    owner=manifest.owner,
                    reason=due.reason,
                ),
                manifest.trace_id,
            )
            return True

        return await self.connection.write("expire", expire)

    async def unused_contents(self, before: datetime, after: str, limit: int) -> Sequence[UnusedContent]:
        """As in CareRegistry."""
        tables = await self.connection.read()
        unused = [
            UnusedContent(ContentGeneration(sha256, blob.generation), blob.size_bytes or 0)
            for sha256, blob in sorted(tables.blobs.items())
            if sha256 > after
            and _is_collectable(blob, before)
            and not any(not row.is_due(self.clock()) for row in tables.holders(sha256, blob.generation))
        ]
        return unused[:limit]

    async def retire(self, removal: Removal, before: datetime) -> bool:
        """As in CareRegistry."""
        content = removal.content

        def retire(tables: Tables) -> bool:
            blob = None if content is None else tables.blobs.get(content.sha256)
            if content is None or blob is None or blob.generation != content.generation:
                return False
            if not _is_collectable(blob, before) or tables.holders(content.sha256, content.generation):
                return False
            tables.blobs[content.sha256] = replace(blob, state=DELETING)
            _remove(tables, removal)
            return True

        return await self.connection.write("condemn", retire)

    async def strays(self, contents: Collection[ContentGeneration]) -> Mapping[ContentGeneration, OrphanReason]:
        """As in CareRegistry."""
        if not contents:
            return {}
        tables = await self.connection.read()
        reasons = {content: _stray_reason(tables, content) for content in contents}
        return {content: reason for content, reason in reasons.items() if reason is not None}

    async def remove_stray(self, removal: Removal) -> bool:
        """As in CareRegistry."""
        content = removal.content

        def remove_stray(tables: Tables) -> bool:
            if content is not None:
                if _stray_reason(tables, content) is None:
                    return False
                blob = tables.blobs.get(content.sha256, Blob())
                tables.blobs[content.sha256] = replace(blob, generation=max(blob.generation, content.generation))
            return _remove(tables, removal)

        return await self.connection.write("outlaw", remove_stray)

    async def unspent(self, uploads: Collection[str]) -> Collection[str]:
        """As in CareRegistry."""
        return set(uploads) - (await self.connection.read()).spent.keys()

    async def give_up(self, removal: Removal) -> bool:
        """As in CareRegistry."""

        def give_up(tables: Tables) -> bool:
            return removal.key not in tables.spent and _remove(tables, removal)

        return await self.connection.write("give up", give_up)

    async def removals(self, limit: int) -> Sequence[Removal]:
        """As in CareRegistry."""
        return list((await self.connection.read()).removals.values())[:limit]

    async def finish(self, removal: Removal, *, is_there: bool) -> None:
        """As in CareRegistry."""
        content = removal.content

        def finish(tables: Tables) -> None:
            if content is not None:
                blob = tables.blobs.get(content.sha256)
                if blob is not None and (blob.state, blob.generation) == (DELETING, content.generation):
                    tables.blobs[content.sha256] = replace(blob, state=GONE)
            if tables.removals.pop(removal.key, None) is not None and is_there:
                told = ArtifactOrphaned(
                    key=removal.key,
                    orphan_key=removal.target,
                    size_bytes=removal.size_bytes,
                    reason=removal.reason,
                )
                _notice(tables, told)

        await self.connection.write("finish", finish)

    async def unknown_artifacts(self, artifact_ids: Collection[str]) -> Collection[str]:
        """As in CareRegistry."""
        return set(artifact_ids) - (await self.connection.read()).manifests.keys()

    async def notices(self, limit: int) -> Sequence[Notification]:
        """As in CareRegistry."""
        return list((await self.connection.read()).notices.values())[:limit]

    async def delete_notifications(self, seqs: Collection[int]) -> None:
        """As in CareRegistry."""
        tables = await at_hand().tables()
        for seq in seqs:
            tables.notices.pop(seq, None)

    async def mark(self, name: str) -> tuple[str, datetime] | None:
        """As in CareRegistry."""
        return (await self.connection.read()).marks.get(name)

    async def set_progress(self, name: str, value: str) -> None:
        """As in CareRegistry."""
        noted = (value, self.clock())
        await self.connection.write("mark", lambda tables: tables.marks.update({name: noted}))


def _is_collectable(blob: Blob, before: datetime) -> bool:
    return blob.state in (PINNED, LIVE) and blob.pinned_until is not None and blob.pinned_until < before


def _stray_reason(tables: Tables, content: ContentGeneration) -> OrphanReason | None:
    blob = tables.blobs.get(content.sha256)
    if tables.holders(content.sha256, content.generation):
        return None
    if blob is None:
        return "unknown"
    if content.generation < blob.generation:
        return "outdated"
    if blob.state == GONE:
        return "unused" if content.generation == blob.generation else "unknown"
    return None


def _remove(tables: Tables, removal: Removal) -> bool:
    if removal.key in tables.removals:
        return False
    tables.removals[removal.key] = removal
    return True


def _notice(tables: Tables, event: Event, trace_id: str | None = None) -> None:
    tables.drawn += 1
    tables.notices[tables.drawn] = Notification(tables.drawn, event, trace_id)
