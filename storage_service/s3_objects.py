"""An object store that speaks S3."""

import asyncio
import base64
import binascii
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

import httpx

from mindbus.files.s3_bucket import Bucket, checksum_of
from mindbus.files.s3_errors import ConditionFailed
from mindbus.files.s3_store import S3Files
from storage_service.blobs import Declared
from storage_service.object_store import ObjectChanged, ObjectExists, StoredObject
from storage_service.presigner import open_presigner

PART_BYTES = 256 * 1024 * 1024
_AT_ONCE = 3


@dataclass(frozen=True, slots=True)
class PartCopy:
    """Every part is of the version that `source` names, or nothing is published; runs on the loop of s3fs."""

    bucket: Bucket
    path: str
    source: Mapping[str, Any]
    size_bytes: int
    part_bytes: int

    async def run(self, described: Mapping[str, Any], condition: Mapping[str, str]) -> None:
        """Raises ConditionFailed, other OSErrors."""
        upload_id = (await self._call("create_multipart_upload", **described))["UploadId"]
        try:
            parts = await self._copied(upload_id)
            done = {"Parts": parts}
            await self._call("complete_multipart_upload", UploadId=upload_id, MultipartUpload=done, **condition)
        except OSError:
            await self._call("abort_multipart_upload", UploadId=upload_id)
            raise

    async def _copied(self, upload_id: str) -> list[dict[str, Any]]:
        free = asyncio.Semaphore(_AT_ONCE)
        starts = range(0, self.size_bytes, self.part_bytes)
        try:
            async with asyncio.TaskGroup() as group:
                copying = [
                    group.create_task(self._copy(upload_id, number, start, free))
                    for number, start in enumerate(starts, 1)
                ]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        return [task.result() for task in copying]

    async def _copy(self, upload_id: str, number: int, start: int, free: asyncio.Semaphore) -> dict[str, Any]:
        last = min(start + self.part_bytes, self.size_bytes) - 1
        async with free:
            answer = await self._call(
                "upload_part_copy",
                UploadId=upload_id,
                PartNumber=number,
                CopySourceRange=f"bytes={start}-{last}",
                **self.source,
            )
        return {"PartNumber": number, "ETag": answer["CopyPartResult"]["ETag"]}

    async def _call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        return await self.bucket.call(operation, Key=self.path, **parameters)


PIECE_BYTES = 1024 * 1024
COPIED_WHOLE_BYTES = 5 * 1024**3
_CONTENT_TYPE = "application/octet-stream"
_SHA256_BYTES = 32
_UPLOADED = ("staging/", "objects/", "orphans/")


class S3Objects:
    """As ObjectStore, one request each; larger than `copied_whole_bytes` is copied in parts."""

    def __init__(
        self, bucket: Bucket, copied_whole_bytes: int = COPIED_WHOLE_BYTES, copied_part_bytes: int = PART_BYTES
    ) -> None:
        self.bucket = bucket
        self._copied_whole_bytes, self._copied_part_bytes = copied_whole_bytes, copied_part_bytes

    async def head(self, key: str) -> StoredObject | None:
        """As in ObjectStore."""
        found = await self.bucket.run(self.bucket.head(key))
        return None if found is None else _stored(key, found)

    async def read(self, key: str, *, if_match: str | None = None, start: int = 0) -> AsyncGenerator[bytes, None]:
        """As in ObjectStore."""
        conditions = {"IfMatch": if_match} if if_match else {}
        if start:
            conditions["Range"] = f"bytes={start}-"
        async with AsyncExitStack() as stack:
            opening = AsyncExitStack()
            stack.push_async_callback(lambda: self.bucket.run(opening.aclose()))
            try:
                body = self.bucket.body(key, **conditions)
                read = await self.bucket.run(opening.enter_async_context(body))
            except ConditionFailed as failed:
                raise ObjectChanged(key) from failed
            while piece := await self.bucket.run(read(PIECE_BYTES)):
                yield piece

    async def put(self, key: str, content: bytes, labels: Mapping[str, str], *, if_absent: bool) -> None:
        """As in ObjectStore."""
        options = {"ChecksumSHA256": checksum_of(content), **_described(labels), **_absent(if_absent)}
        try:
            await self._call("put_object", key, Body=content, **options)
        except ConditionFailed as failed:
            raise ObjectExists(key) from failed

    async def copy(
        self, source: str, target: str, labels: Mapping[str, str], *, if_match: str, if_absent: bool
    ) -> None:
        """As in ObjectStore."""
        found = await self.bucket.run(self.bucket.require_object(source))
        options = {**_described(labels), **_absent(if_absent)}
        copied = {
            "CopySource": {"Bucket": self.bucket.name, "Key": self.bucket.path(source)},
            "CopySourceIfMatch": if_match,
        }
        try:
            if found["ContentLength"] > self._copied_whole_bytes:
                size_bytes = int(found["ContentLength"])
                copy = PartCopy(self.bucket, self.bucket.path(target), copied, size_bytes, self._copied_part_bytes)
                await self.bucket.run(copy.run(_described(labels), _absent(if_absent)))
            else:
                await self._call("copy_object", target, MetadataDirective="REPLACE", **copied, **options)
        except ConditionFailed as failed:
            if if_absent and await self.head(target) is not None:
                raise ObjectExists(target) from failed
            raise ObjectChanged(source) from failed

    async def delete(self, key: str) -> None:
        """As in ObjectStore."""
        await self._call("delete_object", key)

    async def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        """As in ObjectStore."""
        page: dict[str, Any] = {}
        while True:
            token = {"ContinuationToken": page["NextContinuationToken"]} if page else {}
            request = self.bucket.call("list_objects_v2", Prefix=self.bucket.path(prefix), **token)
            page = await self.bucket.run(request)
            for found in page.get("Contents", ()):
                key = self.bucket.key(found["Key"])
                yield StoredObject(key, int(found["Size"]), str(found["ETag"]), found["LastModified"])
            if not page.get("IsTruncated"):
                return

    async def abort_uploads(self, before: datetime) -> int:
        """As in ObjectStore."""
        aborted = 0
        for folder in _UPLOADED:
            async for path, upload_id, begun in self._uploads(folder):
                if begun < before:
                    await self._abort(path, upload_id)
                    aborted += 1
        return aborted

    async def _uploads(self, folder: str) -> AsyncIterator[tuple[str, str, datetime]]:
        after: dict[str, str] = {}
        while True:
            request = self.bucket.call("list_multipart_uploads", Prefix=self.bucket.path(folder), **after)
            page = await self.bucket.run(request)
            for found in page.get("Uploads", ()):
                yield found["Key"], found["UploadId"], found["Initiated"]
            if not page.get("IsTruncated"):
                return
            after = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}

    async def _abort(self, path: str, upload_id: str) -> None:
        try:
            await self.bucket.run(self.bucket.call("abort_multipart_upload", Key=path, UploadId=upload_id))
        except FileNotFoundError:
            return  # Completed or aborted meanwhile.

    async def _call(self, operation: str, key: str, **parameters: Any) -> dict[str, Any]:
        return await self.bucket.run(self.bucket.call(operation, Key=self.bucket.path(key), **parameters))


