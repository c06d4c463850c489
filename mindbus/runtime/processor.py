"""Processor of the deliveries of one queue: decoding, the pipeline, settlement; and mailboxes, which keep order."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from time import monotonic, perf_counter
from typing import Any

from bus_schema.codes import Code
from bus_schema.envelope import Kind
from mindbus.bus.context import ClockOffsets, MessageContext
from mindbus.bus.decode import Decoded, Unreadable, attempt_of, decode
from mindbus.bus.outcomes import Outcome, address_results, moved_copy
from mindbus.bus.sender import Sender, StreamWriter
from mindbus.bus.telemetry import ENDED, TOOK, WAITED, series
from mindbus.bus.topology import Rung, commands_queue, events_queue, key_of, target_of
from mindbus.bus.transport import Incoming, Outgoing, RawCopy, Transport
from mindbus.bus.worker import CallNext, Middleware, Worker
from mindbus.errors import BusUnavailable, Damaged, Expired, HandlerTooSlow, TemporaryFailure, Unroutable
from mindbus.logs import logger
from mindbus.middleware.errors import ErrorMapping
from mindbus.middleware.pipeline import Authorisation, Deadline, Deduplication, fleet_middleware
from mindbus.spans import handling_span, note_outcome
from mindbus.tasks import end

_ASK_STORE_S, _DECODED_WITHIN_S = 2.0, 900.0


@dataclass(frozen=True)
class Processor:
    """Processes the deliveries of one queue: decode, run the handler within its pipeline, publish, acknowledge.

    The pipeline, from the outside: tracing; error mapping; metrics; deduplication with the unit of work, for a group of
    messages; then for each message authorisation, deadline, the fleet's middleware, the worker's, the handler.
    `in_place` is for queues whose order matters: a message that is to be tried again waits here, not on the ladder.
    """

    worker: Worker
    sender: Sender
    transport: Transport
    ladder: Sequence[Rung]
    queue: str
    at_work: dict[str, "asyncio.Future[int]"]
    in_place: bool = False
    authorisation: Authorisation = field(default_factory=Authorisation)
    clocks: ClockOffsets = field(default_factory=ClockOffsets)

    @cached_property
    def middleware(self) -> tuple[Middleware, ...]:
        """Middleware around each message, outermost first."""
        return (self.authorisation, Deadline(self.clocks), *fleet_middleware(), *self.worker.middleware)

    @cached_property
    def deduplication(self) -> Deduplication:
        """The deduplication and the unit of work of the worker."""
        return Deduplication(self.worker.inbox, self.worker.name)

    @cached_property
    def errors(self) -> ErrorMapping:
        return ErrorMapping(self.worker, self.sender, self.ladder, self.queue, self.clocks)

    async def process(self, incoming: Incoming) -> None:
        """Publish before acking: a crash between the two repeats what was published, never loses it."""
        decoded = await self.decode(incoming)
        if isinstance(decoded, Outcome):
            await self.settle_undecoded(decoded, incoming)
        else:
            await self.execute(decoded, incoming)

    async def decode(self, incoming: Incoming) -> Decoded | Outcome:
        """The decoded message; where a delivery cannot be decoded, its outcome, which is still to be published.

        In place, a store that is away is asked again every few seconds, since others wait behind this message.
        """
        attempt, waited_s, began = attempt_of(incoming), 0.0, monotonic()
        while True:
            try:
                return await decode(incoming, self.queue, self.worker.routes, self.sender.claims)
            except Unreadable as unreadable:
                outcome = await self.errors.dead_letter(incoming, unreadable.code, str(unreadable), unreadable.envelope)
            except OSError as error:
                outcome = await self.errors.retry(TemporaryFailure(f"file store: {error}"), incoming, None, attempt)
            if not (self.in_place and outcome.again_in):
                return outcome
            if monotonic() - began > _DECODED_WITHIN_S:
                reason = f"its data could not be read for {_DECODED_WITHIN_S:g} s, while others waited behind it"
                return await self.errors.dead_letter(incoming, Code.UNAVAILABLE, reason, None)
            pause_s = outcome.again_in.total_seconds()
            await asyncio.sleep(min(pause_s, _ASK_STORE_S))
            waited_s += _ASK_STORE_S
            if waited_s >= pause_s:
                attempt, waited_s = attempt + 1, 0.0

    async def settle_undecoded(self, outcome: Outcome, incoming: Incoming) -> None:
        """Publish the outcome of a delivery that cannot be decoded, then acknowledge it."""
        await self.publish(outcome)
        await incoming.ack()

    async def forward(self, message: Decoded, incoming: Incoming) -> bool:
        """Whether the message belongs to another partition of the worker, in whose queue it is now.

        Its sender, who knows of no partitions or of others, has sent it to this one.
        """
        name, count, key = self.worker.name, self.worker.partitions, key_of(message.message)
        queue = commands_queue(target_of(name, key, count))
        if key is None or queue == self.queue or self.queue == events_queue(name):
            return False
        await self.publish(Outcome("forwarded", copy=moved_copy(incoming, queue)))
        await incoming.ack()
        return True

    async def execute(self, message: Decoded, incoming: Incoming) -> None:
        """Handle a message, in as many attempts as it takes, then settle it."""
        await self._once(message, incoming)
        await incoming.ack()

    async def handle(self, message: Decoded) -> Sequence[Outgoing]:
        """Run the handler within the middleware; the messages that it causes, addressed."""
        context = MessageContext(
            message.envelope,
            self.worker.name,
            message.attempt,
            message=message.message,
            is_operator=message.is_operator,
            may_operate=message.may_operate,
        )
        call: CallNext = partial(self._call, message, context)
        for layer in reversed(self.middleware):
            call = partial(layer, context, call)
        with context:
            return await call()

    async def publish(self, outcome: Outcome, *, is_recorded: bool = False) -> list[Outgoing]:
        """Publish, retrying under the same ids while the bus is away.

        Of a recorded outcome, returns the messages that nobody takes yet; others are tried until somebody does.
        """
        messages: list[Outgoing | RawCopy] = [*outcome.outgoing, *([outcome.copy] if outcome.copy else [])]
        if len(messages) == 1:
            done = [await self._publish(messages[0], is_recorded)]
        else:
            done = await asyncio.gather(*(self._publish(message, is_recorded) for message in messages))
        return [message for message, is_done in zip(outcome.outgoing, done, strict=False) if not is_done]

    async def _once(self, message: Decoded, incoming: Incoming) -> None:
        """A redelivery of a message that is being handled waits for that handling to end.

        A later attempt that arrives before the copy of the earlier one is confirmed is no duplicate of it. One that was
        asked again, since its reply was lost with a connection, is answered again by its recorded outcome.
        """
        while (first := self.at_work.get(message.envelope.id)) is not None:
            await asyncio.wait([first])
            if first.cancelled():
                raise RuntimeError("the first delivery of this message was cut short")
            if first.result() >= message.attempt and message.envelope.mbreplyto is None:
                return
        done = self.at_work[message.envelope.id] = asyncio.get_running_loop().create_future()
        try:
            outcome = await self.outcome_of(message, incoming)
            # Where order matters, nothing may overtake a message that is tried again: it keeps its place, and waits.
            while self.in_place and outcome.again_in:
                await asyncio.sleep(outcome.again_in.total_seconds())
                message = replace(message, attempt=message.attempt + 1)
                outcome = await self.outcome_of(message, incoming)
            await self._settle(message, outcome)
            series(ENDED, self.worker.name, message.envelope.type, outcome.name).inc()
            done.set_result(message.attempt)
        finally:
            del self.at_work[message.envelope.id]
            done.cancel()

    async def _settle(self, message: Decoded, outcome: Outcome) -> None:
        """Publish an outcome; where the inbox has it, note that this is done."""
        inbox, is_recorded = self.worker.inbox, outcome.copy is None and not message.is_query
        unsent = await self.publish(outcome, is_recorded=is_recorded and inbox.publishes)
        if unsent:
            await inbox.postpone(self.worker.name, message.envelope.id, unsent)
        elif is_recorded and outcome.outgoing:
            inbox.mark_published(self.worker.name, message.envelope.id)

    async def outcome_of(self, message: Decoded, incoming: Incoming) -> Outcome:
        """Handle it once within the whole pipeline, tracing and error mapping included. Raises Damaged."""
        with handling_span(message.envelope, self.worker.name, self.queue, message.attempt) as handling:
            outcome = await self._outcome_of(message, incoming)
            note_outcome(handling, outcome.name, outcome.error)
            return outcome

    async def _outcome_of(self, message: Decoded, incoming: Incoming) -> Outcome:
        if message.attempt == 1:
            waited_s = (datetime.now(UTC) - message.envelope.time).total_seconds()
            series(WAITED, self.worker.name, message.envelope.type).observe(max(waited_s, 0.0))
        failure: Exception | None = None
        caused: Mapping[str, Sequence[Outgoing]] = {}
        began = perf_counter()
        try:
            caused = await self.deduplication([message], self.handle)
        except Damaged:
            raise
        except Exception as error:  # noqa: BLE001  # the one place where a handler's bug is caught
            failure = error
        # With the commit of the unit of work; an expired message has not been handled.
        if not isinstance(failure, Expired):
            series(TOOK, self.worker.name, message.envelope.type).observe(perf_counter() - began)
        if failure is None:
            return Outcome("handled", caused[message.envelope.id])
        return replace(await self.errors.outcome_of(failure, incoming, message), error=failure)

    async def _call(self, message: Decoded, context: MessageContext) -> Sequence[Outgoing]:
        route, envelope = message.route, message.envelope
        handler, limit_s = route.handler(self.worker), route.time_limit_s or self.worker.time_limit_s
        limit = asyncio.timeout(limit_s)
        try:
            async with limit:
                if not route.takes_context:
                    returned = await handler(message.message)
                else:
                    async with StreamWriter(self.sender, self.transport, envelope) as writer:
                        context.writer = writer
                        returned = await handler(message.message, context)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise HandlerTooSlow(f"{route.label} did not end within {limit_s:g} s") from error
        return await address_results(returned, self.sender, envelope)

    async def _publish(self, message: Outgoing | RawCopy, is_recorded: bool) -> bool:
        while True:
            try:
                await self.transport.publish(message)
            except Unroutable as unroutable:
                if isinstance(message, Outgoing) and message.envelope.mbkind is Kind.REPLY:
                    logger().debug("nobody waits for the reply", type=message.envelope.type)
                    return True
                logger().error("nobody takes it yet", reason=str(unroutable))
                if is_recorded:
                    return False
                await asyncio.sleep(1)
            except BusUnavailable as unavailable:
                logger().warning("cannot publish, trying on", reason=str(unavailable))
                # A transport that is closed fails without waiting for anything.
                await asyncio.sleep(0)
            else:
                return True


Work = Callable[[], Coroutine[Any, Any, None]]


class Mailboxes:
    """Deliveries of one queue by key; within a key, each waits for the one before it."""

    def __init__(self, processor: Processor, begin: Callable[[Incoming, Work], asyncio.Task[None]]) -> None:
        self._processor, self._begin = processor, begin
        self._arrived: asyncio.Queue[Incoming] = asyncio.Queue()
        self._last: dict[str, asyncio.Task[None]] = {}
        self._is_open = True
        self._sorting = asyncio.create_task(self._sort_arrivals(), name=f"mailboxes of {processor.queue}")

    def deliver(self, incoming: Incoming) -> None:
        """Accept a delivery without blocking."""
        self._arrived.put_nowait(incoming)

    async def close(self) -> None:
        """Start no further delivery; the waiting ones return to the queue, in order, when the consumer closes."""
        self._is_open = False
        await end(self._sorting)

    async def _sort_arrivals(self) -> None:
        while True:
            incoming = await self._arrived.get()
            # One after the other, since the key of a message is known only once it is read.
            await asyncio.wait([self._begin(incoming, partial(self._sort, incoming))])

    async def _sort(self, incoming: Incoming) -> None:
        message = await self._processor.decode(incoming)
        if isinstance(message, Outcome):
            # It has no place among the messages of a key, so nobody waits until the broker has its dead letter.
            self._begin(incoming, partial(self._processor.settle_undecoded, message, incoming))
            return
        if await self._processor.forward(message, incoming):
            return
        key = self._processor.worker.order_key(message.message)
        before = self._last.get(key) if key is not None else None
        task = self._begin(incoming, partial(self._execute, message, incoming, before))
        if key is not None:
            self._last[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))

    async def _execute(self, message: Decoded, incoming: Incoming, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        if self._is_open:
            await self._processor.execute(message, incoming)

    def _forget(self, key: str, done: asyncio.Task[None]) -> None:
        if self._last.get(key) is done:
            del self._last[key]
