"""One delivery, start to finish."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from bus_schema.envelope import Envelope, Kind
from bus_schema.messages import Query
from bus_schema.replies import Code, Reply
from mindbus.bus.context import MessageContext
from mindbus.bus.decode import Decoded, Unreadable, attempt_of, decode
from mindbus.bus.outcomes import Outcome, addressed, answer, dead_copy, is_bug, may_try_again, retry_copy, rung_for
from mindbus.bus.sender import Sender, StreamWriter
from mindbus.bus.telemetry import ENDED, handling_span, series
from mindbus.bus.topology import Rung
from mindbus.bus.transport import Incoming, Outgoing, RawCopy, Transport
from mindbus.bus.worker import Worker
from mindbus.errors import BusUnavailable, PermanentFailure, Rejected, TemporaryFailure, Unroutable
from mindbus.logs import logger


@dataclass(frozen=True)
class Processor:
    """Carries the deliveries of one queue to its worker's handlers, settles them.

    `in_place` is for queues whose order matters: a message that is to be tried again waits here, not on the ladder.
    """

    worker: Worker
    sender: Sender
    transport: Transport
    ladder: Sequence[Rung]
    queue: str
    at_work: dict[str, "asyncio.Future[int]"]
    in_place: bool = False

    async def process(self, incoming: Incoming) -> None:
        """Publish before acking: a crash between the two repeats what was said, never loses it."""
        job = await self.decode(incoming)
        if job is not None:
            await self.execute(job, incoming)

    async def decode(self, incoming: Incoming) -> Decoded | None:
        """Read it; what cannot be read has had its ending already."""
        attempt = attempt_of(incoming)
        while True:
            try:
                return await decode(incoming, self.queue, self.worker.routes, self.sender.claims)
            except Unreadable as unreadable:
                ending = await self._dead_letter(incoming, unreadable.code, str(unreadable), unreadable.envelope)
            except OSError as away:
                ending = await self._retry(incoming, None, TemporaryFailure(f"file store: {away}"), attempt)
            if not (self.in_place and ending.again_in):
                break
            await asyncio.sleep(ending.again_in.total_seconds())
            attempt += 1
        await self._publish(ending)
        await incoming.ack()
        return None

    async def execute(self, job: Decoded, incoming: Incoming) -> None:
        """Handle it, however often it takes, then settle it."""
        await self._once(job, incoming)
        await incoming.ack()

    async def _once(self, job: Decoded, incoming: Incoming) -> None:
        """A message that comes again while it is at work waits for that work to end.

        A later attempt, back before the earlier one has heard that its copy is safe, is no duplicate of it.
        """
        while (first := self.at_work.get(job.envelope.id)) is not None:
            await asyncio.wait([first])
            if first.cancelled():
                raise RuntimeError("the first delivery of this message was cut short")
            if first.result() >= job.attempt:
                return
        done = self.at_work[job.envelope.id] = asyncio.get_running_loop().create_future()
        try:
            ending = await self._end(job, incoming)
            # Where order matters, nothing may overtake a message that is tried again: it keeps its place, and waits.
            while self.in_place and ending.again_in:
                await asyncio.sleep(ending.again_in.total_seconds())
                job = replace(job, attempt=job.attempt + 1)
                ending = await self._end(job, incoming)
            await self._publish(ending)
            series(ENDED, self.worker.name, job.envelope.type, ending.name).inc()
            done.set_result(job.attempt)
        finally:
            del self.at_work[job.envelope.id]
            done.cancel()

    async def _end(self, job: Decoded, incoming: Incoming) -> Outcome:
        """Run the handler; whatever becomes of it is an ending."""
        expiry = _deadline_of(job.envelope)
        try:
            if expiry is not None and expiry <= datetime.now(UTC) and not await self._was_handled(job):
                return await self._answer_no(job, Rejected(Code.EXPIRED, f"its deadline was {expiry.isoformat()}"))
            with handling_span(job.envelope, self.worker.name):
                return Outcome("handled", await self._handle(job))
        except Rejected as no:
            try:
                return await self._refuse(job, incoming, no)
            except Exception as trouble:  # noqa: BLE001  # a refusal that cannot be recorded is tried again
                return await self._retry(incoming, job.envelope, trouble, job.attempt)
        except PermanentFailure as never:
            return await self._dead_letter(incoming, never.code, str(never), job.envelope)
        except Exception as failure:  # noqa: BLE001  # the one place where a handler's bug is caught
            return await self._retry(incoming, job.envelope, failure, job.attempt)

    async def _was_handled(self, job: Decoded) -> bool:
        """Whether it was done in time: what comes again late is still answered as it was."""
        return await self.worker.inbox.outcome_of(self.worker.name, job.envelope.id) is not None

    async def _handle(self, job: Decoded) -> Sequence[Outgoing]:
        """What there is to publish; a duplicate gets what the first one caused."""
        with MessageContext(job.envelope, self.worker.name, job.attempt) as context:
            if job.route.receives is not None and issubclass(job.route.receives, Query):
                return await self._call(job, context)
            inbox = self.worker.inbox
            stored = await inbox.outcome_of(self.worker.name, job.envelope.id)
            if stored is not None:
                return stored
            async with inbox.entry(self.worker.name, job.envelope.id) as entry:
                outgoing = await self._call(job, context)
                await entry.record(outgoing)
            return () if inbox.publishes else outgoing

    async def _call(self, job: Decoded, context: MessageContext) -> Sequence[Outgoing]:
        method = getattr(self.worker, job.route.method)
        if not job.route.wants_handling:
            return await addressed(await method(job.message), self.sender, job.envelope)
        async with StreamWriter(self.sender, self.transport, job.envelope) as voice:
            context.voice = voice.say
            returned = await method(job.message, context)
        return await addressed(returned, self.sender, job.envelope)

    async def _refuse(self, job: Decoded, incoming: Incoming, no: Rejected) -> Outcome:
        logger().info("refused", type=job.envelope.type, id=job.envelope.id, code=no.code, reason=str(no))
        if job.envelope.mbreplyto is None:
            return await self._dead_letter(incoming, no.code, str(no), job.envelope)
        ending = await self._answer_no(job, no)
        if job.route.receives is None or issubclass(job.route.receives, Query):
            return ending
        async with self.worker.inbox.entry(self.worker.name, job.envelope.id) as entry:
            await entry.record(ending.outgoing)
        return Outcome(ending.name) if self.worker.inbox.publishes else ending

    async def _answer_no(self, job: Decoded, no: Rejected) -> Outcome:
        return Outcome(no.code.value, await answer(self.sender, job.envelope, _error(no.code, str(no), no.details)))

    async def _retry(self, incoming: Incoming, envelope: Envelope | None, failure: Exception, attempt: int) -> Outcome:
        rung = rung_for(attempt, self.ladder, getattr(failure, "delay", None))
        reason = f"{type(failure).__name__}: {failure}"
        if is_bug(failure):
            logger().exception("handler failed", worker=self.worker.name, id=incoming.properties.message_id)
        at = datetime.now(UTC) + rung.delay
        if not may_try_again(failure, attempt, self.worker.attempts, at, _deadline_of(envelope)):
            code = Code.INTERNAL if is_bug(failure) else Code.UNAVAILABLE
            return await self._dead_letter(incoming, code, f"{reason} (attempt {attempt}, the last)", envelope)
        logger().warning("will try again", id=incoming.properties.message_id, after=rung.name, reason=reason)
        copy = retry_copy(incoming, rung, self.queue, attempt + 1, reason)
        return Outcome("retried", copy=copy, again_in=rung.delay)

    async def _dead_letter(self, incoming: Incoming, code: Code, reason: str, envelope: Envelope | None) -> Outcome:
        logger().error("dead-lettered", queue=self.queue, id=incoming.properties.message_id, code=code, reason=reason)
        copy = dead_copy(incoming, self.worker.name, self.queue, code, reason)
        replies = await answer(self.sender, envelope, _error(code, reason, {})) if envelope else ()
        return Outcome("dead", replies, copy)

    async def _publish(self, ending: Outcome) -> None:
        """Keep trying under the same ids: while the bus is away, there is nobody to give the message back to."""
        messages: list[Outgoing | RawCopy] = [*ending.outgoing, *([ending.copy] if ending.copy else [])]
        while messages:
            results = await asyncio.gather(*map(self._try_to_publish, messages))
            messages = [message for message, was_sent in zip(messages, results, strict=True) if not was_sent]

    async def _try_to_publish(self, message: Outgoing | RawCopy) -> bool:
        try:
            await self.transport.publish(message)
        except Unroutable as unroutable:
            if isinstance(message, Outgoing) and message.envelope.mbkind is Kind.REPLY:
                logger().debug("nobody waits for the reply", type=message.envelope.type)
                return True
            logger().error("nobody takes it yet", reason=str(unroutable))
            await asyncio.sleep(1)
            return False
        except BusUnavailable as unavailable:
            logger().warning("cannot publish, trying on", reason=str(unavailable))
            return False
        return True


def _error(code: Code, message: str, details: dict[str, object]) -> Reply:
    return Reply(status="error", code=code, retryable=code.retryable, message=message, details=details)


def _deadline_of(envelope: Envelope | None) -> datetime | None:
    """A command's deadline; an event stays true however late it is heard."""
    return envelope.expirytime if envelope is not None and envelope.mbkind is Kind.COMMAND else None