def _absent(if_absent: bool) -> dict[str, str]:
    return {"IfNoneMatch": "*"} if if_absent else {}


def _described(labels: Mapping[str, str]) -> dict[str, Any]:
    # A header has no other letters.
    return {"Metadata": {name: quote(value, safe="@:") for name, value in labels.items()}, "ContentType": _CONTENT_TYPE}


def _stored(key: str, found: Mapping[str, Any]) -> StoredObject:
    labels = {name: unquote(value) for name, value in found.get("Metadata", {}).items()}
    checksum = str(found.get("ChecksumSHA256", ""))
    is_composite = "-" in checksum or found.get("ChecksumType") == "COMPOSITE"
    return StoredObject(
        key=key,
        size_bytes=int(found["ContentLength"]),
        etag=str(found["ETag"]),
        modified=found["LastModified"],
        labels=labels,
        sha256=None if is_composite else _hexadecimal(checksum),
        composite=checksum if is_composite else None,
    )


def _hexadecimal(checksum: str) -> str | None:
    try:
        digest = base64.b64decode(checksum, validate=True)
    except binascii.Error:
        return None
    return digest.hex() if len(digest) == _SHA256_BYTES else None


_WITHIN_S = 30


class S3ProbedObjects(S3Objects):
    """As ProbedStore."""

    def __init__(self, files: S3Files) -> None:
        super().__init__(files.bucket)
        # Signed for the moment itself, by which the store goes, and for the address at which it is reached from here.
        self._presigner = open_presigner(files, lambda: datetime.now(UTC))

    async def put_claiming(self, key: str, content: bytes, sha256: str) -> None:
        """As in ProbedStore."""
        checksum = base64.b64encode(bytes.fromhex(sha256)).decode()
        await self._call("put_object", key, Body=content, ChecksumSHA256=checksum)

    async def begin_parts(self, key: str, content: bytes) -> str:
        """As in ProbedStore."""
        upload_id: str = (await self._call("create_multipart_upload", key))["UploadId"]
        part = await self._call("upload_part", key, UploadId=upload_id, PartNumber=1, Body=content)
        return f"{upload_id} {part['ETag']}"

    async def complete_parts(self, key: str, begun: str) -> None:
        """As in ProbedStore."""
        upload_id, _, etag = begun.rpartition(" ")
        parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
        try:
            await self._call(
                "complete_multipart_upload", key, UploadId=upload_id, MultipartUpload=parts, IfNoneMatch="*"
            )
        except ConditionFailed as failed:
            await self._abort(self.bucket.path(key), upload_id)
            raise ObjectExists(key) from failed

    async def put_signed(self, key: str, content: bytes, signed_for: bytes) -> bool:
        """As in ProbedStore."""
        declared = Declared(hashlib.sha256(signed_for).hexdigest(), len(signed_for))
        if self._presigner is None:
            return False
        signed = await asyncio.to_thread(self._presigner.put, key, declared)
        headers = {name: value for name, value in signed.headers.items() if name != "content-length"}
        try:
            async with httpx.AsyncClient(timeout=_WITHIN_S) as client:
                answer = await client.put(signed.url, headers=headers, content=content)
        except httpx.HTTPError:
            return False
        return answer.is_success
