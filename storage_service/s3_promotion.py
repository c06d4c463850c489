"""Promotion of a staged upload to a permanent object in an object store, which has neither locks nor links."""

import asyncio
import hashlib
import uuid
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass

from storage_service.blobs import TEMPORARY, Declared, ObjectDamaged, ObjectVanished
from storage_service.errors import StagedFileMissing
from storage_service.object_store import NO_LABELS, Guarantees, ObjectChanged, ObjectExists, ObjectStore, StoredObject

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Promotion:
    """One upload and its key: the published bytes are the hashed ones, whoever writes to the upload meanwhile.

    A small upload is read whole, then written. A large one is copied within the store: the very version that was read,
    or whose digest the store itself reports, where the store was seen to refuse any other. An ETag is mostly an MD5,
    which two files may share on purpose, so the copy is compared by SHA-256 as well. A store with fewer guarantees
    copies to where only storage writes; there the copy is hashed, from there it is published.
    """

    objects: ObjectStore
    guarantees: Guarantees
    upload: str
    key: str
    declared: Declared
    labels: Mapping[str, str]

    async def whole(self) -> None:
        """For uploads that fit into memory. Raises StagedFileMissing, ContentMismatch, ObjectDamaged."""
        content = await self._content()
        try:
            await self._require_untaken(is_conditional=self.guarantees.puts_once)
            await self.objects.put(self.key, content, self.labels, if_absent=self.guarantees.puts_once)
        except ObjectExists:
            await self._require_same()

    async def within_the_store(self) -> None:
        """For any size. Raises StagedFileMissing, ContentMismatch, ObjectDamaged."""
        for _ in range(_ATTEMPTS):
            staged = await self._staged_object()
            try:
                if self._has_checked_version(staged):
                    await self._copy_this_version(staged)
                else:
                    await self._copy_via_temporary(staged)
            except ObjectChanged:
                continue
            except FileNotFoundError as error:
                raise StagedFileMissing from error
            else:
                return
        raise self.declared.mismatch(None, "it was being written to")

    def _has_checked_version(self, staged: StoredObject) -> bool:
        has_digest = staged.sha256 is not None or staged.composite is not None
        return self.guarantees.writes_once and self.guarantees.checks_sha256 and has_digest

    async def _copy_this_version(self, staged: StoredObject) -> None:
        sha256 = staged.sha256 or await self._digest(staged)
        if sha256 != self.declared.sha256:
            raise self.declared.mismatch(sha256, staged.size_bytes)
        try:
            await self.objects.copy(self.upload, self.key, self.labels, if_match=staged.etag, if_absent=True)
        except ObjectExists:
            await self._require_same()
        else:
            await self._require_copied(staged)

    async def _copy_via_temporary(self, staged: StoredObject) -> None:
        temporary = f"{TEMPORARY}/{uuid.uuid4().hex}"
        try:
            await self.objects.copy(self.upload, temporary, NO_LABELS, if_match=staged.etag, if_absent=False)
            copied = await self._require_object(temporary)
            sha256 = await self._digest(copied)
            if sha256 != self.declared.sha256:
                raise self.declared.mismatch(sha256, copied.size_bytes)
            is_conditional = self.guarantees.copies_once
            await self._require_untaken(is_conditional=is_conditional)
            await self._publish(temporary, copied.etag, is_conditional=is_conditional)
        except ObjectExists:
            await self._require_same()
        finally:
            await self.objects.delete(temporary)

    async def _publish(self, temporary: str, etag: str, *, is_conditional: bool) -> None:
        try:
            await self.objects.copy(temporary, self.key, self.labels, if_match=etag, if_absent=is_conditional)
        except (ObjectChanged, FileNotFoundError) as error:
            # Swept after a stall of a day; that says nothing about the upload.
            raise ObjectVanished(temporary) from error

    async def _require_untaken(self, *, is_conditional: bool) -> None:
        """Raise ObjectExists where the store would not; two concurrent writers then write the same bytes."""
        if not is_conditional and await self.objects.head(self.key) is not None:
            raise ObjectExists(self.key)

    async def _require_copied(self, staged: StoredObject) -> None:
        """Check the digest of the copy, as the store reports it or by reading the copy."""
        copied = await self._require_object(self.key)
        is_vouched_for = copied.sha256 == self.declared.sha256 or (
            copied.composite is not None and copied.composite == staged.composite
        )
        if is_vouched_for or await self._digest(copied) == self.declared.sha256:
            return
        # Nobody else can have used it: whoever finds the object compares it, as here.
        await self.objects.delete(self.key)
        raise self.declared.mismatch(None, copied.size_bytes)

    async def _require_same(self) -> None:
        """Check that the existing object is the same. Raises ObjectDamaged."""
        stored = await self._require_object(self.key)
        if stored.size_bytes == self.declared.size_bytes:
            # Only a copy of this version can exist before it was compared.
            may_be_wrong = stored.composite is not None or (stored.sha256 is None and self.guarantees.checks_sha256)
            sha256 = await self._digest(stored) if may_be_wrong else stored.sha256
            if sha256 in (None, self.declared.sha256):
                return
        raise ObjectDamaged(self.key)

    async def _staged_object(self) -> StoredObject:
        staged = await self.objects.head(self.upload)
        if staged is None:
            raise StagedFileMissing
        if staged.size_bytes != self.declared.size_bytes:
            raise self.declared.mismatch(None, staged.size_bytes)
        return staged

    async def _require_object(self, key: str) -> StoredObject:
        stored = await self.objects.head(key)
        if stored is None:
            raise ObjectVanished(key)
        return stored

    async def _content(self) -> bytes:
        content = bytearray()
        try:
            async with aclosing(self.objects.read(self.upload)) as pieces:
                async for piece in pieces:
                    content += piece
                    if len(content) > self.declared.size_bytes:
                        raise self.declared.mismatch(None, f"more than {self.declared.size_bytes}")
        except FileNotFoundError as error:
            raise StagedFileMissing from error
        sha256 = hashlib.sha256(content).hexdigest()
        if (sha256, len(content)) != (self.declared.sha256, self.declared.size_bytes):
            raise self.declared.mismatch(sha256, len(content))
        return bytes(content)

    async def _digest(self, stored: StoredObject) -> str:
        """SHA-256 of this version. Raises ObjectVanished; for the upload ObjectChanged, FileNotFoundError."""
        digest = hashlib.sha256()
        try:
            async for piece in self.objects.read(stored.key, if_match=stored.etag):
                await asyncio.to_thread(digest.update, piece)
        except (ObjectChanged, FileNotFoundError) as error:
            if stored.key == self.upload:
                raise
            raise ObjectVanished(stored.key) from error
        return digest.hexdigest()
