"""Cache of units in a Redis of its own (spec 000 §4.3.1): keys, Lua scripts and the cache itself."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from bus_schema.embeddings import Embedding
from bus_schema.kem import Kem
from bus_schema.kem_match import indexable_texts, meets_filter, order_of, required_texts, sorted_kems
from bus_schema.kem_query import KemQuery
from memory.errors import WrongRedis
from memory.redis_link import RedisLink
from memory.swm.cache import CacheAway
from mindbus.logs import logger
from mindbus.sdk.local_memory import Policy
from mindbus.tasks import Supervised, end
from retrieval.cursors import PageKey

KEM = "swm_kem:"
BY_METADATA = "swm_idx:meta:"
BY_CREATED = "swm_idx:date:created_at"
BY_UPDATED = "swm_idx:date:updated_at"
# Reverse index, the indexes that a unit is in: after its hash is evicted, nothing else tells.
REVERSE = "swm_idx:of:"

_OWN_FIELDS = frozenset({"id", "content", "content_type", "metadata", "embeddings", "created_at", "updated_at"})
_other_fields = TypeAdapter(dict[str, Any])


def fields_of(kem: Kem) -> dict[str, bytes]:
    """Fields of the specification; `rest` is everything else of the unit as JSON, `model` the vector's."""
    other_fields = kem.model_dump(mode="json", exclude=set(_OWN_FIELDS), exclude_none=True)
    fields = {
        "id": kem.id.encode(),
        "content_type": kem.content_type.encode(),
        "metadata": to_json(kem.metadata),
        "created_at": kem.created_at.isoformat().encode(),
        "updated_at": kem.updated_at.isoformat().encode(),
        "created_at_ts": b"%d" % seconds(kem.created_at),
        "updated_at_ts": b"%d" % seconds(kem.updated_at),
        "rest": to_json(other_fields),
    }
    if kem.content is not None:
        fields["content"] = kem.content.encode()
    if kem.embeddings is not None:
        fields |= {"embeddings": kem.embeddings.raw, "model": kem.embeddings.model.encode()}
    return fields


def kem_of(fields: Mapping[bytes, bytes]) -> Kem:
    """The unit of a hash; vectors are little-endian float32."""
    vector = fields.get(b"embeddings")
    content = fields.get(b"content")
    return Kem.model_validate(
        {
            "id": fields[b"id"].decode(),
            "content_type": fields[b"content_type"].decode(),
            "content": None if content is None else content.decode(),
            "metadata": from_json(fields[b"metadata"]),
            "embeddings": None if vector is None else Embedding.from_bytes(fields[b"model"].decode(), vector),
            "created_at": fields[b"created_at"].decode(),
            "updated_at": fields[b"updated_at"].decode(),
            **_other_fields.validate_json(fields[b"rest"]),
        }
    )


def by_metadata(key: str, text: str) -> str:
    """Key of the set of units with this text under this metadata key."""
    return f"{BY_METADATA}{key}:{text}"


