"""How a delivery ends: what is said because of it, where its copy goes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel

from bus_schema.envelope import Envelope, Kind
from bus_schema.messages import Command, Event, Nothing, message_class
from bus_schema.replies import Code, Reply
from mindbus.bus.decode import ATTEMPT, ORIGIN, attempt_of
from mindbus.bus.handlers import Publish, PublishTo, Send
from mindbus.bus.sender import Sender
from mindbus.bus.topology import DEAD, Rung
from mindbus.bus.transport import Incoming, Outgoing, RawCopy
from mindbus.errors import BusUnavailable, ReplyError, TemporaryFailure

REASON = "mb-reason"
CODE = "mb-code"
DIED_AT = "mb-died-at"
_REASON_CHARS = 2000
_SAID = (Command, Event, Send, Publish, PublishTo)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What to publish before the delivery is acknowledged; with `again_in`, the message has not ended yet."""

    name: str
    outgoing: Sequence[Outgoing] = ()
    copy: RawCopy | None = None
    again_in: timedelta | None = None


async def addressed(returned: Any, sender: Sender, cause: Envelope | None) -> list[Outgoing]:
    """Sort what a handler returned: the command's result to the asker, events to listeners, commands to services."""
    items = list(returned) if isinstance(returned, list | tuple) else [] if returned is None else [returned]
    outgoing = [await _addressed(item, sender) for item in items if isinstance(item, _SAID)]
    if cause is not None and cause.mbkind is Kind.COMMAND:
        # A result that is missing is a bug whether or not somebody asked.
        result = _result(items, cause)
        if cause.mbreplyto is not None:
            outgoing += await answer(sender, cause, Reply(status="ok", result=result.model_dump(mode="json")))
    return outgoing


async def answer(sender: Sender, command: Envelope, reply: Reply) -> list[Outgoing]:
    """The reply, where somebody asked."""
    if command.mbkind is not Kind.COMMAND or command.mbreplyto is None:
        return []
    return [await sender.reply(command, reply)]


def retry_copy(incoming: Incoming, rung: Rung, queue: str, attempt: int, reason: str) -> RawCopy:
    """The same message, to come back to its queue after the rung's delay."""
    headers = {ATTEMPT: attempt, ORIGIN: queue, REASON: reason[:_REASON_CHARS]}
    return RawCopy(rung.queue, queue, incoming.body, incoming.properties, headers)


def dead_copy(incoming: Incoming, service: str, queue: str, code: Code, reason: str) -> RawCopy:
    """The same message, to lie in the service's dead queue until somebody looks."""
    headers = {
        ATTEMPT: attempt_of(incoming),
        ORIGIN: queue,
        CODE: code.value,
        REASON: reason[:_REASON_CHARS],
        DIED_AT: datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return RawCopy(DEAD, service, incoming.body, incoming.properties, headers)


async def _addressed(item: Command[Any] | Event | Send | Publish | PublishTo, sender: Sender) -> Outgoing:
    match item:
        case Send(command, service, trace, step, attempt):
            return await sender.command(command, to=service, trace=trace, step=step, attempt=attempt)
        case Publish(event, trace, step):
            return await sender.event(event, trace=trace, step=step)
        case PublishTo(event, subscriber):
            return await sender.event_for(subscriber, event)
        case Event():
            return await sender.event(item)
    return await sender.command(item)


def _result(items: Iterable[Any], command: Envelope) -> BaseModel:
    wanted = message_class(command.type).wire.result
    for item in items:
        if isinstance(item, wanted):
            return item
    if wanted is Nothing:
        return Nothing()
    raise TypeError(f"the handler of {command.type} returned no {wanted.__name__}")


# A bug seldom mends itself; two more tries tell a race from a mistake.
BUG_ATTEMPTS = 3


def rung_for(attempt: int, ladder: Sequence[Rung], wanted: timedelta | None) -> Rung:
    """The rung to wait on after that attempt: the next one up, or the first that is no shorter than wanted."""
    if wanted is not None:
        return next((rung for rung in ladder if rung.delay >= wanted), ladder[-1])
    return ladder[min(attempt, len(ladder)) - 1]


def is_bug(failure: Exception) -> bool:
    """Whether the handler did not mean to fail like this."""
    expected = isinstance(failure, TemporaryFailure | BusUnavailable)
    return not expected and not (isinstance(failure, ReplyError) and failure.retryable)


def may_try_again(failure: Exception, attempt: int, attempts: int, at: datetime, expiry: datetime | None) -> bool:
    """Whether the budget allows another attempt, starting at `at`, before the asker's deadline."""
    budget = min(attempts, BUG_ATTEMPTS) if is_bug(failure) else attempts
    return attempt < budget and (expiry is None or at < expiry)
