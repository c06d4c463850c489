"""The way back from the orphans."""

from datetime import date, timedelta

from storage_service.blobs import Blobs
from storage_service.care.keys import orphan_key
from storage_service.care.rules import ORPHANS_KEPT


async def bring_back(blobs: Blobs, key: str, today: date) -> bool:
    """Have a file at its own key again, if it still lies among the orphans; whether it is there. Raises OSError."""
    orphan = await orphan_of(blobs, key, today)
    return orphan is not None and await blobs.move(orphan, key)


async def orphan_of(blobs: Blobs, key: str, today: date) -> str | None:
    """Where a file lies among the orphans. Raises OSError."""
    # A day more than they are kept: the day in a key may have been nearly over.
    for age in range(ORPHANS_KEPT.days + 2):
        orphan = orphan_key(key, today - timedelta(days=age))
        if await blobs.size_bytes(orphan) is not None:
            return orphan
    return None


async def damage_of(blobs: Blobs, key: str, sha256: str, size_bytes: int, *, rehash: bool) -> str | None:
    """What is wrong with the bytes under a key; None where nothing is. Raises FileNotFoundError, OSError."""
    found = await blobs.size_bytes(key)
    if found is None:
        raise FileNotFoundError(key)
    if found != size_bytes:
        return f"has {found} bytes, not {size_bytes}"
    if rehash and (digest := (await blobs.digest(key)).sha256) != sha256:
        return f"has the sha256 {digest}"
    return None
