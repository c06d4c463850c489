"""Thousands of unreadable messages before the valid ones."""

import asyncio

import aio_pika

from mindbus.bus.topology_admin import user_of
from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_MESSAGES = 2000
_AT_ONCE = 200


async def inflict(bed: Testbed) -> int:
    user = user_of(bed.node.amqp_url)
    async with await aio_pika.connect(bed.node.amqp_url) as connection, connection.channel() as channel:
        for _ in range(0, _MESSAGES, _AT_ONCE):
            messages = [aio_pika.Message(b"{}", user_id=user, delivery_mode=2) for _ in range(_AT_ONCE)]
            await asyncio.gather(*(channel.default_exchange.publish(each, "mb.q.booking") for each in messages))
    return _MESSAGES


FAULT = Fault(inflict)
