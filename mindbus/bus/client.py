"""The bus for programs: send, request, publish, subscribe."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Self, TypeVar, Unpack, cast, overload

from pydantic import BaseModel, ValidationError

from bus_schema.envelope import Envelope, Kind, explain
from bus_schema.identities import owner_of
from bus_schema.messages import Command, Event
from bus_schema.replies import Code, Reply, TextPart
from mindbus.bus.decode import Unreadable, data_of, read_envelope
from mindbus.bus.sender import Coordinates, Sender, in_time
from mindbus.bus.subscriptions import EventSubscription, StandingSubscription, WantedEvents
from mindbus.bus.telemetry import PUBLISHED, series
from mindbus.bus.topology import (
    commands_exchange,
    of_subscriber,
    replies_to,
    reply_queue,
    service_of_target,
    subscriber_queue,
    targets_of,
)
from mindbus.bus.transport import Consumer, Incoming, Outgoing, Transport
from mindbus.errors import BusUnavailable, NoReply, ReplyError
from mindbus.logs import logger

_CLOCKS_DIFFER = timedelta(seconds=2)
ResultT = TypeVar("ResultT", bound=BaseModel)
EventT = TypeVar("EventT", bound=Event)
ItemT = TypeVar("ItemT")


class Replies:
    """Replies to one participant's requests, received on one queue."""

    def __init__(self, transport: Transport, sender: Sender, *, exclusive: bool) -> None:
        self._transport, self._sender = transport, sender
        self.is_exclusive = exclusive
        self._topology = replies_to(sender.reply_key, exclusive=exclusive, replicated=transport.is_cluster)
        self._waiting: dict[str, tuple[str, asyncio.Queue[Envelope | None]]] = {}
        self._consumer: Consumer | None = None

    async def expect(self, command: Outgoing) -> "asyncio.Queue[Envelope | None]":
        """Queue of the replies to a command, from its target alone; begins to consume the reply queue.

        None says that the consumer has begun anew, so that a reply may have been lost in between.
        """
        await self.begin().wait_ready()
        target = service_of_target(command.exchange.removeprefix(commands_exchange("")))
        return self._waiting.setdefault(command.envelope.id, (target, asyncio.Queue()))[1]

    def begin(self) -> Consumer:
        """The consumer of the reply queue, which begins with the first call."""
        if self._consumer is None:
            queue = reply_queue(self._sender.reply_key)
            # One that is lost with its connection is asked for again, so that none needs an acknowledgement.
            self._consumer = self._transport.consume(self._topology, queue, None, self._deliver, self._tell_all)
        return self._consumer

    def forget(self, command_id: str) -> None:
        """Stop expecting replies to a command; late ones are ignored."""
        self._waiting.pop(command_id, None)

    async def close(self) -> None:
        if self._consumer is not None:
            await self._consumer.close()

    def _tell_all(self) -> None:
        for _, replies in self._waiting.values():
            replies.put_nowait(None)

    def _deliver(self, incoming: Incoming) -> None:
        try:
            envelope = read_envelope(incoming)
            target, waiting = self._waiting.get(envelope.causationid or "", ("", None))
            if envelope.mbkind is Kind.REPLY and waiting is not None:
                if envelope.service == target:
                    waiting.put_nowait(envelope)
                else:
                    logger().warning("reply of another than was asked", asked=target, by=envelope.service)
        except Unreadable as unreadable:
            logger().warning("unreadable reply", reason=str(unreadable))


