"""Rows that are no messages come into the outbox, before and among those that are; they are set aside."""

import asyncio

import sqlalchemy

from mindbus.testing.wait import until
from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_ROWS = 5
_SET_ASIDE_WITHIN_S = 30.0


async def inflict(bed: Testbed) -> int:
    engine = sqlalchemy.create_engine(bed.settings.database_of("audit").replace("+aiosqlite", ""))
    insertion = sqlalchemy.text(
        "INSERT INTO outbox (exchange, routing_key, mandatory, envelope) VALUES ('mb.evt.audit', 'evt.x.y', 1, '{')"
    )

    def insert() -> None:
        with engine.begin() as connection:
            for _ in range(_ROWS):
                connection.execute(insertion)

    def left() -> int:
        with engine.connect() as connection:
            return connection.scalar(sqlalchemy.text("SELECT count(*) FROM outbox WHERE envelope = '{'")) or 0

    async def are_gone() -> bool:
        return not await asyncio.to_thread(left)

    try:
        await asyncio.to_thread(insert)
        await until(are_gone, _SET_ASIDE_WITHIN_S, "the rows are set aside")
    finally:
        engine.dispose()
    return _ROWS


FAULT = Fault(inflict)
