"""Rebuild of a lost database: from copies of manifests, then from labels of objects."""

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime

from bus_schema.artifacts import Manifest
from bus_schema.identities import owner_of
from bus_schema.storage_maintenance import Lost, Rebuild, RebuildPage
from mindbus.files.keys import OBJECTS
from mindbus.files.packs import PACKS
from retrieval.cursors import InvalidCursor
from storage_service.blobs import Blobs, ContentGeneration, StoredFile, content_of, pages_of
from storage_service.maintenance.audit import damage_of, orphan_of
from storage_service.maintenance.manifest_copies import (
    MANIFESTS,
    SHARDS,
    ManifestCopy,
    NotACopy,
    artifact_of,
    copy_key,
)
from storage_service.maintenance.registry import RebuildRegistry
from storage_service.rows import inputs_of

RECOVERED = "recovered"


async def recover_manifest(blobs: Blobs, file: StoredFile, content: ContentGeneration) -> ManifestCopy | None:
    """A minimal manifest, private to its producer, from an object's labels; None without labels. Raises OSError."""
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


_FOLDERS = (*(f"{folder}/{shard}" for folder in (MANIFESTS, OBJECTS) for shard in SHARDS), PACKS)


@dataclass
class _Page:
    dry_run: bool
    deep: bool
    looked_at: int = 0
    present: int = 0
    restored: int = 0
    recovered: int = 0
    lost: list[Lost] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rebuilder:
    """Restores missing manifests, page by page; existing ones stay unchanged.

    An artifact without bytes is reported as lost; its copy stays for a later attempt.
    """

    registry: RebuildRegistry
    blobs: Blobs
    clock: Callable[[], datetime]
    # SHA-256 of what a dry run would have restored so far: afterwards, the database would know it.
    foretold: set[bytes]

    async def rebuild(self, command: Rebuild) -> RebuildPage:
        """Raises InvalidCursor; OSError where the store fails."""
        cursor, limit = command.cursor, command.limit
        if cursor is not None and cursor not in _FOLDERS:
            raise InvalidCursor(cursor=cursor)
        at = _FOLDERS.index(cursor) if cursor else 0
        page = _Page(command.dry_run, command.deep)
        if cursor is None:
            self.foretold.clear()
        if cursor is None and await self._is_small(limit):
            for folder in (MANIFESTS, OBJECTS):
                await self._restore_folder(page, folder)
            at = len(_FOLDERS)
        while at < len(_FOLDERS) and page.looked_at < limit:
            await self._restore_folder(page, _FOLDERS[at])
            at += 1
        next_cursor = _FOLDERS[at] if at < len(_FOLDERS) else None
        return RebuildPage.model_validate(vars(page) | {"done": at, "total": len(_FOLDERS), "next_cursor": next_cursor})

    async def _is_small(self, limit: int) -> bool:
        """Whether one page takes everything: listing each of many empty folders would take longer than the work."""
        count = 0
        for folder in (MANIFESTS, OBJECTS):
            async with aclosing(pages_of(self.blobs.listing(folder))) as batches:
                async for batch in batches:
                    count += len(batch)
                    if count > limit:
                        return False
        return True

    async def _restore_folder(self, page: _Page, folder: str) -> None:
        async for files in pages_of(self.blobs.listing(folder)):
            page.looked_at += len(files)
            if folder.startswith(MANIFESTS):
                await self._from_copies(page, files)
            else:
                await self._from_labels(page, files)

    async def _from_copies(self, page: _Page, files: list[StoredFile]) -> None:
        named = {artifact_of(file.key): file.key for file in files}
        if odd := named.pop(None, None):
            page.lost.append(Lost(key=odd, reason="is the copy of no manifest"))
        unknown = await self.registry.unknown_artifacts({artifact_id for artifact_id in named if artifact_id})
        page.present += len(named) - len(unknown)
        for artifact_id in sorted(unknown):
            await self._restore(page, artifact_id)

    async def _restore(self, page: _Page, artifact_id: str) -> None:
        """Restore an artifact after its predecessor and inputs, as far as the store has their copies."""
        waiting, begun = [artifact_id], set[str]()
        while waiting:
            copied = await self._copy_of(page, waiting[-1])
            is_begun = copied is None or page.dry_run or waiting[-1] in begun
            needed = set[str]() if copied is None or is_begun else _inputs_of(copied.manifest)
            begun.add(waiting[-1])
            if earlier := await self.registry.unknown_artifacts(needed - begun) if needed else ():
                waiting.extend(sorted(earlier))
                continue
            waiting.pop()
            if copied is not None and await self._put_back(page, copied):
                page.restored += 1

    async def _copy_of(self, page: _Page, artifact_id: str) -> ManifestCopy | None:
        key = copy_key(artifact_id)
        try:
            return ManifestCopy.from_bytes(await self.blobs.read(key))
        except FileNotFoundError:
            return None
        except NotACopy as error:
            page.lost.append(Lost(key=key, reason=str(error)))
            return None

    async def _put_back(self, page: _Page, copied: ManifestCopy) -> bool:
        manifest, content = copied.manifest, copied.content
        if copied.expired_at is None and (reason := await self._damage(page, manifest, content)):
            page.lost.append(Lost(key=manifest.id, reason=reason))
            return False
        if page.dry_run:
            self.foretold.add(bytes.fromhex(content.sha256))
            return True
        outcome = await self.registry.restore(copied)
        if outcome not in ("restored", "present"):
            page.lost.append(Lost(key=manifest.id, reason=outcome))
        return outcome == "restored"

    async def _damage(self, page: _Page, manifest: Manifest, content: ContentGeneration) -> str | None:
        key, today = content.key, self.clock().date()
        if await self.blobs.size_bytes(key) is None:
            orphan = await orphan_of(self.blobs, key, today)
            if orphan is None:
                return f"there are no bytes at {key}"
            if page.dry_run:
                key = orphan
            else:
                await self.blobs.move(orphan, key)
        return await damage_of(self.blobs, key, content.sha256, manifest.size_bytes, rehash=page.deep)

    async def _from_labels(self, page: _Page, files: list[StoredFile]) -> None:
        """Only contents that the database does not know: of any other it knows the state."""
        contents = {file: content_of(file.key) for file in files}
        unknown = await self.registry.unknown_contents({content.sha256 for content in contents.values() if content})
        for file, content in contents.items():
            if content is None or content.sha256 not in unknown or bytes.fromhex(content.sha256) in self.foretold:
                continue
            found_again = await recover_manifest(self.blobs, file, content)
            if found_again is None:
                page.lost.append(Lost(key=file.key, reason="nothing says whose it is"))
            elif await self._put_back(page, found_again):
                page.recovered += 1


def _inputs_of(manifest: Manifest) -> set[str]:
    return inputs_of(manifest) | ({manifest.supersedes} if manifest.supersedes else set())
