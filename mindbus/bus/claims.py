"""The claim check: data too large for the bus waits in the file store, digest-checked."""

import asyncio
import hashlib
import json
from datetime import UTC, datetime
from typing import Any

from bus_schema.strict_json import parse_object
from mindbus.files import FileStore

# Longer than every retry and every dead letter; whoever cleans up `claims/` goes by the date in the key.
KEPT_DAYS = 30
MAX_BYTES = 64 * 1024 * 1024


class ClaimTooLarge(ValueError):
    """The data of a message is at most 64 MiB; register it as an artifact and send its ref."""


class ClaimLost(Exception):
    """The data of this message is not in the file store, or is not what its digest says."""


class Claims:
    """Offloads and brings back the data of large messages."""

    def __init__(self, files: FileStore) -> None:
        self._files = files

    async def deposit(self, data: dict[str, Any]) -> str:
        """Store the data; the key holds its digest, so doing it twice is as good as once."""
        content = json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
        if len(content) > MAX_BYTES:
            raise ClaimTooLarge(f"{ClaimTooLarge.__doc__} Got: {len(content)} bytes")
        return await asyncio.to_thread(self._deposit, content)

    async def redeem(self, key: str) -> dict[str, Any]:
        """Read the data back. Raises ClaimLost."""
        return await asyncio.to_thread(self._redeem, key)

    def _deposit(self, content: bytes) -> str:
        key = f"claims/{datetime.now(UTC):%Y/%m/%d}/{hashlib.sha256(content).hexdigest()}"
        self._files.put(key, content)
        return key

    def _redeem(self, key: str) -> dict[str, Any]:
        try:
            with self._files.open_read(key) as reader:
                content = reader.read(MAX_BYTES + 1)
        except FileNotFoundError as missing:
            raise ClaimLost(f"{ClaimLost.__doc__} ({key})") from missing
        if hashlib.sha256(content).hexdigest() != key.rsplit("/", 1)[-1]:
            raise ClaimLost(f"{ClaimLost.__doc__} ({key})")
        return parse_object(content)
