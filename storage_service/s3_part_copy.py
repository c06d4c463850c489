"""A copy within an object store of more than it copies in one request."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mindbus.files.s3_bucket import Bucket

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
