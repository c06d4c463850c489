"""The benchmark's worker on bare aio-pika: pydantic reads the body, nothing else is checked."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractExchange, AbstractIncomingMessage

from benchmarks.jobs import PREFETCH, Job, queue_arguments
from benchmarks.orders import PlaceOrder, Receipt


class OnAioPika:
    @asynccontextmanager
    async def worker(self, job: Job, handle: Callable[[PlaceOrder], Receipt]) -> AsyncIterator[None]:
        async with _channel(job) as channel:
            await channel.set_qos(prefetch_count=PREFETCH)

            async def place(message: AbstractIncomingMessage) -> None:
                answer = handle(PlaceOrder.model_validate_json(message.body))
                if message.reply_to:
                    reply = aio_pika.Message(answer.model_dump_json().encode(), correlation_id=message.correlation_id)
                    await channel.default_exchange.publish(reply, message.reply_to)
                await message.ack()

            queue = await _declared(job, channel)
            tag = await queue.consume(place)
            yield
            await queue.cancel(tag)

    @asynccontextmanager
    async def publisher(self, job: Job) -> AsyncIterator[Callable[[PlaceOrder], Awaitable[object]]]:
        async with _channel(job) as channel:
            await _declared(job, channel)
            exchange = await _exchange(job, channel)
            yield lambda command: exchange.publish(_message(command), job.service)

    @asynccontextmanager
    async def principal(self, job: Job) -> AsyncIterator[Callable[[PlaceOrder], Awaitable[Receipt]]]:
        waiting: dict[str, asyncio.Future[bytes]] = {}

        async def hear(message: AbstractIncomingMessage) -> None:
            waiting[message.correlation_id or ""].set_result(message.body)

        async with _channel(job) as channel:
            replies = await channel.declare_queue(exclusive=True)
            await replies.consume(hear, no_ack=True)
            exchange = await _exchange(job, channel)

            async def ask(command: PlaceOrder) -> Receipt:
                message = _message(command, reply_to=replies.name)
                answer = waiting[message.correlation_id or ""] = asyncio.get_running_loop().create_future()
                async with asyncio.timeout(120):
                    await exchange.publish(message, job.service)
                    body = await answer
                del waiting[message.correlation_id or ""]
                return Receipt.model_validate_json(body)

            yield ask


@asynccontextmanager
async def _channel(job: Job) -> AsyncIterator[AbstractChannel]:
    connection = await aio_pika.connect_robust(job.amqp_url)
    async with connection, connection.channel(on_return_raises=True) as channel:
        yield channel


async def _exchange(job: Job, channel: AbstractChannel) -> AbstractExchange:
    return await channel.declare_exchange(f"{job.service}.in", aio_pika.ExchangeType.TOPIC, durable=True)


async def _declared(job: Job, channel: AbstractChannel) -> aio_pika.abc.AbstractQueue:
    queue = await channel.declare_queue(job.service, durable=True, arguments=queue_arguments())
    await queue.bind(await _exchange(job, channel), routing_key=job.service)
    return queue


def _message(command: PlaceOrder, reply_to: str | None = None) -> aio_pika.Message:
    return aio_pika.Message(
        command.model_dump_json().encode(),
        content_type="application/json",
        message_id=str(uuid.uuid4()),
        correlation_id=str(uuid.uuid4()),
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        reply_to=reply_to,
    )
