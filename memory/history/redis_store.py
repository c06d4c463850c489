"""Histories in a Redis that evicts nothing: a JSON array per key, readable with GET (spec 001)."""

from collections.abc import Sequence
from typing import Any

from bus_schema.history import chat_key, is_history_key, subagent_key
from memory.history.store import KNOWN_FOR, HistoriesAway, HistoryChange, mark_of
from memory.redis_link import RedisLink

_MARK = "history_gone:"
_KEPT_MS = round(KNOWN_FOR.total_seconds() * 1000)
_SCANNED = 1000

# Another type of value gets a text of its own, so that it can be cleared like any other broken history.
_DIGEST = """
local kind = redis.call('TYPE', KEYS[1]).ok
local text = ''
if kind == 'string' then text = redis.call('GET', KEYS[1]) elseif kind ~= 'none' then text = 'a Redis ' .. kind end
local digest = ''
if text ~= '' then digest = redis.sha1hex(text) end
"""

_READ = f"{_DIGEST} if digest == ARGV[1] then return false end return text"

# KEYS: the history, the marks of added, then of dropped messages. Arguments: the known digest, the new text, the number
# of added messages, how long a mark is kept in ms.
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
    """HistoryStore whose changes are Lua scripts: atomic for other writers and through a power cut."""

    def __init__(self, url: str) -> None:
        self._link = RedisLink(url, HistoriesAway)

    async def open(self) -> None:
        """Raises WrongRedis."""
        await self._link.open("histories")

    async def close(self) -> None:
        await self._link.close()

    async def read(self, key: str, known_digest: str | None) -> bytes | None:
        # A question mark is no digest.
        text: bytes | None = await self._link.run(_READ, [key], "?" if known_digest is None else known_digest)
        return text

    async def replace(self, change: HistoryChange) -> frozenset[str] | None:
        marks = [_MARK + mark_of(change.key, message_id) for message_id in (*change.added, *change.dropped)]
        removed = await self._link.run(
            _REPLACE, [change.key, *marks], change.known, change.text, len(change.added), _KEPT_MS
        )
        # A script's false arrives as None, an empty table as an empty list.
        if removed is None:
            return frozenset()
        return frozenset(change.added[place] for place in removed) or None

    async def keys(self, chat_id: str | None, after: str, limit: int) -> list[str]:
        # Redis keeps no order of keys, so all of them are scanned.
        chat = "*" if chat_id is None else chat_id
        keys = await self._link.ask(lambda redis: _scan(redis, [chat_key(chat), subagent_key("*", chat)]))
        return sorted(key for key in keys if key > after)[:limit]

    async def forget_old(self) -> None:
        """Nothing to do: marks expire."""


async def _scan(redis: Any, patterns: Sequence[str]) -> set[str]:
    keys: set[str] = set()
    for pattern in patterns:
        keys |= {key.decode(errors="replace") async for key in redis.scan_iter(match=pattern, count=_SCANNED)}
    # Others may have keys that look similar.
    return set(filter(is_history_key, keys))
