"""Listens in on a broker."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aio_pika
from aio_pika.abc import AbstractIncomingMessage

from bus_schema.envelope import Envelope
from tests.management import Management

FIREHOSE = "amq.rabbitmq.trace"


@dataclass(frozen=True)
class Body:
    """What was published: where, under which key, what."""

    exchange: str
    routing_key: str
    type: str
    content: bytes = field(repr=False)

    @property
    def size_bytes(self) -> int:
        return len(self.content)


@asynccontextmanager
async def every_body(amqp_url: str, vhost: str, management: Management) -> AsyncIterator[list[Body]]:
    """Every message of the vhost as the broker takes it, whichever exchange it comes to, the nameless one included."""
    bodies: list[Body] = []

    async def note(message: AbstractIncomingMessage) -> None:
        properties = message.headers["properties"]
        kind = properties.get("type", "") if isinstance(properties, dict) else ""
        exchange = str(message.headers["exchange_name"])
        _, _, key = str(message.routing_key).partition(".")
        bodies.append(Body(exchange, key, str(kind), message.body))

    await management.trace_vhost(vhost, on=True)
    async with await aio_pika.connect(amqp_url) as connection, connection.channel() as channel:
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind(FIREHOSE, "publish.#")
        consumer = await queue.consume(note, no_ack=True)
        yield bodies
        await queue.cancel(consumer)
    await management.trace_vhost(vhost, on=False)


class DurableTap:
    """A queue that misses nothing, not even while the broker is killed; to be read when all is over."""

    def __init__(self, amqp_url: str, name: str) -> None:
        self._amqp_url, self.name = amqp_url, name

    async def open(self, *bindings: tuple[str, str]) -> None:
        """Listen to exchanges, each under a key."""
        async with await aio_pika.connect(self._amqp_url) as connection, connection.channel() as channel:
            queue = await channel.declare_queue(self.name, durable=True, arguments={"x-queue-type": "quorum"})
            for exchange, key in bindings:
                await queue.bind(exchange, key)

    async def close(self) -> list[Envelope]:
        """All that was heard."""
        heard: list[Envelope] = []
        async with await aio_pika.connect(self._amqp_url) as connection, connection.channel() as channel:
            queue = await channel.get_queue(self.name)
            while (message := await queue.get(fail=False, no_ack=True)) is not None:
                heard.append(Envelope.model_validate_json(message.body))
            await queue.delete(if_unused=False, if_empty=False)
        return heard
