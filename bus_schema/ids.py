"""Time-ordered ids, derived ids that repeat on redelivery, the ids of W3C traces."""

import secrets
import time
import uuid
from hashlib import sha1
from typing import Annotated

from pydantic import StringConstraints

# W3C Trace Context §3.2: version, trace, parent, flags.
TraceParent = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$")]
_NAMESPACE = uuid.UUID("6f1d9c52-8a30-5c1e-9d57-6d696e646275")
_VARIANTS = "89ab"


def uuid7() -> uuid.UUID:
    """UUID version 7 (RFC 9562 §5.7): 48 bits of Unix milliseconds, 74 random bits."""
    value = time.time_ns() // 1_000_000 << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    return uuid.UUID(int=value & ~(0x3 << 62) | 0x2 << 62)


def mint(prefix: str) -> str:
    """Create an id such as `art_0190…`; the caller keeps it over retries."""
    return f"{prefix}_{uuid7().hex}"


def derived(cause: str, *path: str | int) -> str:
    """Deterministic id: UUIDv5 over a cause and a path.

    Every message has some; by the `uuid` module, which makes an object of it, one takes three times as long.
    """
    name = "\n".join((cause, *map(str, path)))
    digits = sha1(_NAMESPACE.bytes + name.encode(), usedforsecurity=False).hexdigest()
    variant = _VARIANTS[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"
