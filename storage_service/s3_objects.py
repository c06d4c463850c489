"""ObjectStore over S3."""

import asyncio
import base64
import binascii
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

import httpx

from mindbus.files.s3_bucket import Bucket, MultipartUpload, checksum_of
from mindbus.files.s3_errors import ConditionFailed
from mindbus.files.s3_store import S3Files
from mindbus.tasks import gather_limited
from storage_service.blobs import Declared
from storage_service.object_store import ObjectChanged, ObjectExists, StoredObject
from storage_service.uploads import open_presigner

PIECE_BYTES = 1024 * 1024
# The most that one request copies, by the S3 documentation.
COPIED_WHOLE_BYTES = 5 * 1024**3
PART_BYTES = 256 * 1024 * 1024
_PARTS_AT_ONCE = 3
_PROBE_TIMEOUT_S = 30
_SHA256_BYTES = 32
_UPLOAD_FOLDERS = ("staging/", "objects/", "orphans/")


class S3Objects:
    """One request per method; an object larger than `copied_whole_bytes` is copied in parts."""

    def __init__(
        self, bucket: Bucket, copied_whole_bytes: int = COPIED_WHOLE_BYTES, copied_part_bytes: int = PART_BYTES
    ) -> None:
        self.bucket = bucket
        self._copied_whole_bytes, self._copied_part_bytes = copied_whole_bytes, copied_part_bytes

    async def head(self, key: str) -> StoredObject | None:
        head = await self.bucket.run(self.bucket.head(key))
        return None if head is None else _stored_object(key, head)

    async def read(self, key: str, *, if_match: str | None = None, start: int = 0) -> AsyncGenerator[bytes, None]:
        conditions = {"IfMatch": if_match} if if_match else {}
        if start:
            conditions["Range"] = f"bytes={start}-"
        async with AsyncExitStack() as stack:
            opening = AsyncExitStack()
            stack.push_async_callback(lambda: self.bucket.run(opening.aclose()))
            try:
                body = self.bucket.body(key, **conditions)
                read = await self.bucket.run(opening.enter_async_context(body))
            except ConditionFailed as error:
                raise ObjectChanged(key) from error
            while piece := await self.bucket.run(read(PIECE_BYTES)):
                yield piece

    async def put(self, key: str, content: bytes, labels: Mapping[str, str], *, if_absent: bool) -> None:
        options = {"ChecksumSHA256": checksum_of(content), **_description(labels), **_if_absent(if_absent)}
        try:
            await self._call("put_object", key, Body=content, **options)
        except ConditionFailed as error:
            raise ObjectExists(key) from error

    async def copy(
        self, source: str, target: str, labels: Mapping[str, str], *, if_match: str, if_absent: bool
    ) -> None:
        size_bytes = int((await self.bucket.run(self.bucket.require_object(source)))["ContentLength"])
        copied = {
            "CopySource": {"Bucket": self.bucket.name, "Key": self.bucket.path(source)},
            "CopySourceIfMatch": if_match,
        }
        description, condition = _description(labels), _if_absent(if_absent)
        try:
            if size_bytes > self._copied_whole_bytes:
                await self.bucket.run(self._copy_parts(target, copied, size_bytes, description, condition))
            else:
                options = {**copied, **description, **condition}
                await self._call("copy_object", target, MetadataDirective="REPLACE", **options)
        except ConditionFailed as error:
            if if_absent and await self.head(target) is not None:
                raise ObjectExists(target) from error
            raise ObjectChanged(source) from error

    async def delete(self, key: str) -> None:
        await self._call("delete_object", key)

    async def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        path = self.bucket.path(prefix)
        async for page in self.bucket.pages("list_objects_v2", Prefix=path):
            for entry in page.get("Contents", ()):
                key = self.bucket.key(entry["Key"])
                yield StoredObject(key, int(entry["Size"]), str(entry["ETag"]), entry["LastModified"])

    async def abort_uploads(self, before: datetime) -> int:
        aborted = 0
        for folder in _UPLOAD_FOLDERS:
            path = self.bucket.path(folder)
            async for page in self.bucket.pages("list_multipart_uploads", Prefix=path):
                for entry in page.get("Uploads", ()):
                    if entry["Initiated"] < before:
                        upload = MultipartUpload(self.bucket, entry["Key"], entry["UploadId"])
                        await self.bucket.run(upload.abort())
                        aborted += 1
        return aborted

    async def _copy_parts(
        self,
        target: str,
        copied: Mapping[str, Any],
        size_bytes: int,
        description: Mapping[str, Any],
        condition: Mapping[str, str],
    ) -> None:
        """Every part is of the version that `copied` names, or nothing is published; on the loop of s3fs."""
        upload = await MultipartUpload.create(self.bucket, self.bucket.path(target), **description)

        async def copy(number: int, start: int) -> dict[str, Any]:
            last = min(start + self._copied_part_bytes, size_bytes) - 1
            reply = await upload.call(
                "upload_part_copy", PartNumber=number, CopySourceRange=f"bytes={start}-{last}", **copied
            )
            return {"PartNumber": number, "ETag": reply["CopyPartResult"]["ETag"]}

        starts = enumerate(range(0, size_bytes, self._copied_part_bytes), 1)
        try:
            parts = await gather_limited([partial(copy, *start) for start in starts], _PARTS_AT_ONCE)
            await upload.complete(parts, **condition)
        except OSError:
            await upload.abort()
            raise

    async def _call(self, operation: str, key: str, **parameters: Any) -> dict[str, Any]:
        return await self.bucket.run(self.bucket.call(operation, Key=self.bucket.path(key), **parameters))


