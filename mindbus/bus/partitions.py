"""Partitions of a service: targets among which its commands are spread by user, so that several processes share them.

The first has the service's own name, the others a number behind it; each has an exchange and a queue.
"""

import zlib

from bus_schema.envelope import Envelope
from bus_schema.messages import Message


def targets_of(service: str, count: int) -> tuple[str, ...]:
    """Names of the partitions."""
    return (service, *(f"{service}.{number}" for number in range(1, count)))


def target_of(service: str, key: str | None, count: int) -> str:
    """The partition of a key, by CRC-32; what has none goes to the first."""
    return service if key is None or count == 1 else targets_of(service, count)[zlib.crc32(key.encode()) % count]


def service_of_target(target: str) -> str:
    return target.partition(".")[0]


def key_of(message: Message | Envelope) -> str | None:
    """The key that commands are spread by: the user whom one is about, if any."""
    key = getattr(message, "user_id", None)
    return key if isinstance(key, str) else None
