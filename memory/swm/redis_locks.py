"""Locks in a Redis that evicts nothing."""

import asyncio
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bus_schema.swm import Lock, LockInfo
from memory.swm.locks import Clock, Want
from memory.swm.redis_coordination import Coordination
from memory.swm.refusals import CoordinationAway, LockLost

_KEY = "swm_lock:"

# Time is ours, in ms: one instance leads, so that it is the only one who says what time it is.
_TAKE = """
local held = redis.call('HMGET', KEYS[1], 'ticket', 'token', 'fencing', 'expires')
local expires, now = tonumber(held[4] or '0'), tonumber(ARGV[1])
for unheard = 6, #ARGV do
    if held[2] == ARGV[unheard] then expires = 0 end
end
if expires > now then
    if held[1] ~= ARGV[2] then return {'', '0', held[4]} end
    return {held[2], held[3], held[4]}
end
local fencing = redis.call('HINCRBY', KEYS[1], 'fencing', 1)
redis.call('HSET', KEYS[1], 'ticket', ARGV[2], 'token', ARGV[3], 'holder', ARGV[4], 'expires', ARGV[5])
return {ARGV[3], tostring(fencing), ARGV[5]}
"""
_RENEW = """
local held = redis.call('HMGET', KEYS[1], 'token', 'fencing', 'expires')
if held[1] ~= ARGV[2] or tonumber(held[3] or '0') <= tonumber(ARGV[1]) then return {} end
redis.call('HSET', KEYS[1], 'expires', ARGV[3])
return {held[1], held[2], ARGV[3]}
"""
# A lock that was released ends at 0; to release it again is no loss.
_RELEASE = """
local held = redis.call('HMGET', KEYS[1], 'token', 'expires')
local expires = tonumber(held[2] or '0')
if held[1] ~= ARGV[2] or (expires > 0 and expires <= tonumber(ARGV[1])) then return 0 end
redis.call('HSET', KEYS[1], 'expires', '0')
return 1
"""


class RedisLocks:
    """A LockStore for the one instance that leads."""

    def __init__(self, coordination: Coordination, clock: Clock) -> None:
        self._redis, self._clock = coordination, clock
        # Tokens with the ends of their leases: of which nobody has heard, for want of an answer.
        self._unheard: dict[str, datetime] = {}

    async def take(self, want: Want) -> Lock | datetime:
        """As in LockStore; what Redis carries out when its asker has been refused long ago is nobody's lock."""
        now, new = self._clock(), secrets.token_hex(16)
        self._unheard = {token: until for token, until in self._unheard.items() if until > now}
        arguments = (_ms(now), want.ticket, new, want.holder, _ms(now + want.lease), *self._unheard)
        try:
            token, fencing, expires = await self._redis.run(_TAKE, [_KEY + want.name], *arguments)
        except (CoordinationAway, asyncio.CancelledError):
            self._unheard[new] = now + want.lease
            raise
        return _lock((token, fencing, expires)) if token else _time(expires)

    async def renew(self, name: str, token: str, lease: timedelta) -> Lock:
        """As in LockStore."""
        now = self._clock()
        found = await self._redis.run(_RENEW, [_KEY + name], _ms(now), token, _ms(now + lease))
        if not found:
            raise LockLost(name=name)
        return _lock(found)

    async def release(self, name: str, token: str) -> None:
        """As in LockStore."""
        if not await self._redis.run(_RELEASE, [_KEY + name], _ms(self._clock()), token):
            raise LockLost(name=name)

    async def info(self, name: str) -> LockInfo:
        """As in LockStore."""
        holder, fencing, expires = await self._redis.ask(
            lambda redis: redis.hmget(_KEY + name, "holder", "fencing", "expires")
        )
        if expires is None or int(expires) <= _ms(self._clock()):
            return LockInfo(name=name, fencing=int(fencing or 0))
        return LockInfo(name=name, holder=holder.decode(), fencing=int(fencing), expires=_time(expires))


def _lock(found: Sequence[Any]) -> Lock:
    token, fencing, expires = found
    return Lock(token=token.decode(), fencing=int(fencing), expires=_time(expires))


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def _time(ms: bytes) -> datetime:
    return datetime.fromtimestamp(int(ms) / 1000, UTC)
