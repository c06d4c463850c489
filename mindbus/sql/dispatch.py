"""Sending of recorded messages: a full queue holds up no other; what cannot be read is told apart."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import compress

from pydantic import ValidationError
from sqlalchemy import RowMapping

from bus_schema.envelope import Kind
from mindbus.bus.transport import Outgoing, Transport
from mindbus.errors import BusUnavailable, QueueUnavailable, Unroutable
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
    """A round of sending; for a place that takes nothing now, by exchange and key, no more is tried in it.

    A place gets one message first, then at each success one more at a time: of those under way few are refused.
    """

    transport: Transport
    full: dict[tuple[str, str], BusUnavailable] = field(default_factory=dict)
    turns: defaultdict[tuple[str, str], asyncio.Semaphore] = field(
        default_factory=partial(defaultdict, asyncio.Semaphore)
    )

    async def send(self, message: Outgoing) -> bool:
        """Whether somebody takes it, or nobody needs it. Raises BusUnavailable."""
        place = (message.exchange, message.routing_key)
        async with self.turns[place]:
            if place in self.full:
                raise self.full[place]
            is_sent = await self._publish(message, place)
        self.turns[place].release()
        return is_sent

    async def _publish(self, message: Outgoing, place: tuple[str, str]) -> bool:
        try:
            await self.transport.publish(message)
        except Unroutable as unroutable:
            # Nobody waits for this reply any more; a command waits until its service has a queue.
            is_reply = message.envelope.mbkind is Kind.REPLY
            logger().info("nobody takes it", type=message.envelope.type, reason=str(unroutable), dropped=is_reply)
            return is_reply
        except BusUnavailable as error:
            # The next would wait for its confirm as long as this one has.
            self.full[place] = error
            raise
        return True

    async def send_all(self, messages: Iterable[Outgoing]) -> tuple[list[bool], Exception | None]:
        """Whether each was sent, and the worst that kept some from it; none is under way any more."""
        was_sent, failure = list[bool](), None
        for result in await asyncio.gather(*map(self.send, messages), return_exceptions=True):
            if isinstance(result, Exception):
                failure = worse(failure, result)
            elif isinstance(result, BaseException):
                raise result
            was_sent.append(result is True)
        return was_sent, failure

    async def send_rows(self, rows: Sequence[RowMapping]) -> Sent:
        """Send what the rows of an outbox hold."""
        sent, messages = Sent(), dict[int, Outgoing]()
        for row in rows:
            try:
                messages[row["seq"]] = load(row)
            except UNREADABLE as error:
                sent.unreadable.append((row, reason_of(error)))
        was_sent, sent.failure = await self.send_all(messages.values())
        sent.done += compress(messages, was_sent)
        return sent


def worse(one: Exception | None, other: Exception | None) -> Exception | None:
    return other if one is None or (isinstance(one, QueueUnavailable) and other is not None) else one


def reason_of(error: Exception) -> str:
    # Pydantic's own words would quote the message, which may be anybody's.
    return "not an envelope" if isinstance(error, ValidationError) else f"{type(error).__name__}: not an outcome"
