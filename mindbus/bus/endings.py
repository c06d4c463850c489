"""How a delivery ends: what is said because of it, where its copy goes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel

from bus_schema.envelope import Envelope, Kind
from bus_schema.messages import Command, Event, Nothing, message_class
from bus_schema.replies import Code, Reply
from mindbus.bus.handlers import Publish, PublishTo, Send
from mindbus.bus.reading import ATTEMPT, ORIGIN, attempt_of
from mindbus.bus.speaker import Speaker
from mindbus.bus.topology import DEAD, Rung
from mindbus.bus.transport import Incoming, Outgoing, RawCopy

REASON = "mb-reason"
CODE = "mb-code"
DIED_AT = "mb-died-at"
_REASON_CHARS = 2000
_SAID = (Command, Event, Send, Publish, PublishTo)


@dataclass(frozen=True, slots=True)
class Ending:
    """What to publish before the delivery is acknowledged; with `again_in`, the message has not ended yet."""

    name: str
    outgoing: Sequence[Outgoing] = ()
    copy: RawCopy | None = None
    again_in: timedelta | None = None


async def sorted_out(returned: Any, speaker: Speaker, cause: Envelope | None) -> list[Outgoing]:
    """Sort what a handler returned: the command's result to the asker, events to listeners, commands to services."""
    items = list(returned) if isinstance(returned, list | tuple) else [] if returned is None else [returned]
    outgoing = [await _addressed(item, speaker) for item in items if isinstance(item, _SAID)]
    if cause is not None and cause.mbkind is Kind.COMMAND:
        # A result that is missing is a bug whether or not somebody asked.
        result = _result(items, cause)
        if cause.mbreplyto is not None:
            outgoing += await answer(speaker, cause, Reply(status="ok", result=result.model_dump(mode="json")))
    return outgoing


async def answer(speaker: Speaker, command: Envelope, reply: Reply) -> list[Outgoing]:
    """The reply, where somebody asked."""
    if command.mbkind is not Kind.COMMAND or command.mbreplyto is None:
        return []
    return [await speaker.reply(command, reply)]


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


async def _addressed(item: Command[Any] | Event | Send | Publish | PublishTo, speaker: Speaker) -> Outgoing:
    match item:
        case Send(command, service, trace, step, attempt):
            return await speaker.command(command, to=service, trace=trace, step=step, attempt=attempt)
        case Publish(event, trace, step):
            return await speaker.event(event, trace=trace, step=step)
        case PublishTo(event, subscriber):
            return await speaker.event_for(subscriber, event)
        case Event():
            return await speaker.event(item)
    return await speaker.command(item)


def _result(items: Iterable[Any], command: Envelope) -> BaseModel:
    wanted = message_class(command.type).wire.result
    for item in items:
        if isinstance(item, wanted):
            return item
    if wanted is Nothing:
        return Nothing()
    raise TypeError(f"the handler of {command.type} returned no {wanted.__name__}")