class S3ProbedObjects(S3Objects):
    """ProbedStore over S3."""

    def __init__(self, files: S3Files) -> None:
        super().__init__(files.bucket)
        # Signed for now by this machine's clock, and for the address at which the store is reached from here.
        self._presigner = open_presigner(files, lambda: datetime.now(UTC))

    async def put_claiming(self, key: str, content: bytes, sha256: str) -> None:
        checksum = base64.b64encode(bytes.fromhex(sha256)).decode()
        await self._call("put_object", key, Body=content, ChecksumSHA256=checksum)

    async def begin_parts(self, key: str, content: bytes) -> str:
        async def begin() -> str:
            upload = await MultipartUpload.create(self.bucket, self.bucket.path(key))
            part = await upload.call("upload_part", PartNumber=1, Body=content)
            return f"{upload.upload_id} {part['ETag']}"

        return await self.bucket.run(begin())

    async def complete_parts(self, key: str, begun: str) -> None:
        upload_id, _, etag = begun.rpartition(" ")
        upload = MultipartUpload(self.bucket, self.bucket.path(key), upload_id)
        try:
            await self.bucket.run(upload.complete([{"PartNumber": 1, "ETag": etag}], IfNoneMatch="*"))
        except ConditionFailed as error:
            await self.bucket.run(upload.abort())
            raise ObjectExists(key) from error

    async def put_signed(self, key: str, content: bytes, signed_for: bytes) -> bool:
        if self._presigner is None:
            return False
        declared = Declared(hashlib.sha256(signed_for).hexdigest(), len(signed_for))
        signed = await asyncio.to_thread(self._presigner.put, key, declared)
        headers = {name: value for name, value in signed.headers.items() if name != "content-length"}
        try:
            async with httpx.AsyncClient(timeout=_PROBE_TIMEOUT_S) as client:
                response = await client.put(signed.url, headers=headers, content=content)
        except httpx.HTTPError:
            return False
        return response.is_success


def _if_absent(if_absent: bool) -> dict[str, str]:
    return {"IfNoneMatch": "*"} if if_absent else {}


def _description(labels: Mapping[str, str]) -> dict[str, Any]:
    # Headers are ASCII.
    metadata = {name: quote(value, safe="@:") for name, value in labels.items()}
    return {"Metadata": metadata, "ContentType": "application/octet-stream"}


def _stored_object(key: str, head: Mapping[str, Any]) -> StoredObject:
    checksum = str(head.get("ChecksumSHA256", ""))
    is_composite = "-" in checksum or head.get("ChecksumType") == "COMPOSITE"
    return StoredObject(
        key=key,
        size_bytes=int(head["ContentLength"]),
        etag=str(head["ETag"]),
        modified=head["LastModified"],
        labels={name: unquote(value) for name, value in head.get("Metadata", {}).items()},
        sha256=None if is_composite else _hexadecimal(checksum),
        composite=checksum if is_composite else None,
    )


def _hexadecimal(checksum: str) -> str | None:
    try:
        digest = base64.b64decode(checksum, validate=True)
    except binascii.Error:
        return None
    return digest.hex() if len(digest) == _SHA256_BYTES else None
