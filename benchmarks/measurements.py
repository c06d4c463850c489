"""The measurements, each with its gate: whoever loses or repeats a message has no number."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import aio_pika

from benchmarks.children import Participant, participant
from benchmarks.jobs import Asked, Handled, Job, Name, Role, Spent, queue_name

# The broker needs a moment to take notice of the last acknowledgements.
_LOOKS = 100
# How long a worker that has just started is left alone before it is weighed.
_SETTLE_S = 1.0

Row = dict[str, float]


class Unsound(Exception):
    """This run lost, repeated or left behind messages, so that its time says nothing."""


@dataclass(frozen=True)
class Measurement:
    """Where and for whom to measure; every one has a queue of its own."""

    amqp_url: str
    data_dir: Path
    contestant: Name
    service: str = ""

    async def end_to_end(self, messages: int) -> Row:
        """From the first publish until the last message is handled, by a worker that was there before."""
        async with self._apart() as apart:
            async with apart._ready("handle", messages) as worker, apart._ready("publish", messages) as publisher:
                published = Spent.model_validate_json(await publisher.result())
                handled = Handled.model_validate_json(await worker.result())
            await apart._check(handled, messages)
        return {
            "end_to_end": messages / (handled.ended_s - published.began_s),
            "end_to_end_cpu_us": (published.cpu_s + handled.cpu_s) / messages * 1e6,
        }

    async def backlog(self, messages: int) -> Row:
        """Publish without a worker; then, from the first message to the last, consume without a publisher."""
        async with self._apart() as apart:
            async with apart._ready("publish", messages) as publisher:
                published = Spent.model_validate_json(await publisher.result())
            async with apart._ready("handle", messages) as worker:
                handled = Handled.model_validate_json(await worker.result())
            await apart._check(handled, messages)
        return {
            "publish": messages / (published.ended_s - published.began_s),
            "publish_cpu_us": published.cpu_s / messages * 1e6,
            "consume": (messages - 1) / (handled.ended_s - handled.began_s),
            "consume_cpu_us": handled.cpu_s / (messages - 1) * 1e6,
        }

    async def requests(self, messages: int) -> Row:
        """How long requests take; before the first one, what the worker weighs."""
        async with self._apart() as apart:
            async with apart._ready("handle", 0) as worker:
                await asyncio.sleep(_SETTLE_S)
                weight = worker.rss_mib()
                async with apart._ready("ask", messages) as principal:
                    asked = Asked.model_validate_json(await principal.result())
                handled = Handled.model_validate_json(await worker.result())
            await apart._check(handled, messages * len(asked.took_ms) + 1)  # one to warm up
        row: Row = {"idle_worker_rss_mib": weight}
        for callers, took_ms in asked.took_ms.items():
            took_ms.sort()
            row[f"request_p50_ms_{callers}"] = took_ms[len(took_ms) // 2]
            row[f"request_p99_ms_{callers}"] = took_ms[int(len(took_ms) * 0.99)]
        return row

    @asynccontextmanager
    async def _apart(self) -> "AsyncIterator[Measurement]":
        """With a queue that nobody used before, and that is gone afterwards."""
        apart = replace(self, service=f"bench_{secrets.token_hex(6)}")
        try:
            yield apart
        finally:
            await apart._clean_up()

    @asynccontextmanager
    async def _ready(self, role: Role, messages: int) -> AsyncIterator[Participant]:
        job = Job(
            contestant=self.contestant,
            role=role,
            amqp_url=self.amqp_url,
            data_dir=self.data_dir,
            service=self.service,
            messages=messages,
        )
        async with participant(job) as child:
            await child.wait_ready()
            yield child

    async def _check(self, handled: Handled, messages: int) -> None:
        """Every message was handled exactly once, nothing is left in the queue. Raises Unsound."""
        distinct = len(set(handled.serials))
        if distinct != messages or len(handled.serials) != messages:
            raise Unsound(f"{Unsound.__doc__} ({len(handled.serials)} handled, {distinct} of {messages} distinct)")
        connection = await aio_pika.connect(self.amqp_url)
        async with connection:
            for _ in range(_LOOKS):
                if not await self._depth(connection):
                    return
                await asyncio.sleep(0.1)
        raise Unsound(f"{Unsound.__doc__} (some are left in the queue)")

    async def _depth(self, connection: aio_pika.abc.AbstractConnection) -> int | None:
        async with connection.channel() as channel:
            queue = await channel.declare_queue(queue_name(self.contestant, self.service), passive=True)
            return queue.declaration_result.message_count

    async def _clean_up(self) -> None:
        """Also what MindBus adds around a queue; to delete what does not exist is no error."""
        name = queue_name(self.contestant, self.service)
        connection = await aio_pika.connect(self.amqp_url)
        async with connection, connection.channel() as channel:
            for queue in (name, f"{name}.dead"):
                await channel.queue_delete(queue)
            for exchange in (f"{self.service}.in", f"mb.cmd.{self.service}", f"mb.evt.{self.service}"):
                await channel.exchange_delete(exchange)
