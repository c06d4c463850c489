"""Where a producer stages what it will register."""

import asyncio
import os
from datetime import datetime
from pathlib import Path

from mindbus.files import FileStore
from mindbus.logs import logger
from mindbus.sdk.failures import StorageAway


def new_upload_key(owner: str, now: datetime) -> str:
    """A fresh address, which only storage will read and nobody can guess."""
    return f"staging/{now:%Y/%m/%d}/{owner.replace('.', '_')}/{os.urandom(16).hex()}"


async def stage(files: FileStore, key: str, source: Path, size_bytes: int) -> None:
    """Copy to the file store what is not there yet. Raises StorageAway."""
    try:
        await asyncio.to_thread(_stage, files, key, source, size_bytes)
    except OSError as trouble:
        raise StorageAway(f"file store: {trouble}") from trouble


async def unstage(files: FileStore, key: str) -> None:
    """Remove what will not be registered; what cannot be removed now, storage collects later."""
    try:
        await asyncio.to_thread(files.delete, key)
    except OSError as trouble:
        logger().warning("staged file stays", upload=key, reason=str(trouble))


def _stage(files: FileStore, key: str, source: Path, size_bytes: int) -> None:
    # Storage may be reading a copy from an earlier try: it must not change under its eyes.
    if not files.exists(key) or files.size_bytes(key) != size_bytes:
        files.upload(key, source)
