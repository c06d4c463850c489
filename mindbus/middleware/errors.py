"""Error mapping: the one place that decides by an exception's `ending` how the message ends (DESIGN §3)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bus_schema.envelope import Envelope
from bus_schema.replies import Code, Reply
from mindbus.bus.context import ClockOffsets
from mindbus.bus.decode import Decoded
from mindbus.bus.outcomes import Outcome, answer, dead_copy, is_bug, may_try_again, reply_of, retry_copy, rung_for
from mindbus.bus.sender import Sender
from mindbus.bus.topology import Rung
from mindbus.bus.transport import Incoming, Outgoing
from mindbus.bus.worker import Worker
from mindbus.errors import Ending, Expired, MindBusError, Rejected
from mindbus.logs import RepeatedErrors, logger
from mindbus.redaction import without_secrets


@dataclass(frozen=True, slots=True)
class ErrorMapping:
    """Maps what a handler of one queue raised to an outcome: refused, retried or dead-lettered."""

    worker: Worker
    sender: Sender
    ladder: Sequence[Rung]
    queue: str
    clocks: ClockOffsets
    deaths: RepeatedErrors = field(default_factory=lambda: RepeatedErrors("dead-lettered"))

    async def outcome_of(self, error: Exception, incoming: Incoming, message: Decoded) -> Outcome:
        """The outcome of a message whose handling raised."""
        match error:
            case MindBusError(ending=Ending.REFUSE):
                try:
                    return await self._refuse(error, incoming, message)
                except Exception as failure:  # noqa: BLE001  # a refusal that cannot be recorded is tried again
                    error = failure
            case MindBusError(ending=Ending.DEAD_LETTER):
                return await self.dead_letter(incoming, error.code, _text_of(error), message.envelope)
        return await self.retry(error, incoming, message.envelope, message.attempt)

    async def retry(self, error: Exception, incoming: Incoming, envelope: Envelope | None, attempt: int) -> Outcome:
        """Another attempt after a rung of the ladder, or a dead letter where no attempt is left."""
        rung = rung_for(attempt, self.ladder, getattr(error, "delay", None))
        reason = f"{type(error).__name__}: {_text_of(error)}"
        if is_bug(error):
            logger().error("handler failed", worker=self.worker.name, id=incoming.properties.message_id, exc_info=error)
        at = datetime.now(UTC) + rung.delay
        if not may_try_again(error, attempt, self.worker.attempts, at, self.clocks.deadline_of(envelope)):
            code = Code.INTERNAL if is_bug(error) else Code.UNAVAILABLE
            return await self.dead_letter(incoming, code, f"{reason} (attempt {attempt}, the last)", envelope)
        logger().warning("will try again", id=incoming.properties.message_id, after=rung.name, reason=reason)
        copy = retry_copy(incoming, rung, self.queue, attempt + 1, reason)
        return Outcome("retried", copy=copy, again_in=rung.delay)

    async def dead_letter(self, incoming: Incoming, code: Code, reason: str, envelope: Envelope | None) -> Outcome:
        """A copy in the service's dead queue, and an error reply if a reply is expected."""
        self.deaths.log({"id": incoming.properties.message_id}, queue=self.queue, code=code, reason=reason)
        copy = dead_copy(incoming, self.worker.name, self.queue, code, reason)
        replies = await answer(self.sender, envelope, Reply.failed(code, reason, {})) if envelope else ()
        return Outcome("dead", replies, copy)

    async def _refuse(self, error: MindBusError, incoming: Incoming, message: Decoded) -> Outcome:
        envelope = message.envelope
        if isinstance(error, Expired):
            return Outcome(error.code.value, await self._error_reply(error, envelope))
        self._log(error, message)
        if envelope.mbreplyto is None:
            return await self.dead_letter(incoming, error.code, _text_of(error), envelope)
        replies = await self._error_reply(error, envelope)
        if message.route.receives is None or message.is_query:
            return Outcome(error.code.value, replies)
        async with self.worker.inbox.unit_of_work(self.worker.name) as unit:
            await unit.record({envelope.id: replies})
        return Outcome(error.code.value, replies)

    async def _error_reply(self, error: MindBusError, envelope: Envelope) -> Sequence[Outgoing]:
        return await answer(self.sender, envelope, reply_of(error))

    def _log(self, error: MindBusError, message: Decoded) -> None:
        envelope = message.envelope
        fields = {} if isinstance(message.message, Envelope) else dict(message.message)
        about = {name: value for name, value in fields.items() if name.endswith("_id") and isinstance(value, str)}
        logger().warning(
            "refused",
            service=self.worker.name,
            type=envelope.type,
            message_id=envelope.id,
            requester=envelope.requester,
            trace_id=envelope.mbtraceid,
            error=type(error).__name__,
            code=error.code,
            reason=_text_of(error),
            is_denied=isinstance(error, Rejected) and error.is_denied,
            details=error.details,
            about=about,
        )


def _text_of(error: Exception) -> str:
    # Others read it.
    return without_secrets(str(error))
