"""Counters in the database of the working memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from memory.swm.counters import MOST, Addition
from memory.swm.locks import Clock
from memory.swm.refusals import CounterFull
from memory.swm.tables import CounterRow, OperationRow
from mindbus.sdk.batches import Batches
from mindbus.sql.database import Database

KEPT = timedelta(days=1)
_AT_ONCE = 500


@dataclass(slots=True)
class _Order:
    addition: Addition
    # None where there is no room for it.
    value: int | None = None

    @property
    def key(self) -> tuple[str, str]:
        return (self.addition.name, self.addition.operation_id)


class SqlCounters:
    """A CounterStore for the one instance that leads: what comes at the same time is committed together."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._batches: Batches[_Order] = Batches(self._save, most=_AT_ONCE, heaviest=_AT_ONCE)

    def start(self) -> None:
        """Commit from now on."""
        self._batches.start()

    async def stop(self) -> None:
        """Commit no more; who still waits asks again."""
        await self._batches.stop()

    async def add(self, addition: Addition) -> int:
        """As in CounterStore."""
        order = _Order(addition)
        await self._batches.add(order)
        if order.value is None:
            raise CounterFull(name=addition.name)
        return order.value

    async def value(self, name: str) -> int:
        """As in CounterStore."""
        async with self._database.reading() as session:
            return await session.scalar(select(CounterRow.value).where(CounterRow.name == name)) or 0

    async def forget_old(self) -> None:
        """As in CounterStore."""
        async with self._database.transaction() as session:
            await session.execute(delete(OperationRow).where(OperationRow.made_at < self._clock() - KEPT))

    async def clear(self) -> int:
        """As in CounterStore."""
        async with self._database.transaction() as session:
            await session.execute(delete(OperationRow))
            return len((await session.scalars(delete(CounterRow).returning(CounterRow.name))).all())

    async def _save(self, orders: Sequence[_Order]) -> None:
        now = self._clock()
        async with self._database.transaction() as session:
            made = await _made(session, [order.key for order in orders])
            counters = await _counters(session, {order.addition.name for order in orders})
            new = {}
            for order in orders:
                if order.key not in made:
                    counter = counters[order.addition.name]
                    if abs(counter.value + order.addition.by) > MOST:
                        continue
                    counter.value += order.addition.by
                    made[order.key] = new[order.key] = counter.value
                order.value = made[order.key]
            session.add_all(OperationRow(name=n, operation_id=o, value=v, made_at=now) for (n, o), v in new.items())


async def _made(session: AsyncSession, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
    key = tuple_(OperationRow.name, OperationRow.operation_id)
    found = await session.scalars(select(OperationRow).where(key.in_(keys)))
    return {(row.name, row.operation_id): row.value for row in found}


async def _counters(session: AsyncSession, names: set[str]) -> dict[str, CounterRow]:
    found = await session.scalars(select(CounterRow).where(CounterRow.name.in_(names)))
    counters = {row.name: row for row in found}
    for name in names - counters.keys():
        counters[name] = CounterRow(name=name, value=0)
        session.add(counters[name])
    return counters