class Client:
    """A participant on the bus, under its `identity`."""

    def __init__(self, transport: Transport, sender: Sender, replies: Replies, request_timeout_s: float = 30.0) -> None:
        self._transport, self._sender, self._replies = transport, sender, replies
        self._request_timeout_s = request_timeout_s
        # A clock that is ahead by more is why a service takes a request for expired.
        self.clocks_differ = _CLOCKS_DIFFER

    @property
    def identity(self) -> str:
        """The requester of what it sends, with instance."""
        return self._sender.identity

    @property
    def owner(self) -> str:
        """The identity without its instance."""
        return owner_of(self._sender.identity)

    def acting_as(self, identity: str, service: str | None = None, *, is_operator: bool = False) -> "Client":
        """A client of another identity on this connection; an agent's instance is added.

        A worker acts for whom the allow-list names; `is_operator` says that they are one, which receivers believe of
        the gateway alone. Raises NotDelegated.
        """
        sender = self._sender.acting_as(identity, service, is_operator=is_operator)
        return Client(self._transport, sender, self._replies, self._request_timeout_s)

    def targets_of(self, service: str) -> tuple[str, ...]:
        """The partitions of a service, for whoever has to tell something to each: names for `to`."""
        return targets_of(service, self._sender.partitions.get(service, 1))

    async def send(
        self,
        command: Command[Any],
        *,
        to: str | None = None,
        deadline: datetime | None = None,
        **where: Unpack[Coordinates],
    ) -> str:
        """Send a command, confirmed by the broker, and return its id. Raises BusUnavailable, Unroutable."""
        outgoing = await self._sender.command(command, to=to, deadline=deadline, **where)
        await self._publish(outgoing)
        return outgoing.envelope.id

    async def request(
        self,
        command: Command[ResultT],
        *,
        to: str | None = None,
        timeout_s: float | None = None,
        **where: Unpack[Coordinates],
    ) -> ResultT:
        """Send a command and wait for its result. Raises ReplyError on an error reply, NoReply at the deadline."""
        reply = await self.ask(command, to=to, timeout_s=timeout_s, **where)
        return cast("ResultT", result_of(reply, command.wire.result))

    async def ask(
        self,
        command: Command[Any],
        *,
        to: str | None = None,
        timeout_s: float | None = None,
        **where: Unpack[Coordinates],
    ) -> Reply:
        """Send a command and wait for its reply, an error included. Raises NoReply at the deadline."""
        async with contextlib.aclosing(self._replies_to(command, to, timeout_s, where)) as replies:
            async for reply in replies:
                if reply.status != "partial":
                    return reply
        raise AssertionError("unreachable: the deadline ends it")

    async def stream(
        self,
        command: Command[ResultT],
        *,
        to: str | None = None,
        timeout_s: float | None = None,
        **where: Unpack[Coordinates],
    ) -> AsyncIterator[str | ResultT]:
        """Send a command and stream its reply: parts of the text as they come, then the result.

        A part is a `TextPart`: where it restarts, all parts before it are void. Raises as `request` does.
        """
        has_text = False
        async with contextlib.aclosing(self._replies_to(command, to, timeout_s, where)) as replies:
            async for reply in replies:
                if reply.status != "partial":
                    yield cast("ResultT", result_of(reply, command.wire.result))
                    return
                result = reply.result or {}
                text = str(result.get("text", ""))
                # The first part of any handling restarts the text.
                yield TextPart(text, restarts=has_text and bool(result.get("restart")))
                has_text = has_text or bool(text)

    async def _replies_to(
        self, command: Command[Any], to: str | None, timeout_s: float | None, where: Coordinates
    ) -> AsyncGenerator[Reply]:
        timeout_s = timeout_s or self._request_timeout_s
        ends_at = asyncio.get_running_loop().time() + timeout_s
        outgoing = await self._sender.command(command, to=to, wants_reply=True, deadline=in_time(timeout_s), **where)
        command_id, is_corrected = outgoing.envelope.id, False
        try:
            async with asyncio.timeout_at(ends_at):
                replies = await self._replies.expect(outgoing)
                await self._publish(outgoing)
            while True:
                async with asyncio.timeout_at(ends_at):
                    envelope = await self._next_reply(replies, outgoing)
                reply = Reply.model_validate(await data_of(envelope, self._sender.claims))
                ahead = envelope.time - datetime.now(UTC)
                if reply.code is not Code.EXPIRED or is_corrected or ahead < self.clocks_differ:
                    yield reply
                    continue
                # By the clock of the service, which is ahead: there is time left, so it is asked again by that.
                is_corrected, again = True, Coordinates(**where | {"message_id": command_id})
                deadline = in_time(ends_at - asyncio.get_running_loop().time()) + ahead
                outgoing = await self._sender.command(command, to=to, wants_reply=True, deadline=deadline, **again)
                await self._publish(outgoing)
        except TimeoutError:
            raise NoReply(command.wire.type, timeout_s) from None
        finally:
            self._replies.forget(command_id)

    async def _next_reply(self, replies: "asyncio.Queue[Envelope | None]", outgoing: Outgoing) -> Envelope:
        """The next reply to a command, which is sent again whenever one may have been lost."""
        while (envelope := await replies.get()) is None:
            # Under the same id, so that it is answered as it was, or would have been.
            with contextlib.suppress(BusUnavailable):
                await self._publish(outgoing)
        return envelope

    async def publish(self, event: Event, **where: Unpack[Coordinates]) -> str:
        """Publish an event, confirmed by the broker, and return its id. Raises BusUnavailable."""
        outgoing = await self._sender.event(event, **where)
        await self._publish(outgoing)
        return outgoing.envelope.id

    @overload
    def subscribe(
        self, events: type[EventT], *, trace: str | None = None, on_gap: Callable[[], None] | None = None
    ) -> "EventSubscription[EventT]": ...
    @overload
    def subscribe(
        self, events: str, *, trace: str | None = None, on_gap: Callable[[], None] | None = None
    ) -> "EventSubscription[Envelope]": ...
    def subscribe(
        self, events: type[Event] | str, *, trace: str | None = None, on_gap: Callable[[], None] | None = None
    ) -> "EventSubscription[Any]":
        """Subscribe to events from now on: of a class, typed; or of a pattern such as `process.*`, as raw envelopes.

        Events published while the connection is lost are missed; only a worker's queue keeps them. `on_gap` is called
        once there is a connection again: read anew then what the events are about.
        """
        if not (isinstance(events, str) or issubclass(events, Event)):
            raise TypeError(f"{events.__name__} is not an event; commands are received by workers alone")
        key = f"evt.{events}" if isinstance(events, str) else events.wire.routing_key
        wanted = WantedEvents(key, None if isinstance(events, str) else events, trace)
        who = self._sender.reply_key.removeprefix("reply.")
        return EventSubscription(self._transport, self._sender.claims, who, wanted, on_gap)

    async def keep_queue(self, subscriber: str) -> str:
        """Declare the durable queue of a subscriber and return its name. Raises BusUnavailable."""
        await self._transport.declare(of_subscriber(subscriber))
        return subscriber_queue(subscriber)

    async def drop_queue(self, subscriber: str) -> None:
        """Delete the queue of a subscriber with its messages. Raises BusUnavailable."""
        await self._transport.remove(subscriber_queue(subscriber))

    def standing_subscription(self, subscriber: str) -> "StandingSubscription":
        """Events in the durable queue of a subscriber; each is acknowledged when the next is requested."""
        return StandingSubscription(self._transport, self._sender.claims, subscriber)

    def begin_listening(self) -> None:
        """Begin to consume replies in the background, so that the first request does not wait for their queue.

        Only where the queue goes with the connection: that of a worker that never asks would stay behind.
        """
        if self._replies.is_exclusive:
            self._replies.begin()

    async def stop_listening(self) -> None:
        """Stop consuming replies; the transport stays open."""
        await self._replies.close()

    async def close(self) -> None:
        await self.stop_listening()
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def _publish(self, outgoing: Outgoing) -> None:
        await self._transport.publish(outgoing)
        series(PUBLISHED, outgoing.envelope.type).inc()


def result_of(reply: Reply, expected: type[ResultT]) -> ResultT:
    """The result in a reply. Raises ReplyError on an error reply, or where it holds something else."""
    if reply.status == "error":
        raise ReplyError(reply.code or Code.INTERNAL, reply.message, reply.details)
    try:
        return expected.model_validate(reply.result or {})
    except ValidationError as invalid:
        raise ReplyError(Code.INTERNAL, f"unreadable result: {explain(invalid)}") from invalid
