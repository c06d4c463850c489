"""The claim check: data too large for the bus waits in the file store, digest-checked."""

import asyncio
import hashlib
import json
from datetime import UTC, datetime
from typing import Any

from bus_schema.strict_json import parse_object
from bus_schema.uploads import MAX_CLAIM_BYTES
from mindbus.files.store import FileStore

# Longer than every retry and every dead letter; whoever cleans up `claims/` goes by the date in the key.
KEPT_DAYS = 30


class ClaimTooLarge(ValueError):
    """The data of a message is at most 64 MiB; register it as an artifact and send its ref."""


class ClaimLost(Exception):
    """The data of this message is not in the file store, or is not what its digest says."""


class Claims:
    """Offloads and brings back the data of large messages."""

    def __init__(self, files: FileStore) -> None:
        self._files = files

    async def deposit(self, data: dict[str, Any]) -> str:
        """Store the data; the key holds its digest, so doing it twice is as good as once.

        Raises ClaimTooLarge; OSError where the store is away.
        """
        content = json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
        if len(content) > MAX_CLAIM_BYTES:
            raise ClaimTooLarge(f"{ClaimTooLarge.__doc__} Got: {len(content)} bytes")
        return await self._keep(content)

    async def redeem(self, key: str) -> dict[str, Any]:
        """Read the data back. Raises ClaimLost; OSError where the store is away."""
        try:
            content = await self._fetch(key)
        except FileNotFoundError as missing:
            raise ClaimLost(f"{ClaimLost.__doc__} ({key})") from missing
        if hashlib.sha256(content).hexdigest() != key.rsplit("/", 1)[-1]:
            raise ClaimLost(f"{ClaimLost.__doc__} ({key})")
        return parse_object(content)

    async def _keep(self, content: bytes) -> str:
        key = f"claims/{datetime.now(UTC):%Y/%m/%d}/{hashlib.sha256(content).hexdigest()}"
        await asyncio.to_thread(self._files.put, key, content)
        return key

    async def _fetch(self, key: str) -> bytes:
        return await asyncio.to_thread(self._read, key)

    def _read(self, key: str) -> bytes:
        with self._files.open_read(key) as reader:
            return reader.read(MAX_CLAIM_BYTES + 1)
