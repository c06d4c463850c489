"""Every command and every event arrives twice."""

import aio_pika
from aio_pika.abc import AbstractExchange, AbstractIncomingMessage

from mindbus.bus.topology_admin import user_of
from mindbus.testing.wait import until
from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_QUEUE = "chaos.duplicates"
_LASTS_S = 4.0
_KINDS = ("mb.cmd.", "mb.evt.")


async def inflict(bed: Testbed) -> int:
    async with await bed.management() as management:
        names = [each["name"] for each in await management.exchanges()]
    seen: set[tuple[str, str]] = set()
    async with await aio_pika.connect(bed.node.amqp_url) as connection, connection.channel() as channel:
        queue = await channel.declare_queue(_QUEUE, exclusive=True)
        exchanges = {name: await channel.get_exchange(name) for name in names if name.startswith(_KINDS)}
        for exchange in exchanges.values():
            await queue.bind(exchange, "#")

        repeating: list[AbstractIncomingMessage] = []

        async def repeat(message: AbstractIncomingMessage) -> None:
            repeating.append(message)
            await _repeat(message, exchanges, seen, user_of(bed.node.amqp_url))
            repeating.remove(message)

        tag = await queue.consume(repeat, no_ack=True)
        await bed.last(_LASTS_S)
        await queue.cancel(tag)
        # What is being repeated ends before its channel does.
        await until(lambda: not repeating)
    return len(seen)


async def _repeat(
    message: AbstractIncomingMessage, exchanges: dict[str, AbstractExchange], seen: set[tuple[str, str]], user: str
) -> None:
    which = (message.exchange or "", message.message_id or "")
    # Its copy comes here, too.
    if which in seen:
        return
    seen.add(which)
    copy = aio_pika.Message(
        message.body,
        headers=dict(message.headers),
        content_type=message.content_type,
        content_encoding=message.content_encoding,
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        correlation_id=message.correlation_id,
        reply_to=message.reply_to,
        message_id=message.message_id,
        type=message.type,
        user_id=user,
        app_id=message.app_id,
    )
    await exchanges[which[0]].publish(copy, message.routing_key or "", mandatory=False)


FAULT = Fault(inflict)
