"""LangGraph's store over shared memory: durable, found by meaning, the same for all processes of one identity."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)

from bus_schema.ids import derived
from bus_schema.kem import Kem
from bus_schema.kem_query import OrderBy
from mindbus.integrations.bus_thread import BusThread
from mindbus.integrations.own_units import OwnUnits, label_of

_WITHIN, _PLACE, _MINUTES, _EXPIRES, _UNINDEXED = (
    "store_within",
    "store_place",
    "store_ttl",
    "store_expires",
    "store_dark",
)
_ALL = ""
_QUERY_CHARS = 2000
_COMPARE: dict[str, Callable[[Any, Any], object]] = {
    "$eq": lambda value, wanted: value == wanted,
    "$ne": lambda value, wanted: value != wanted,
    "$gt": lambda value, wanted: float(value) > float(wanted),
    "$gte": lambda value, wanted: float(value) >= float(wanted),
    "$lt": lambda value, wanted: float(value) < float(wanted),
    "$lte": lambda value, wanted: float(value) <= float(wanted),
}


class MindBusStore(BaseStore):
    """Items of the identity of the bus, as private units; what has expired is neither found nor kept once it is read.

    The whole value is searched by meaning, whatever `index` names; with `index=False` it is not searched. A value takes
    at most 64 KiB as JSON.
    """

    supports_ttl = True

    def __init__(self, bus: BusThread, *, ttl: TTLConfig | None = None) -> None:
        self._bus, self._units = bus, OwnUnits(bus)
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return self._bus.call(self._run(list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await self._bus.acall(self._run(list(ops)))

    async def asweep_ttl(self) -> int:
        """Delete what has expired; the number of items."""
        return await self._bus.acall(self._sweep())

    async def _run(self, ops: list[Op]) -> list[Result]:
        """All reads as of before the writes; of several writes to one item the last one counts."""
        results: list[Result] = [None if isinstance(op, PutOp) else await self._read(op) for op in ops]
        writes = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        await asyncio.gather(*(self._write(op) for op in writes.values()))
        return results

    async def _read(self, op: Op) -> Result:
        match op:
            case GetOp():
                return await self._get(op)
            case SearchOp():
                return await self._search(op)
            case ListNamespacesOp():
                return await self._list_namespaces(op)
        raise TypeError(f"no operation of a store: {type(op).__name__}")

    async def _write(self, op: PutOp) -> None:
        kem_id = self._id_of(op.namespace, op.key)
        if op.value is None:
            await self._units.delete(kem_id)
            return
        place = json.dumps([op.namespace, op.key], ensure_ascii=False)
        prefixes = [label_of(".".join(op.namespace[:length])) for length in range(len(op.namespace) + 1)]
        ttl = {_MINUTES: op.ttl, _EXPIRES: _in_minutes(op.ttl)} if op.ttl is not None else {}
        dark = {_UNINDEXED: True} if op.index is False else {}
        await self._units.put(kem_id, op.value, {_WITHIN: prefixes, _PLACE: place, **ttl, **dark})

    async def _get(self, op: GetOp) -> Item | None:
        kem = await self._units.get(self._id_of(op.namespace, op.key))
        if kem is None or not await self._is_alive(kem, refresh=op.refresh_ttl):
            return None
        return Item(**_fields_of(kem))

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        found: list[SearchItem] = []
        wanted = op.offset + op.limit
        async for kem, score in self._within(op.namespace_prefix, op.query):
            if len(found) >= wanted:
                break
            fields = _fields_of(kem)
            is_meant = all(_matches(fields["value"].get(key), each) for key, each in (op.filter or {}).items())
            is_hidden = op.query is not None and kem.metadata.get(_UNINDEXED)
            if is_meant and not is_hidden and await self._is_alive(kem, refresh=op.refresh_ttl):
                found.append(SearchItem(**fields, score=score))
        return found[op.offset : wanted]

    async def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        namespaces = set()
        async for kem, _score in self._within((), None):
            namespace, _key = _place_of(kem)
            if _is_current(kem) and all(_fits(namespace, condition) for condition in conditions):
                namespaces.add(namespace if op.max_depth is None else namespace[: op.max_depth])
        return sorted(namespaces)[op.offset : op.offset + op.limit]

    async def _within(self, prefix: tuple[str, ...], query: str | None) -> AsyncIterator[tuple[Kem, float | None]]:
        # A question may be a long text that somebody has pasted.
        query = (query or "").strip()[:_QUERY_CHARS] or None
        label = label_of(".".join(prefix)) if prefix else _ALL
        order: OrderBy | None = None if query else "created_at asc"
        async for item in self._units.find({_WITHIN: label}, text=query, order=order):
            yield item.kem, item.score if query else None

    async def _is_alive(self, kem: Kem, *, refresh: bool) -> bool:
        """Whether it has not expired; it lives longer if reading it refreshes that."""
        if not _is_current(kem):
            await self._units.delete(kem.id)
            return False
        minutes = kem.metadata.get(_MINUTES)
        if refresh and isinstance(minutes, int | float):
            await self._units.put(
                kem.id, json.loads(kem.content or "{}"), {**kem.metadata, _EXPIRES: _in_minutes(minutes)}
            )
        return True

    async def _sweep(self) -> int:
        old = [kem.id async for kem, _score in self._within((), None) if not _is_current(kem)]
        for kem_id in old:
            await self._units.delete(kem_id)
        return len(old)

    def _id_of(self, namespace: tuple[str, ...], key: str) -> str:
        return f"kem_{derived(self._units.owner, 'store', json.dumps([*namespace, key]))}"


def _place_of(kem: Kem) -> tuple[tuple[str, ...], str]:
    namespace, key = json.loads(str(kem.metadata[_PLACE]))
    return tuple(namespace), key


def _fields_of(kem: Kem) -> dict[str, Any]:
    namespace, key = _place_of(kem)
    return {
        "namespace": namespace,
        "key": key,
        "value": json.loads(kem.content or "{}"),
        "created_at": kem.created_at,
        "updated_at": kem.updated_at,
    }


def _in_minutes(minutes: float) -> float:
    return (datetime.now(UTC) + timedelta(minutes=minutes)).timestamp()


def _is_current(kem: Kem) -> bool:
    expires = kem.metadata.get(_EXPIRES)
    return not isinstance(expires, int | float) or expires > datetime.now(UTC).timestamp()


def _matches(value: Any, wanted: Any) -> bool:
    """As LangGraph's own store compares: by value, nested, or by operators such as {"$gt": 3}."""
    if isinstance(wanted, dict):
        if any(key.startswith("$") for key in wanted):
            return all(_compare(value, key, operand) for key, operand in wanted.items())
        return isinstance(value, dict) and all(_matches(value.get(key), each) for key, each in wanted.items())
    if isinstance(wanted, list | tuple):
        is_list = isinstance(value, list | tuple) and len(value) == len(wanted)
        return is_list and all(_matches(*pair) for pair in zip(value, wanted, strict=True))
    return bool(value == wanted)


def _compare(value: Any, operator: str, wanted: Any) -> bool:
    if operator not in _COMPARE:
        raise ValueError(f"Unsupported operator: {operator}")
    return bool(_COMPARE[operator](value, wanted))


def _fits(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
