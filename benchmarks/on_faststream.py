"""The benchmark's worker on FastStream: no middlewares, no log lines, persistent messages."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

from faststream.rabbit import Channel, ExchangeType, QueueType, RabbitBroker, RabbitExchange, RabbitQueue
from faststream.rabbit.schemas.queue import QuorumQueueArgs

from benchmarks.jobs import PREFETCH, Job, queue_arguments
from benchmarks.orders import PlaceOrder, Receipt


class OnFastStream:
    @asynccontextmanager
    async def worker(self, job: Job, handle: Callable[[PlaceOrder], Receipt]) -> AsyncIterator[None]:
        broker = _broker(job)

        @broker.subscriber(_queue(job), _exchange(job), channel=Channel(prefetch_count=PREFETCH))
        async def place(command: PlaceOrder) -> Receipt:
            return handle(command)

        async with broker:
            await broker.start()
            yield

    @asynccontextmanager
    async def publisher(self, job: Job) -> AsyncIterator[Callable[[PlaceOrder], Awaitable[object]]]:
        exchange = _exchange(job)
        async with _broker(job) as broker:
            await broker.start()
            queue = await broker.declare_queue(_queue(job))
            await queue.bind(await broker.declare_exchange(exchange), routing_key=job.service)
            yield lambda command: broker.publish(command, job.service, exchange, persist=True)

    @asynccontextmanager
    async def principal(self, job: Job) -> AsyncIterator[Callable[[PlaceOrder], Awaitable[Receipt]]]:
        exchange = _exchange(job)

        async def ask(command: PlaceOrder) -> Receipt:
            answer = await broker.request(command, job.service, exchange, persist=True, timeout=120)
            return Receipt.model_validate(await answer.decode())

        async with _broker(job) as broker:
            await broker.start()
            yield ask


def _broker(job: Job) -> RabbitBroker:
    return RabbitBroker(job.amqp_url, logger=None, default_channel=Channel(on_return_raises=True))


def _queue(job: Job) -> RabbitQueue:
    arguments = {name: value for name, value in queue_arguments().items() if name != "x-queue-type"}
    queue: RabbitQueue = RabbitQueue(
        job.service,
        queue_type=QueueType.QUORUM,
        durable=True,
        arguments=cast("QuorumQueueArgs", arguments),
        routing_key=job.service,
    )
    return queue


def _exchange(job: Job) -> RabbitExchange:
    return RabbitExchange(f"{job.service}.in", type=ExchangeType.TOPIC, durable=True)
