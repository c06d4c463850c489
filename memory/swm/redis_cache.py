"""Units at hand in a Redis of their own (spec 000 §4.3.1)."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Any, TypeVar

from bus_schema.kem import Kem
from bus_schema.kem_matching import indexable_texts, required_texts
from bus_schema.kem_query import KemQuery
from memory.redis_link import RedisAway, RedisLink, WrongRedis, wait_for_redis
from memory.swm.cache import CacheAway
from memory.swm.redis_layout import (
    BY_CREATED,
    BY_UPDATED,
    CLEAN,
    DROP,
    KEM,
    PUT,
    REVERSE,
    by_metadata,
    fields_of,
    kem_of,
    seconds,
)
from mindbus.logs import logger
from mindbus.sdk.kem_cache import Policy
from mindbus.tasks import end

T = TypeVar("T")
_CHUNK = 200
_HEAR_S = 1.0
_STOP_AGAIN_S = 0.1


class RedisCache:
    """A KemCache that outlives its process; its hashes alone have a time to live, so that they alone are evicted."""

    def __init__(self, url: str, indexed_keys: Collection[str], policy: Policy = "lru", ttl_s: float = 604_800) -> None:
        self._link = RedisLink(url)
        self._indexed_keys, self._policy, self._ttl_ms = frozenset(indexed_keys), policy, round(ttl_s * 1000)
        self._evicted: list[str] = []
        self._listening: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """As in KemCache; while Redis is away it opens, to begin once it is back. Raises WrongRedis."""
        try:
            await self._require_settings()
        except RedisAway as away:
            logger().warning("cache is away, reads go to the global memory", reason=str(away))
        self._listening = asyncio.create_task(self._listen_for_ever(), name="evictions")

    async def close(self) -> None:
        """As in KemCache."""
        if self._listening is not None:
            # The client takes the first cancellation for a connection that has ended.
            await end(self._listening, try_again_s=_STOP_AGAIN_S)
        await self._link.close()

    async def get(self, kem_id: str) -> Kem | None:
        """As in KemCache."""
        found = await self._call("hgetall", KEM + kem_id)
        return kem_of(found) if found else None

    async def put(self, kem: Kem) -> None:
        """As in KemCache."""
        indexes = [by_metadata(key, text) for key, text in set(indexable_texts(kem)) if key in self._indexed_keys]
        fields = [part for field in fields_of(kem).items() for part in field]
        times = (seconds(kem.created_at), seconds(kem.updated_at))
        await self._run(PUT, kem.id, self._ttl_ms, *times, len(indexes), *indexes, *fields)

    async def drop(self, kem_id: str) -> bool:
        """As in KemCache."""
        return bool(await self._run(DROP, kem_id))

    async def candidates(self, query: KemQuery) -> list[Kem]:
        """As in KemCache."""
        kem_ids = set(query.ids) or None
        for key, texts in required_texts(query.metadata_filters, self._indexed_keys):
            indexes = [by_metadata(key, text) for text in texts]
            kem_ids = _narrowed(kem_ids, await self._call("sunion", indexes))
        if kem_ids is None:
            kem_ids = await self._by_time(query)
        return await self._load(sorted(kem_ids))

    async def used(self, kem_ids: Collection[str]) -> None:
        """As in KemCache: Redis has seen it."""

    async def evicted(self) -> list[str]:
        """As in KemCache."""
        evicted, self._evicted = self._evicted, []
        return evicted

    async def clear(self) -> int:
        """As in KemCache."""
        kem_ids = _texts(await self._call("zrange", BY_UPDATED, 0, -1))
        for kem_id in kem_ids:
            await self.drop(kem_id)
        return len(kem_ids)

    async def reconcile(self) -> None:
        """Clean the indexes of what is gone: notices of it are told once, to those who listen then."""
        for kem_id in _texts(await self._call("zrange", BY_UPDATED, 0, -1)):
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
            ids = _narrowed(ids, await self._call("zrangebyscore", index, first, last))
        return ids or set()

    async def _load(self, kem_ids: Sequence[str]) -> list[Kem]:
        kems = []
        for first in range(0, len(kem_ids), _CHUNK):
            chunk = kem_ids[first : first + _CHUNK]
            kems += [kem_of(found) for found in await self._ask(partial(_hashes, kem_ids=chunk)) if found]
        return kems

    async def _run(self, script: str, kem_id: str, *arguments: Any) -> Any:
        return await self._call("eval", script, 2, KEM + kem_id, REVERSE + kem_id, kem_id, *arguments)

    async def _call(self, command: str, *arguments: Any) -> Any:
        return await self._ask(lambda redis: getattr(redis, command)(*arguments))

    async def _ask(self, work: Callable[[Any], Awaitable[T]]) -> T:
        try:
            return await self._link.ask(work)
        except RedisAway as away:
            raise CacheAway(str(away)) from away

    async def _require_settings(self) -> None:
        policy = await self._link.setting("maxmemory-policy")
        if not policy.startswith("volatile-") or not policy.endswith(self._policy):
            # One that takes any key would take whole indexes.
            await self._link.set("maxmemory-policy", f"volatile-{self._policy}")
        notices = await self._link.setting("notify-keyspace-events")
        if not {"E", "e", "x"} <= set(notices.replace("A", "Aex")):
            await self._link.set("notify-keyspace-events", f"{notices}Eex")

    async def _listen_for_ever(self) -> None:
        while True:
            await wait_for_redis(self._link)
            try:
                await self._listen()
            except (RedisAway, CacheAway, WrongRedis) as trouble:
                logger().warning("evictions are not heard", reason=str(trouble))

    async def _listen(self) -> None:
        """First listen, then look what has gone unheard."""

        async def hear(redis: Any) -> None:
            await self._require_settings()
            number = redis.connection_pool.connection_kwargs.get("db", 0)
            async with redis.pubsub(ignore_subscribe_messages=True) as notices:
                await notices.subscribe(*(f"__keyevent@{number}__:{event}" for event in ("evicted", "expired")))
                await self.reconcile()
                while True:
                    notice = await notices.get_message(timeout=_HEAR_S)
                    if notice is not None and (key := notice["data"].decode()).startswith(KEM):
                        await self._clean(key.removeprefix(KEM))
                    elif notice is None:
                        await redis.ping()

        await self._link.ask(hear)

    async def _clean(self, kem_id: str) -> None:
        if await self._run(CLEAN, kem_id):
            self._evicted.append(kem_id)


async def _hashes(redis: Any, kem_ids: Sequence[str]) -> Any:
    pipeline = redis.pipeline(transaction=False)
    for kem_id in kem_ids:
        pipeline.hgetall(KEM + kem_id)
    return await pipeline.execute()


def _narrowed(kem_ids: set[str] | None, found: Collection[bytes]) -> set[str]:
    ids = set(_texts(found))
    return ids if kem_ids is None else kem_ids & ids


def _texts(found: Collection[bytes]) -> list[str]:
    return [each.decode() for each in found]
