"""What has really become of every operation: entries read from the databases, events from a queue of the ledger's own.

None of it passes through the handlers, or through the faulty links.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import aio_pika
import sqlalchemy
from aio_pika.abc import AbstractIncomingMessage

from bus_schema.envelope import Envelope
from mindbus.broker_url import nodes_of
from mindbus.logs import logger

_QUEUE = "chaos.ledger"
_AGAIN_S = 0.3
_CONNECTS_WITHIN_S = 5.0
_PREFETCH = 500


@dataclass(frozen=True)
class Entries:
    """A query that gives keys, each as often as its effect has happened."""

    name: str
    url: str
    query: str

    def count(self) -> Counter[str]:
        """Raises SQLAlchemyError where the database is away."""
        engine = sqlalchemy.create_engine(self.url.replace("+aiosqlite", ""), poolclass=sqlalchemy.NullPool)
        try:
            with engine.connect() as connection:
                return Counter(key for (key,) in connection.execute(sqlalchemy.text(self.query)))
        finally:
            engine.dispose()


# Events by type: which field names the operation that they are the effect of.
EVENTS = {
    "mb.evt.process.completed.v1": ("completed", "run_id"),
    "mb.evt.artifact.registered.v1": ("registered", "trace_id"),
    "mb.evt.dialogue.message_received.v1": ("received", "message_id"),
    "mb.evt.dialogue.message_sent.v1": ("sent", "in_reply_to"),
    "mb.evt.kem.stored.v1": ("stored", "kem_id"),
}
_STEP_STARTED = "mb.evt.process.step_started.v1"


class Ledger:
    """Counts effects by their name and the operation's key."""

    def __init__(self, amqp_url: str, entries: Sequence[Entries]) -> None:
        # Of a cluster the next node, where one is away.
        self._nodes, self._entries = cycle(nodes_of(amqp_url)), entries
        self._counts: dict[str, Counter[str]] = {}
        self._heard: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        # Attempts of the only step of a run.
        self._attempts: dict[str, set[int]] = defaultdict(set)
        self._listening: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Return when no event is missed any more."""
        async with await aio_pika.connect(next(self._nodes)) as connection, connection.channel() as channel:
            queue = await channel.declare_queue(_QUEUE, durable=True, arguments={"x-queue-type": "quorum"})
            await channel.declare_exchange("mb.evt", "topic", durable=True)
            for kind in ("process", "artifact", "dialogue", "kem"):
                await queue.bind("mb.evt", f"evt.{kind}.#")
        self._listening = asyncio.create_task(self._listen(), name="ledger")

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)

    async def read(self) -> None:
        """Look at the databases; one that is away is looked at the next time."""
        for entries in self._entries:
            with suppress(sqlalchemy.exc.SQLAlchemyError):
                self._counts[entries.name] = await asyncio.to_thread(entries.count)

    def count(self, effect: str, key: str) -> int:
        """How often the effect has happened, as of the last look; an event that was sent again is the same event."""
        if effect in self._counts:
            return self._counts[effect][key]
        heard = len(self._heard[effect][key])
        if effect == "registered":
            # An attempt that was given up, and all the same came to its end, has an artifact of its own.
            return heard - min(max(heard - 1, 0), max(len(self._attempts[key]) - 1, 0))
        return heard

    async def _listen(self) -> None:
        while True:
            try:
                async with await aio_pika.connect(
                    next(self._nodes), heartbeat=4, timeout=_CONNECTS_WITHIN_S
                ) as connection:
                    channel = await connection.channel()
                    await channel.set_qos(_PREFETCH)
                    queue = await channel.get_queue(_QUEUE, ensure=False)
                    async with queue.iterator() as messages:
                        async for message in messages:
                            self._hear(message)
                            await message.ack()
            except (
                OSError,
                TimeoutError,
                aio_pika.exceptions.AMQPError,
                RuntimeError,
                asyncio.CancelledError,
            ) as error:
                current = asyncio.current_task()
                if current is not None and current.cancelling():
                    raise
                logger().debug("the ledger listens again", reason=repr(error))
            await asyncio.sleep(_AGAIN_S)

    def _hear(self, message: AbstractIncomingMessage) -> None:
        known = EVENTS.get(message.type or "")
        if known is None and message.type != _STEP_STARTED:
            return
        envelope = Envelope.model_validate_json(message.body)
        data: Mapping[str, Any] = envelope.data or {}
        if known is None:
            self._attempts[str(data["run_id"])].add(int(data["attempt"]))
            return
        effect, field = known
        self._heard[effect][str(data.get(field))].add(envelope.id)
