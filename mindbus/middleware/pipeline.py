"""The pipeline of middleware that wraps one message, and how a worker or a whole fleet adds its own."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.metadata import entry_points

from bus_schema.access import access_to, may_publish
from bus_schema.codes import Code
from bus_schema.envelope import Kind
from bus_schema.identities import user_of
from bus_schema.messages import Command
from mindbus.bus.context import ClockOffsets, MessageContext
from mindbus.bus.decode import Decoded
from mindbus.bus.inbox import Inbox
from mindbus.bus.outcomes import answering
from mindbus.bus.transport import Outgoing
from mindbus.bus.worker import CallNext, Middleware
from mindbus.errors import Expired, Rejected, TemporaryFailure

GROUP = "mindbus.middleware"


class RetryOn:
    """Raises TemporaryFailure in place of the given exceptions, so that the message is tried again after `delay`."""

    def __init__(self, *errors: type[Exception], delay: timedelta | None = None) -> None:
        self._errors, self._delay = errors, delay

    async def __call__(self, context: MessageContext, call_next: CallNext) -> Sequence[Outgoing]:
        try:
            return await call_next()
        except self._errors as error:
            raise TemporaryFailure(f"{type(error).__name__}: {error}", self._delay) from error


@dataclass(frozen=True, slots=True)
class Deduplication:
    """Handles the messages of a group that the inbox does not know; for the others, repeats the recorded outcomes.

    Queries change nothing, so they are handled again, outside the transaction.
    """

    inbox: Inbox
    consumer: str

    async def __call__(
        self, group: Sequence[Decoded], handle: Callable[[Decoded], Awaitable[Sequence[Outgoing]]]
    ) -> Mapping[str, Sequence[Outgoing]]:
        caused = {message.envelope.id: await handle(message) for message in group if message.is_query}
        changes = {message.envelope.id: message for message in group if not message.is_query}
        if changes:
            recorded = await self.inbox.outcomes_of(self.consumer, [*changes])
            caused |= {each: answering(outcome, changes[each].envelope) for each, outcome in recorded.items()}
        if new := [message_id for message_id in changes if message_id not in caused]:
            async with self.inbox.unit_of_work(self.consumer) as unit:
                effects = {message_id: await handle(changes[message_id]) for message_id in new}
                await unit.record(effects)
            caused |= effects
        return caused


@cache
def fleet_middleware() -> tuple[Middleware, ...]:
    """The middleware of every worker on this machine: the entry points of the group `mindbus.middleware`, by name.

    Each names a class or function that takes nothing and returns a middleware. One that cannot be loaded raises, since
    a fleet must not run without, say, its authorisation.
    """
    points = sorted({(point.name, point.value): point for point in entry_points(group=GROUP)}.items())
    return tuple(point.load()() for _, point in points)


class NotAdmitted(Rejected, code=Code.UNAUTHORIZED):
    """The message is not for whoever sent it; docs/reference/messages.md says for whom each is."""


class Authorisation:
    """Raises NotAdmitted instead of calling the handler of a command, or an event, that its sender may not send.

    `operators` are ids of people, `readers` names of workers that may ask what the fleet's own may; both by commas.
    """

    def __init__(self, operators: str = "local", readers: str = "") -> None:
        self._operators = frozenset(filter(None, map(str.strip, operators.split(","))))
        self._readers = frozenset(filter(None, map(str.strip, readers.split(","))))

    def __call__(self, context: MessageContext, call_next: CallNext) -> Awaitable[Sequence[Outgoing]]:
        operators = self._operators if context.may_operate else frozenset[str]()
        person = user_of(context.requester)
        if context.is_operator and person is not None:
            operators |= {person}
        context.is_operator = person in operators
        envelope = context.envelope
        if envelope.mbkind is Kind.EVENT and not may_publish(envelope.type, envelope.mbrequester):
            raise NotAdmitted(message=f"{envelope.mbrequester} publishes no {envelope.type}")
        command = context.message
        if isinstance(command, Command):
            access = access_to(type(command))
            if not access.admits(command, context.requester, operators, self._readers):
                raise NotAdmitted(message=f"{context.owner} may not send this: it is for {access.told}")
        return call_next()


class Deadline:
    """Raises Expired instead of calling a handler after the deadline; duplicates are recognised before."""

    def __init__(self, clocks: ClockOffsets) -> None:
        self._clocks = clocks

    def __call__(self, context: MessageContext, call_next: CallNext) -> Awaitable[Sequence[Outgoing]]:
        deadline = self._clocks.deadline_of(context.envelope)
        context.clock_offset = self._clocks.note(context.envelope)
        if deadline is not None and deadline <= datetime.now(UTC):
            raise Expired(message=f"its deadline was {deadline.isoformat()}")
        return call_next()