def seconds(time: datetime) -> int:
    """Score in the time indexes: whole seconds of the epoch."""
    return int(time.timestamp() // 1)


_LEAVE_INDEXES = f"""
for _, index in ipairs(redis.call('SMEMBERS', KEYS[2])) do
    redis.call('SREM', index, ARGV[1])
end
redis.call('DEL', KEYS[2])
redis.call('ZREM', '{BY_CREATED}', ARGV[1])
local was_known = redis.call('ZREM', '{BY_UPDATED}', ARGV[1])
"""

# Further arguments: time to live in ms, created, updated, number of indexes, the indexes, fields and values.
PUT = f"""
{_LEAVE_INDEXES}
local first_field = 6 + tonumber(ARGV[5])
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], unpack(ARGV, first_field))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('ZADD', '{BY_CREATED}', ARGV[3], ARGV[1])
redis.call('ZADD', '{BY_UPDATED}', ARGV[4], ARGV[1])
for place = 6, first_field - 1 do
    redis.call('SADD', ARGV[place], ARGV[1])
    redis.call('SADD', KEYS[2], ARGV[place])
end
"""

DROP = f"{_LEAVE_INDEXES} return redis.call('DEL', KEYS[1])"

# Returns 1 for the first of several listeners that clean up after the same eviction.
CLEAN = f"if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end {_LEAVE_INDEXES} return was_known"


_CHUNK = 200
_INDEXES = {"created_at": BY_CREATED, "updated_at": BY_UPDATED}
_UNBOUNDED = ("-inf", "+inf")
_MESSAGE_WITHIN_S = 1.0
_STOP_AGAIN_S = 0.1


class RedisCache:
    """KemCache that outlives its process; only the units have a time to live, so that only they are evicted."""

    def __init__(self, url: str, indexed_keys: Collection[str], policy: Policy = "lru", ttl_s: float = 604_800) -> None:
        self._link = RedisLink(url, lambda reason: CacheAway(f"{CacheAway.__doc__} ({reason})"))
        self._indexed_keys, self._policy, self._ttl_ms = frozenset(indexed_keys), policy, round(ttl_s * 1000)
        self._evicted: list[str] = []
        self._listener: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect; a Redis that is away is used once it is back. Raises WrongRedis."""
        try:
            await self._require_settings()
        except CacheAway as error:
            logger().warning("cache is away, reads go to the global memory", reason=str(error))
        self._listener = Supervised("evictions", self._receive_evictions, 0, lasts=True).start()

    async def close(self) -> None:
        if self._listener is not None:
            # The client takes the first cancellation for a connection that has ended.
            await end(self._listener, try_again_s=_STOP_AGAIN_S)
        await self._link.close()

    async def get(self, kem_id: str) -> Kem | None:
        fields = await self._link.call("hgetall", KEM + kem_id)
        return kem_of(fields) if fields else None

    async def put(self, kem: Kem) -> None:
        indexes = [by_metadata(key, text) for key, text in set(indexable_texts(kem)) if key in self._indexed_keys]
        fields = [part for field in fields_of(kem).items() for part in field]
        times = (seconds(kem.created_at), seconds(kem.updated_at))
        await self._run(PUT, kem.id, self._ttl_ms, *times, len(indexes), *indexes, *fields)

    async def drop(self, kem_id: str) -> bool:
        return bool(await self._run(DROP, kem_id))

    async def ordered(self, query: KemQuery, after: PageKey | None = None) -> AsyncGenerator[Kem]:
        wanted = query.metadata_filters
        async with aclosing(self._in_order(query, after)) as parts:
            async for part in parts:
                for first in range(0, len(part), _CHUNK):
                    kem_ids = part[first : first + _CHUNK]
                    if wanted:
                        texts = zip(kem_ids, await self._read("hget", kem_ids, "metadata"), strict=True)
                        kem_ids = [each for each, text in texts if text and meets_filter(from_json(text), wanted)]
                    hashes = await self._read("hgetall", kem_ids)
                    for kem in sorted_kems(map(kem_of, filter(None, hashes)), query):
                        yield kem

    async def touch(self, kem_ids: Collection[str]) -> None:
        """Nothing to do: Redis counts reads itself."""

    async def take_evicted(self) -> list[str]:
        evicted, self._evicted = self._evicted, []
        return evicted

    async def clear(self) -> int:
        return sum([await self.drop(kem_id) for kem_id in _texts(await self._link.call("zrange", BY_UPDATED, 0, -1))])

    async def reconcile(self) -> None:
        """Clean the indexes of units evicted unnoticed: Redis announces an eviction once, to current subscribers."""
        for kem_id in _texts(await self._link.call("zrange", BY_UPDATED, 0, -1)):
            await self._clean(kem_id)

    async def _allowed(self, query: KemQuery, order: str) -> set[str] | None:
        """Ids that the query's own and the indexes leave, but for that of its order; None: all."""
        kem_ids = set(query.ids) or None
        for key, texts in required_texts(query.metadata_filters, self._indexed_keys):
            indexes = [by_metadata(key, text) for text in texts]
            kem_ids = _intersection(kem_ids, await self._link.call("sunion", indexes))
        for name in ("created_at", "updated_at"):
            bounds = _bounds(name, query)
            if name != order and bounds != _UNBOUNDED:
                kem_ids = _intersection(kem_ids, await self._link.call("zrangebyscore", _INDEXES[name], *bounds))
        return kem_ids

    async def _in_order(self, query: KemQuery, after: PageKey | None) -> AsyncGenerator[Sequence[str]]:
        """Parts of the ids, each wholly before the next in the order of the query; sorted if longer than a chunk."""
        name, is_descending = order_of(query)
        allowed = await self._allowed(query, name)
        if name == "id":
            everything = _texts(await self._link.call("zrange", BY_UPDATED, 0, -1)) if allowed is None else allowed
            yield sorted(everything, reverse=is_descending)
        elif allowed is not None:
            yield await self._sorted(allowed, name, is_descending)
        else:
            async for part in self._by_time(name, query, after):
                yield part

    async def _by_time(self, name: str, query: KemQuery, after: PageKey | None) -> AsyncGenerator[list[str]]:
        """Ids by the index of a time, whole seconds together: within one, the index has no order of times."""
        _, is_descending = order_of(query)
        low, high = _bounds(name, query)
        if after is not None:
            low, high = (low, seconds(after.time)) if is_descending else (seconds(after.time), high)
        command, index = ("zrevrangebyscore" if is_descending else "zrangebyscore"), _INDEXES[name]
        while True:
            ends = (high, low) if is_descending else (low, high)
            part = {"start": 0, "num": _CHUNK, "withscores": True}
            rows = await self._link.ask(lambda redis: getattr(redis, command)(index, *ends, **part))  # noqa: B023
            if not rows:
                return
            edge = rows[-1][1]
            second = await self._link.call("zrangebyscore", index, edge, edge)
            kem_ids = _texts([*(kem_id for kem_id, score in rows if score != edge), *second])
            yield await self._sorted(kem_ids, name, is_descending) if len(kem_ids) > _CHUNK else kem_ids
            low, high = (low, f"({edge}") if is_descending else (f"({edge}", high)

    async def _sorted(self, kem_ids: Collection[str], name: str, is_descending: bool) -> list[str]:
        """Ids by a time of their units."""
        ids = list(kem_ids)
        texts = zip(await self._read("hget", ids, name), ids, strict=True)
        order = sorted((datetime.fromisoformat(text.decode()), kem_id) for text, kem_id in texts if text)
        return [kem_id for _time, kem_id in (reversed(order) if is_descending else order)]

    async def _read(self, command: str, kem_ids: Sequence[str], *arguments: str) -> list[Any]:
        """Answers to a command for each of these units."""

        async def run(redis: Any) -> Any:
            pipeline = redis.pipeline(transaction=False)
            for kem_id in kem_ids:
                getattr(pipeline, command)(KEM + kem_id, *arguments)
            return await pipeline.execute()

        return await self._link.ask(run) if kem_ids else []

    async def _run(self, script: str, kem_id: str, *arguments: Any) -> Any:
        return await self._link.run(script, [KEM + kem_id, REVERSE + kem_id], kem_id, *arguments)

    async def _require_settings(self) -> None:
        policy = await self._link.setting("maxmemory-policy")
        if not policy.startswith("volatile-") or not policy.endswith(self._policy):
            # A policy that evicts any key would evict whole indexes.
            await self._link.set("maxmemory-policy", f"volatile-{self._policy}")
        events = await self._link.setting("notify-keyspace-events")
        if not {"E", "e", "x"} <= set(events.replace("A", "Aex")):
            await self._link.set("notify-keyspace-events", f"{events}Eex")

    async def _receive_evictions(self) -> None:
        await self._link.wait()
        try:
            await self._listen()
        except (CacheAway, WrongRedis) as error:
            logger().warning("evictions are not received", reason=str(error))

    async def _listen(self) -> None:
        """Subscribe first, then reconcile, so that no eviction falls in between."""

        async def receive(redis: Any) -> None:
            await self._require_settings()
            number = redis.connection_pool.connection_kwargs.get("db", 0)
            async with redis.pubsub(ignore_subscribe_messages=True) as channel:
                await channel.subscribe(*(f"__keyevent@{number}__:{event}" for event in ("evicted", "expired")))
                await self.reconcile()
                while True:
                    message = await channel.get_message(timeout=_MESSAGE_WITHIN_S)
                    if message is not None and (key := message["data"].decode()).startswith(KEM):
                        await self._clean(key.removeprefix(KEM))
                    elif message is None:
                        await redis.ping()

        await self._link.ask(receive)

    async def _clean(self, kem_id: str) -> None:
        if await self._run(CLEAN, kem_id):
            self._evicted.append(kem_id)


def _bounds(name: str, query: KemQuery) -> tuple[str | int, str | int]:
    """Scores between which the query wants a time."""
    start, end = getattr(query, f"{name}_start"), getattr(query, f"{name}_end")
    return (_UNBOUNDED[0] if start is None else seconds(start), _UNBOUNDED[1] if end is None else seconds(end))


def _intersection(kem_ids: set[str] | None, members: Collection[bytes]) -> set[str]:
    return set(_texts(members)) if kem_ids is None else kem_ids.intersection(_texts(members))


def _texts(members: Collection[bytes]) -> list[str]:
    return [member.decode() for member in members]
