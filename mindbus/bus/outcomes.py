"""Outcomes of a delivery: messages to publish, a copy for the retry ladder or the dead letters, the retry budget."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel

from bus_schema.envelope import Envelope, Kind
from bus_schema.messages import Command, Event, Nothing, message_class
from bus_schema.replies import Code, Reply
from mindbus.bus.decode import ATTEMPT, ORIGIN, attempt_of
from mindbus.bus.handlers import Publish, PublishTo, Send
from mindbus.bus.permissions import is_same_participant
from mindbus.bus.routes import PUBLISHABLE
from mindbus.bus.sender import Sender
from mindbus.bus.topology import DEAD_LETTERS, REPLIES, REQUEUE, Rung
from mindbus.bus.transport import USER, Incoming, Outgoing, RawCopy
from mindbus.errors import MindBusError, ReplyError, TemporaryFailure, is_outage
from mindbus.redaction import without_secrets

REASON = "mb-reason"
CODE = "mb-code"
DIED_AT = "mb-died-at"
REPLAYED_BY = "mb-replayed-by"
_REASON_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Outcome:
    """Messages to publish before the delivery is acknowledged; with `again_in`, the message has not ended yet.

    `error` is the exception that led to it, None where the handler returned.
    """

    name: str
    outgoing: Sequence[Outgoing] = ()
    copy: RawCopy | None = None
    again_in: timedelta | None = None
    error: Exception | None = None


async def address_results(returned: object, sender: Sender, cause: Envelope | None) -> list[Outgoing]:
    """Address what a handler returned: the command's result to the requester, events and commands to their exchanges.

    Without a `cause`, as for periodic tasks, there is no result. Raises TypeError for anything that can be neither
    answered nor published, and for a result that is missing, whether or not somebody waits for it.
    """
    items = list(returned) if isinstance(returned, list | tuple) else [] if returned is None else [returned]
    command = cause if cause is not None and cause.mbkind is Kind.COMMAND else None
    expected = message_class(command.type).wire.result if command is not None else None
    result: BaseModel | None = None
    outgoing: list[Outgoing] = []
    for item in items:
        if expected is not None and result is None and isinstance(item, expected):
            result = item
            if not isinstance(item, PUBLISHABLE):
                continue
        elif not isinstance(item, PUBLISHABLE):
            raise TypeError(_unpublishable(item, cause, is_alone=item is returned))
        outgoing.append(await _address(item, sender))
    if command is not None and expected is not None:
        if result is None and expected is not Nothing:
            raise TypeError(f"the handler of {command.type} returned no {expected.__name__}")
        if command.mbreplyto is not None:
            outgoing += await answer(sender, command, Reply.done(result or Nothing()))
    return outgoing


def reply_of(outcome: BaseModel | MindBusError) -> Reply:
    """The reply that says a result or an error."""
    if isinstance(outcome, BaseModel):
        return Reply.done(outcome)
    return Reply.failed(outcome.code, without_secrets(str(outcome)), outcome.details)


def _unpublishable(item: object, cause: Envelope | None, *, is_alone: bool) -> str:
    handler = f"the handler of {cause.type}" if cause is not None else "a task"
    advice = (
        "return the result, an event, a command, Send, Publish or PublishTo; several of them as a list or a tuple"
        if is_alone
        else "a list or tuple holds one result beside events, commands, Send, Publish and PublishTo, nothing else"
    )
    return f"{handler} returned a {type(item).__name__}, which can be neither answered nor published: {advice}"


async def answer(sender: Sender, command: Envelope, reply: Reply) -> list[Outgoing]:
    """The reply to a command, if one is expected."""
    if command.mbkind is not Kind.COMMAND or command.mbreplyto is None:
        return []
    return [await sender.reply(command, reply)]


def answering(recorded: Sequence[Outgoing], command: Envelope) -> list[Outgoing]:
    """Recorded messages, the reply for the instance that asks now: the one that asked first may be gone.

    It has to be an instance of the same participant; a reply is nobody else's.
    """
    key = command.mbreplyto
    return [
        replace(message, routing_key=key)
        if key is not None and message.exchange == REPLIES and is_same_participant(key, message.routing_key)
        else message
        for message in recorded
    ]


def retry_copy(incoming: Incoming, rung: Rung, queue: str, attempt: int, reason: str) -> RawCopy:
    """Copy of a message that returns to its queue after the delay of the rung."""
    headers = {ATTEMPT: attempt, ORIGIN: queue, REASON: reason[:_REASON_CHARS], **_kept_headers(incoming)}
    return RawCopy(rung.exchange, queue, incoming.body, incoming.properties, headers)


def moved_copy(incoming: Incoming, queue: str) -> RawCopy:
    """Copy of a message for another queue of its worker."""
    headers = {ATTEMPT: attempt_of(incoming), ORIGIN: queue, **_kept_headers(incoming)}
    return RawCopy(REQUEUE, queue, incoming.body, incoming.properties, headers)


def dead_copy(incoming: Incoming, service: str, queue: str, code: Code, reason: str) -> RawCopy:
    """Copy of a message for the dead-letter queue of the service."""
    headers = {
        ATTEMPT: attempt_of(incoming),
        ORIGIN: queue,
        CODE: code.value,
        REASON: reason[:_REASON_CHARS],
        DIED_AT: datetime.now(UTC).isoformat(timespec="seconds"),
        **_kept_headers(incoming),
    }
    return RawCopy(DEAD_LETTERS, service, incoming.body, incoming.properties, headers)


def _kept_headers(incoming: Incoming) -> dict[str, Any]:
    """Headers that a copy keeps: the first sender, and who has replayed it, which only our own copies say."""
    replayed_by = incoming.headers.get(REPLAYED_BY) if incoming.exchange == REQUEUE else None
    kept = {REPLAYED_BY: replayed_by} if replayed_by else {}
    return kept | ({USER: incoming.origin.user} if incoming.origin is not None else {})


async def _address(item: Command[Any] | Event | Send | Publish | PublishTo, sender: Sender) -> Outgoing:
    match item:
        case Send(command, service, trace, step, attempt):
            return await sender.command(command, to=service, trace=trace, step=step, attempt=attempt)
        case Publish(event, trace, step, cause):
            return await sender.event(event, trace=trace, step=step, cause=cause)
        case PublishTo(event, subscriber):
            return await sender.event_for(subscriber, event)
        case Event():
            return await sender.event(item)
    return await sender.command(item)


# A bug seldom mends itself; two more tries tell a race from a mistake.
BUG_ATTEMPTS = 3


def rung_for(attempt: int, ladder: Sequence[Rung], delay: timedelta | None) -> Rung:
    """The rung to wait on after that attempt: the next one up, or the first that is no shorter than wanted."""
    if delay is not None:
        return next((rung for rung in ladder if rung.delay >= delay), ladder[-1])
    return ladder[min(attempt, len(ladder)) - 1]


def is_bug(failure: Exception) -> bool:
    """Whether trying again helps little: no TemporaryFailure, no error reply that may pass, no outage."""
    may_pass = isinstance(failure, TemporaryFailure) or (isinstance(failure, ReplyError) and failure.retryable)
    return not may_pass and not is_outage(failure)


def may_try_again(failure: Exception, attempt: int, attempts: int, at: datetime, expiry: datetime | None) -> bool:
    """Whether the budget allows another attempt, starting at `at`, before the asker's deadline."""
    budget = min(attempts, BUG_ATTEMPTS) if is_bug(failure) else attempts
    return attempt < budget and (expiry is None or at < expiry)
