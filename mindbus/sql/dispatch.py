"""Sending of recorded messages: a full queue holds up no other; what cannot be read is told apart."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from pydantic import ValidationError
from sqlalchemy import RowMapping

from bus_schema.envelope import Kind
from mindbus.bus.transport import Outgoing, Transport
from mindbus.errors import QueueUnavailable, Unroutable
from mindbus.logs import logger
from mindbus.sql.tables import load

# Pydantic's ValidationError and JSONDecodeError are ValueErrors.
UNREADABLE = (ValueError, TypeError, KeyError)


@dataclass
class Sent:
    """Of a batch of the outbox: numbers of the rows to delete, those set aside with the reason."""

    done: list[int] = field(default_factory=list)
    unreadable: list[tuple[RowMapping, str]] = field(default_factory=list)
    failure: Exception | None = None


@dataclass(frozen=True)
class Sending:
    """A round of sending; for a place that was full or leaderless, by exchange and key, no more is tried in it.

    A place gets one message first, then at each success one more at a time: of those under way few are refused.
    """

    transport: Transport
    full: dict[tuple[str, str], str] = field(default_factory=dict)
    turns: defaultdict[tuple[str, str], asyncio.Semaphore] = field(
        default_factory=partial(defaultdict, asyncio.Semaphore)
    )

    async def send(self, message: Outgoing) -> bool:
        """Whether somebody takes it, or nobody needs it. Raises BusUnavailable."""
        place = (message.exchange, message.routing_key)
        async with self.turns[place]:
            if place in self.full:
                raise QueueUnavailable(self.full[place])
            is_sent = await self._publish(message, place)
        self.turns[place].release()
        return is_sent

    async def _publish(self, message: Outgoing, place: tuple[str, str]) -> bool:
        try:
            await self.transport.publish(message)
        except QueueUnavailable as error:
            self.full[place] = str(error)
            raise
        except Unroutable as unroutable:
            # Nobody waits for this reply any more; a command waits until its service has a queue.
            is_reply = message.envelope.mbkind is Kind.REPLY
            logger().info("nobody takes it", type=message.envelope.type, reason=str(unroutable), dropped=is_reply)
            return is_reply
        return True

    async def send_rows(self, rows: Sequence[RowMapping]) -> Sent:
        """Send what the rows of an outbox hold."""
        sent, messages = Sent(), dict[int, Outgoing]()
        for row in rows:
            try:
                messages[row["seq"]] = load(row)
            except UNREADABLE as error:
                sent.unreadable.append((row, reason_of(error)))
        results = await asyncio.gather(*map(self.send, messages.values()), return_exceptions=True)
        for seq, result in zip(messages, results, strict=True):
            if isinstance(result, Exception):
                sent.failure = worse(sent.failure, result)
            elif isinstance(result, BaseException):
                raise result
            elif result:
                sent.done.append(seq)
        return sent


def worse(one: Exception | None, other: Exception | None) -> Exception | None:
    return other if one is None or (isinstance(one, QueueUnavailable) and other is not None) else one


def reason_of(error: Exception) -> str:
    # Pydantic's own words would quote the message, which may be anybody's.
    return "not an envelope" if isinstance(error, ValidationError) else f"{type(error).__name__}: not an outcome"
