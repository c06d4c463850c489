"""Histories in a Redis that evicts nothing: under each key its JSON array, as GET gives it (spec 001)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from bus_schema.history import chat_key, is_history_key, subagent_key
from memory.history.errors import HistoriesAway
from memory.history.store import CHANGED, DONE, KNOWN_FOR, ChangeOutcome, HistoryChange, mark_of
from memory.redis_link import RedisAway, RedisLink
from mindbus.logs import logger

T = TypeVar("T")
_MARK = "history_gone:"
_KEPT_MS = round(KNOWN_FOR.total_seconds() * 1000)
_SCANNED = 1000

# What is no text is told to be none, so that it can be cleared like any other that is no history.
_DIGEST = """
local kind = redis.call('TYPE', KEYS[1]).ok
local text = ''
if kind == 'string' then text = redis.call('GET', KEYS[1]) elseif kind ~= 'none' then text = 'a Redis ' .. kind end
local digest = ''
if text ~= '' then digest = redis.sha1hex(text) end
"""

_READ = f"{_DIGEST} if digest == ARGV[1] then return false end return text"

# KEYS: the history, the marks of what is added, of what is dropped. Arguments: the digest that is known, the new text,
# how many are added, for how long a mark lasts.
_REPLACE = f"""
{_DIGEST}
if digest ~= ARGV[1] then return false end
local added = tonumber(ARGV[3])
local gone = {{}}
for place = 1, added do
    if redis.call('EXISTS', KEYS[1 + place]) == 1 then table.insert(gone, place - 1) end
end
if #gone > 0 then return gone end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2]) end
for place = 2 + added, #KEYS do redis.call('SET', KEYS[place], '', 'PX', ARGV[4]) end
return gone
"""


class RedisStore:
    """A HistoryStore; a script is one step for whoever else writes, through a power cut as well."""

    def __init__(self, url: str) -> None:
        self._link = RedisLink(url)

    async def open(self) -> None:
        """Raises WrongRedis where it would evict; one that is away is looked at by whoever uses it first."""
        try:
            await self._link.require_noeviction("histories")
        except RedisAway as away:
            logger().warning("histories are unavailable", reason=str(away))

    async def close(self) -> None:
        """Close every connection."""
        await self._link.close()

    async def read(self, key: str, known: str | None) -> bytes | None:
        """As in HistoryStore."""
        # No digest is a question mark.
        text: bytes | None = await self._run(_READ, [key], "?" if known is None else known)
        return text

    async def replace(self, change: HistoryChange) -> ChangeOutcome:
        """As in HistoryStore."""
        marks = [_MARK + mark_of(change.key, message_id) for message_id in (*change.added, *change.dropped)]
        gone = await self._run(_REPLACE, [change.key, *marks], change.known, change.text, len(change.added), _KEPT_MS)
        if gone is None:
            return CHANGED
        return ChangeOutcome(is_done=False, gone=frozenset(change.added[place] for place in gone)) if gone else DONE

    async def keys(self, chat_id: str | None, after: str, limit: int) -> list[str]:
        """As in HistoryStore: Redis knows no order, so all of them are looked at."""
        chat = "*" if chat_id is None else chat_id
        found = await self._ask(lambda redis: _all(redis, [chat_key(chat), subagent_key("*", chat)]))
        return sorted(key for key in found if key > after)[:limit]

    async def forget_old(self) -> None:
        """As in HistoryStore: Redis does it."""

    async def _run(self, script: str, keys: Sequence[str], *arguments: Any) -> Any:
        return await self._ask(lambda redis: redis.eval(script, len(keys), *keys, *arguments))

    async def _ask(self, work: Callable[[Any], Awaitable[T]]) -> T:
        try:
            return await self._link.ask(work)
        except RedisAway as away:
            raise HistoriesAway(f"{HistoriesAway.__doc__} ({away.__cause__ or 'asked a moment ago'})") from away


async def _all(redis: Any, patterns: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for pattern in patterns:
        found |= {key.decode(errors="replace") async for key in redis.scan_iter(match=pattern, count=_SCANNED)}
    # Others may have keys that are alike.
    return set(filter(is_history_key, found))
