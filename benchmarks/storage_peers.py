"""What MindBus is measured beside: tools that make no promises about their copies."""

import asyncio
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import s3fs

from benchmarks.storage_children import READY
from benchmarks.storage_tasks import Large, Took


class CopyAndSum:
    """`cp` to and from a folder, then `sha256sum`; neither waits for the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    async def carry(self, order: Large) -> Took:
        there = self._folder / order.name
        source, target = (order.path, there) if order.do == "put" else (there, order.path)
        began = time.perf_counter()
        await _output_of("cp", str(source), str(target))
        sha256 = (await _output_of("sha256sum", str(target))).split()[0]
        return Took(seconds=time.perf_counter() - began, sha256=sha256)


class CopyAndHash(CopyAndSum):
    """The same with Python's sha256, which uses the processor's own instructions where `sha256sum` may not."""

    async def carry(self, order: Large) -> Took:
        there = self._folder / order.name
        source, target = (order.path, there) if order.do == "put" else (there, order.path)
        began = time.perf_counter()
        await _output_of("cp", str(source), str(target))
        sha256 = await asyncio.to_thread(_sha256_of, target)
        return Took(seconds=time.perf_counter() - began, sha256=sha256)


async def _output_of(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} failed")
    return output.decode()


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _plain_s3fs(order: Large, fs: Any, bucket: str) -> Took:
    there = f"{bucket}/plain/{order.name}"
    began = time.perf_counter()
    if order.do == "put":
        fs.put_file(str(order.path), there)
    else:
        fs.get_file(there, str(order.path))
    return Took(sha256=_sha256_of(order.path), seconds=time.perf_counter() - began)


def main() -> None:
    """A process that carries files with s3fs as it comes; told where to in its first line."""
    endpoint, bucket, key, secret = json.loads(sys.stdin.readline())
    options = {"s3": {"addressing_style": "path"}, "signature_version": "s3v4"}
    region = {"region_name": "us-east-1"}
    fs = s3fs.S3FileSystem(key=key, secret=secret, endpoint_url=endpoint, client_kwargs=region, config_kwargs=options)
    fs.ls(bucket)
    print(READY, flush=True)
    for line in sys.stdin:
        print(_plain_s3fs(Large.model_validate_json(line), fs, bucket).model_dump_json(), flush=True)


if __name__ == "__main__":
    main()
