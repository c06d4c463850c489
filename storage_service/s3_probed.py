"""An object store that speaks S3, for who wants to know how well."""

import asyncio
import base64
import hashlib
from datetime import UTC, datetime

import httpx

from mindbus.files.s3_errors import ConditionFailed
from mindbus.files.s3_store import S3Files
from storage_service.blobs import Declared
from storage_service.objects import Exists
from storage_service.s3_objects import S3Objects
from storage_service.signing_account import open_presigner

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
            raise Exists(key) from failed

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
