"""Cache of units in a Redis of its own (spec 000 §4.3.1): keys, Lua scripts and the cache itself."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from bus_schema.embeddings import Embedding
from bus_schema.kem import Kem
from bus_schema.kem_match import indexable_texts, required_texts
from bus_schema.kem_query import KemQuery
from memory.errors import WrongRedis
from memory.redis_link import RedisLink
from memory.swm.cache import CacheAway
from mindbus.logs import logger
from mindbus.sdk.local_memory import Policy
from mindbus.tasks import end

KEM = "swm_kem:"
BY_METADATA = "swm_idx:meta:"
BY_CREATED = "swm_idx:date:created_at"
BY_UPDATED = "swm_idx:date:updated_at"
# Reverse index, the indexes that a unit is in: after its hash is evicted, nothing else tells.
REVERSE = "swm_idx:of:"

_OTHER_FIELDS = ("owner", "visibility", "readers", "writers", "ref", "source", "version")
_other_fields = TypeAdapter(dict[str, Any])


def fields_of(kem: Kem) -> dict[str, bytes]:
    """Fields of the specification; `rest` is rights, version and source as JSON, `model` the vector's."""
    other_fields = kem.model_dump(mode="json", include=set(_OTHER_FIELDS), exclude_none=True)
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
        self._listener = asyncio.create_task(self._listen_for_ever(), name="evictions")

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

    async def candidates(self, query: KemQuery) -> list[Kem]:
        kem_ids = set(query.ids) or None
        for key, texts in required_texts(query.metadata_filters, self._indexed_keys):
            indexes = [by_metadata(key, text) for text in texts]
            kem_ids = _intersection(kem_ids, await self._link.call("sunion", indexes))
        if kem_ids is None:
            kem_ids = await self._by_time(query)
        return await self._load(sorted(kem_ids))

    async def touch(self, kem_ids: Collection[str]) -> None:
        """Nothing to do: Redis counts reads itself."""

    async def take_evicted(self) -> list[str]:
        evicted, self._evicted = self._evicted, []
        return evicted

    async def clear(self) -> int:
        kem_ids = _texts(await self._link.call("zrange", BY_UPDATED, 0, -1))
        for kem_id in kem_ids:
            await self.drop(kem_id)
        return len(kem_ids)

    async def reconcile(self) -> None:
        """Clean the indexes of units evicted unnoticed: Redis announces an eviction once, to current subscribers."""
        for kem_id in _texts(await self._link.call("zrange", BY_UPDATED, 0, -1)):
            await self._clean(kem_id)

    async def _by_time(self, query: KemQuery) -> set[str]:
        ids: set[str] | None = None
        times = (
            (BY_CREATED, query.created_at_start, query.created_at_end),
            (BY_UPDATED, query.updated_at_start, query.updated_at_end),
        )
        for index, start, stop in times:
            first = "-inf" if start is None else seconds(start)
            last = "+inf" if stop is None else seconds(stop)
            ids = _intersection(ids, await self._link.call("zrangebyscore", index, first, last))
        return ids or set()

    async def _load(self, kem_ids: Sequence[str]) -> list[Kem]:
        kems = []
        for first in range(0, len(kem_ids), _CHUNK):
            chunk = kem_ids[first : first + _CHUNK]
            kems += [kem_of(fields) for fields in await self._link.ask(partial(_hashes, kem_ids=chunk)) if fields]
        return kems

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

    async def _listen_for_ever(self) -> None:
        while True:
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


async def _hashes(redis: Any, kem_ids: Sequence[str]) -> Any:
    pipeline = redis.pipeline(transaction=False)
    for kem_id in kem_ids:
        pipeline.hgetall(KEM + kem_id)
    return await pipeline.execute()


def _intersection(kem_ids: set[str] | None, members: Collection[bytes]) -> set[str]:
    ids = set(_texts(members))
    return ids if kem_ids is None else kem_ids & ids


def _texts(members: Collection[bytes]) -> list[str]:
    return [member.decode() for member in members]
