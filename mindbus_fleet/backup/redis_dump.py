"""Dump of the keys of a Redis: a line each with its value in Redis' own form, and its time to live."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from mindbus_fleet.backup.errors import BackupFailed

_AT_ONCE = 500


def dump(url: str, to: Path) -> int:
    """Write all keys; returns how many. Raises BackupFailed."""
    count = 0
    try:
        with Redis.from_url(url) as redis, to.open("w", encoding="ascii") as file:
            for key in redis.scan_iter(count=_AT_ONCE):
                value, left_ms = redis.dump(key), redis.pttl(key)
                # It has expired since.
                if value is not None:
                    file.write(json.dumps([_text(key), _text(value), max(0, left_ms)]) + "\n")
                    count += 1
    except RedisError as error:
        raise BackupFailed(f"Redis cannot be read: {error}") from error
    return count


def require_empty(url: str) -> None:
    """Raise BackupFailed where there are keys already: those of a fleet at work would be replaced."""
    try:
        with Redis.from_url(url) as redis:
            count = redis.dbsize()
    except RedisError as error:
        raise BackupFailed(f"Redis cannot be read: {error}") from error
    if count:
        raise BackupFailed(f"the Redis database has {count} keys: name an empty one in MINDBUS_REDIS_URL")


def load(url: str, dumped: Path) -> int:
    """Write the keys of a dump, over those of the same name; returns how many. Raises BackupFailed."""
    count = 0
    try:
        with Redis.from_url(url) as redis:
            for key, value, left_ms in _lines(dumped):
                redis.restore(key, left_ms, value, replace=True)
                count += 1
    except RedisError as error:
        raise BackupFailed(f"Redis cannot be written: {error}") from error
    return count


def _lines(dumped: Path) -> Iterator[tuple[bytes, bytes, int]]:
    with dumped.open(encoding="ascii") as file:
        for line in file:
            key, value, left_ms = json.loads(line)
            yield base64.b64decode(key), base64.b64decode(value), left_ms


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
