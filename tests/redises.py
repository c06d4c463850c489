"""Finds a Redis for the tests: one that is named, the machine's own, or none."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.servers.redis import PrivateRedis, RedisMissing
from tests.brokers import do_without

ADVICE = "For the tests alone, MINDBUS_TEST_REDIS_URL=redis://… names another, which they empty again and again."


@contextmanager
def some_redis() -> Iterator[str]:
    """MINDBUS_TEST_REDIS_URL, or a private server; else skip, fail in CI."""
    if url := os.environ.get("MINDBUS_TEST_REDIS_URL"):
        yield url
        return
    server = private_redis()
    try:
        asyncio.run(server.start())
        yield server.url
    finally:
        asyncio.run(server.remove())


def private_redis(*options: str, keeps: bool = False) -> PrivateRedis:
    """One that is not started yet; else skip, fail in CI."""
    try:
        return PrivateRedis(*options, keeps=keeps)
    except RedisMissing as missing:
        do_without(missing, "a Redis", ADVICE)
