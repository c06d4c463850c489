"""Dead letters: listing, replay, deletion."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import aio_pika
import aiormq.exceptions
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random

from bus_schema.envelope import Envelope, NotAnEnvelope, from_wire
from bus_schema.replies import Code
from mindbus.bus.decode import ATTEMPT, ORIGIN
from mindbus.bus.outcomes import CODE, DIED_AT, REASON, REPLAYED_BY
from mindbus.bus.queue_moves import admin_copy
from mindbus.bus.topology import LOST, REQUEUE, dead_queue, service_of
from mindbus.bus.topology_admin import admin_channel, user_of
from mindbus.errors import BusUnavailable, MindBusError

# An exclusive queue, as temporary as its connection, so that a lock never outlives its reader.
_LOCK = "mb.tap.deadletters"
_GIVEN_BACK_WITHIN_S = 2.0
_LOOK_AGAIN_S = 0.02


class CannotReplay(MindBusError, code=Code.CONFLICT):
    """The queue that this message comes from is gone; start its worker once, or drop the message."""


class DeadLettersInUse(BusUnavailable):
    """Somebody else is reading or moving these dead letters; try again in a moment."""


# A reader that finds another at work looks again after some hundredths of a second, for 10 s.
_IN_USE, _GIVE_UP, _WAIT = retry_if_exception_type(DeadLettersInUse), stop_after_delay(10), wait_random(0.02, 0.1)


@dataclass(frozen=True)
class DeadLetter:
    """A message that could not be handled, with the reason; `body` is as it came."""

    message_id: str
    type: str
    service: str
    origin: str
    code: str
    reason: str
    attempt: int
    died_at: str
    requester: str
    trace_id: str
    # Who has sent it back before, when it has died again.
    replayed_by: str
    body: bytes


class DeadLetters:
    """The dead queues of one broker; every method takes messages one by one and returns those that stay.

    One reader of a queue at a time: what another holds is in no count, and would be neither listed nor moved.
    Raises DeadLettersInUse after 10 s.
    """

    def __init__(self, amqp_url: str) -> None:
        self._url = amqp_url

    async def look(self, service: str, limit: int = 50) -> list[DeadLetter]:
        """The oldest dead letters of a service; they stay where they are."""
        seen: list[AbstractIncomingMessage] = []
        async with self._alone(service) as channel:
            async for message in _messages(channel, dead_queue(service)):
                seen.append(message)
                if len(seen) == limit:
                    break
            if seen:
                await _give_back(channel, dead_queue(service), seen)
        return [_read(message, service) for message in seen]

    async def replay(self, service: str, chosen: Callable[[DeadLetter], bool], by: str) -> list[DeadLetter]:
        """Send the chosen ones back to where they failed, as first attempts. Raises CannotReplay."""
        return await self._take(service, chosen, replayed_by=by)

    async def replay_edited(self, service: str, message_id: str, body: bytes, by: str) -> list[DeadLetter]:
        """Send one back with another body, an envelope under its id. Raises CannotReplay, NotAnEnvelope."""
        edited = from_wire(body)

        def is_it(letter: DeadLetter) -> bool:
            return letter.message_id == message_id

        if edited.id != message_id:
            raise CannotReplay("An edited message keeps its id.")
        return await self._take(service, is_it, replayed_by=by, body=body)

    async def drop(self, service: str, chosen: Callable[[DeadLetter], bool]) -> list[DeadLetter]:
        return await self._take(service, chosen, replayed_by=None)

    async def _take(
        self,
        service: str,
        chosen: Callable[[DeadLetter], bool],
        replayed_by: str | None,
        body: bytes | None = None,
    ) -> list[DeadLetter]:
        letters: list[DeadLetter] = []
        others: list[AbstractIncomingMessage] = []
        async with self._alone(service) as channel:
            async for message in _messages(channel, dead_queue(service)):
                letter = _read(message, service)
                if not chosen(letter):
                    others.append(message)
                    continue
                if replayed_by is not None:
                    # Of what was lost, the queue that it was meant for says whose copies are believed.
                    own = service_of(letter.origin) if dead_queue(service) == LOST else service
                    copy = admin_copy(message, user_of(self._url), own, _fresh(letter, replayed_by))
                    copy.body = message.body if body is None else body
                    await _send_back(channel, copy, letter.origin)
                await message.ack()
                letters.append(letter)
            if others:
                await _give_back(channel, dead_queue(service), others)
        return letters

    @asynccontextmanager
    async def _alone(self, service: str) -> AsyncIterator[AbstractChannel]:
        """A channel for as long as no other reader of that dead queue has one."""
        async with AsyncExitStack() as stack:

            async def enter() -> AbstractChannel:
                return await stack.enter_async_context(_locked_channel(self._url, service))

            yield await AsyncRetrying(retry=_IN_USE, stop=_GIVE_UP, wait=_WAIT, reraise=True)(enter)


@asynccontextmanager
async def _locked_channel(amqp_url: str, service: str) -> AsyncIterator[AbstractChannel]:
    """A channel of the one connection that owns the lock, a queue of its own. Raises DeadLettersInUse."""
    async with admin_channel(amqp_url) as channel:
        try:
            await channel.declare_queue(f"{_LOCK}.{service}", exclusive=True)
        except aiormq.exceptions.ChannelLockedResource as error:
            raise DeadLettersInUse(DeadLettersInUse.__doc__ or "") from error
        yield channel


async def _messages(channel: AbstractChannel, queue_name: str) -> AsyncIterator[AbstractIncomingMessage]:
    """The messages that are in the queue now, each once."""
    queue = await channel.declare_queue(queue_name, passive=True)
    for _ in range(queue.declaration_result.message_count or 0):
        message = await queue.get(no_ack=False, fail=False)
        if message is None:
            return
        yield message


async def _give_back(channel: AbstractChannel, queue_name: str, seen: Sequence[AbstractIncomingMessage]) -> None:
    """Requeue the messages and wait until the queue has them, unless another consumer takes them."""
    await seen[-1].nack(multiple=True, requeue=True)
    with suppress(TimeoutError):
        async with asyncio.timeout(_GIVEN_BACK_WITHIN_S):
            queue = await channel.declare_queue(queue_name, passive=True)
            while (queue.declaration_result.message_count or 0) < len(seen):
                await asyncio.sleep(_LOOK_AGAIN_S)
                queue = await channel.declare_queue(queue_name, passive=True)


def _fresh(letter: DeadLetter, by: str) -> dict[str, Any]:
    """Headers of a first attempt at the queue where the message failed."""
    return {ORIGIN: letter.origin, ATTEMPT: 1, REPLAYED_BY: by}


async def _send_back(channel: AbstractChannel, copy: aio_pika.Message, origin: str) -> None:
    try:
        await channel.declare_queue(origin, passive=True)
    except aio_pika.exceptions.ChannelNotFoundEntity as error:
        raise CannotReplay(f"{CannotReplay.__doc__} ({origin})") from error
    exchange = await channel.get_exchange(REQUEUE, ensure=False)
    await exchange.publish(copy, origin, timeout=10)


def _read(message: AbstractIncomingMessage, service: str) -> DeadLetter:
    headers: dict[str, Any] = dict(message.headers)
    envelope = _envelope(message.body)
    # Ours says why; the broker's own dead letters (a crash loop, a retry without a queue) have x-death alone.
    death: dict[str, Any] = next(iter(headers.get("x-death") or []), {})
    crashed = death.get("reason") == "delivery_limit"
    reason = (
        "the worker died on it again and again" if crashed else f"dead-lettered by the broker: {death.get('reason')}"
    )
    return DeadLetter(
        message_id=message.message_id or "",
        type=message.type or "",
        service=service,
        origin=str(headers.get(ORIGIN) or death.get("queue") or ""),
        code=str(headers.get(CODE) or Code.INTERNAL),
        reason=str(headers.get(REASON) if CODE in headers else reason),
        attempt=int(headers.get(ATTEMPT) or 1),
        died_at=str(headers.get(DIED_AT) or death.get("time") or ""),
        requester=envelope.requester if envelope else "",
        trace_id=(envelope.mbtraceid or "") if envelope else "",
        replayed_by=str(headers.get(REPLAYED_BY) or ""),
        body=message.body,
    )


def _envelope(body: bytes) -> Envelope | None:
    try:
        return from_wire(body)
    except NotAnEnvelope:
        return None
