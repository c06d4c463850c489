"""Counters in a Redis that evicts nothing."""

from datetime import timedelta
from typing import Any

from memory.swm.counters import MOST, Addition
from memory.swm.redis_coordination import Coordination
from memory.swm.refusals import CounterFull
from mindbus.logs import logger

KEPT = timedelta(days=1)
_KEY = "swm_counter:"
_OPERATION = "swm_counter_op:"

_ADD = """
local made = redis.call('GET', KEYS[2])
if made then return made end
local value = tonumber(redis.call('GET', KEYS[1]) or '0') + tonumber(ARGV[1])
if math.abs(value) > tonumber(ARGV[3]) then return '' end
local text = string.format('%.0f', value)
redis.call('SET', KEYS[1], text)
redis.call('SET', KEYS[2], text, 'PX', ARGV[2])
return text
"""


class RedisCounters:
    """A CounterStore; an operation is known for a day."""

    def __init__(self, coordination: Coordination) -> None:
        self._redis = coordination

    async def add(self, addition: Addition) -> int:
        """As in CounterStore."""
        # No name has a bar in it.
        keys = [_KEY + addition.name, f"{_OPERATION}{addition.name}|{addition.operation_id}"]
        value = await self._redis.run(_ADD, keys, addition.by, round(KEPT.total_seconds() * 1000), MOST)
        if not value:
            raise CounterFull(name=addition.name)
        return int(value)

    async def value(self, name: str) -> int:
        """As in CounterStore."""
        return int(await self._redis.ask(lambda redis: redis.get(_KEY + name)) or 0)

    async def forget_old(self) -> None:
        """As in CounterStore: Redis does it."""

    async def clear(self) -> int:
        """As in CounterStore."""
        operations = await self._redis.ask(lambda redis: _drop(redis, f"{_OPERATION}*"))
        counters = await self._redis.ask(lambda redis: _drop(redis, f"{_KEY}*"))
        logger().info("counters cleared", counters=counters, operations=operations)
        return counters


async def _drop(redis: Any, pattern: str) -> int:
    return sum([await redis.delete(key) async for key in redis.scan_iter(match=pattern, count=1000)])
