"""Sender: stamps and addresses the messages of one participant; a stream writer for partial answers."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Self, TypedDict, Unpack

from bus_schema.delegation import CLIENTS, may_act_for
from bus_schema.envelope import MAX_HOPS, Envelope, Kind
from bus_schema.identities import owner_of, worker_of
from bus_schema.ids import derived, uuid7
from bus_schema.messages import Cause, Command, Event
from bus_schema.replies import Code, Reply, restarts
from mindbus.bus.claims import Claims
from mindbus.bus.context import current_message
from mindbus.bus.topology import REPLIES, SUBSCRIBERS, commands_exchange, events_exchange, key_of, target_of
from mindbus.bus.transport import Outgoing, Transport
from mindbus.errors import BusUnavailable, PermanentFailure, Rejected, Unroutable
from mindbus.logs import logger
from mindbus.spans import Parent, current_parent, sending_span
from mindbus.tasks import end


class NoTarget(ValueError):
    """This command can go to several services; say which with `to=`."""


class NotDelegated(Rejected, code=Code.UNAUTHORIZED):
    """This service may not act for that identity; docs/how-to/access.md says who acts for whom."""


class Coordinates(TypedDict, total=False):
    """Coordinates of a message; those left out are taken from the message being handled.

    A message sent again under an explicit `message_id` has effect once. `cause` gives the story and the hops.
    """

    trace: str | None
    step: str | None
    attempt: int | None
    message_id: str | None
    cause: Cause | None


def require_fields(given: Mapping[str, object], kind: Any) -> None:
    """Raises TypeError for fields that a TypedDict lacks or requires: type checkers see them, `**options` does not."""
    known: frozenset[str] = kind.__required_keys__ | kind.__optional_keys__
    if unknown := given.keys() - known:
        raise TypeError(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    if missing := kind.__required_keys__ - given.keys():
        raise TypeError(f"{', '.join(sorted(missing))} must be given")


@dataclass(frozen=True)
class Sender:
    """A participant's name on the bus; `identity` is the requester of its messages.

    Where it asks on behalf of somebody else, `principal` is the participant's own identity. Replies go to `reply_key`,
    whatever the identity.
    """

    service: str
    instance: str
    identity: str
    reply_key: str
    claims: Claims
    max_body_bytes: int = 64 * 1024
    principal: str | None = None
    role: Literal["operator"] | None = None
    partitions: Mapping[str, int] = field(default_factory=dict)

    def acting_as(self, identity: str, service: str | None, *, is_operator: bool = False) -> Self:
        """A sender in another name, as one of the allow-list. Raises NotDelegated."""
        if identity.startswith("agent.") and identity.count(".") == 1:
            identity = f"{identity}.{self.instance}"
        service = service or self.service
        context = current_message()
        at_hand, requester = (context.message, context.requester) if context else (None, None)
        if not may_act_for(service, identity, at_hand, requester):
            raise NotDelegated(message=f"{service} may not act for {owner_of(identity)}")
        is_own = service in CLIENTS or worker_of(identity) == service
        principal = None if is_own else self.principal or self.identity
        role: Literal["operator"] | None = "operator" if is_operator else None
        return replace(self, identity=identity, service=service, principal=principal, role=role)

    @property
    def source(self) -> str:
        return f"/mb/{self.service}/{self.instance}"

    async def command(
        self,
        command: Command[Any],
        *,
        to: str | None = None,
        wants_reply: bool = False,
        deadline: datetime | None = None,
        **where: Unpack[Coordinates],
    ) -> Outgoing:
        """Address a command. Raises NoTarget, ClaimTooLarge."""
        if not isinstance(command, Command):
            raise TypeError(f"{type(command).__name__} is not a command; events are published")
        target = to or command.wire.service
        if target is None:
            raise NoTarget(f"{NoTarget.__doc__} ({command.wire.type})")
        with sending_span(command.wire.type, self.service):
            envelope = self._stamp(
                Kind.COMMAND,
                command.wire.type,
                where,
                expirytime=deadline,
                mbreplyto=self.reply_key if wants_reply else None,
                data=command.model_dump(mode="json", exclude_unset=True),
            )
            partition = target_of(target, key_of(command), self.partitions.get(target, 1))
            return await self._outgoing(commands_exchange(partition), command.wire.routing_key, envelope)

    async def event(self, event: Event, **where: Unpack[Coordinates]) -> Outgoing:
        """Address an event; it may have no listener yet."""
        if not isinstance(event, Event):
            raise TypeError(f"{type(event).__name__} is not an event; commands are sent or requested")
        return await self._event(event, events_exchange(self.service), event.wire.routing_key, where)

    async def event_for(self, subscriber: str, event: Event) -> Outgoing:
        """Address an event to one subscriber, whose queue may be gone."""
        return await self._event(event, SUBSCRIBERS, subscriber, {})

    async def _event(self, event: Event, exchange: str, routing_key: str, where: Coordinates) -> Outgoing:
        with sending_span(event.wire.type, self.service):
            envelope = self._stamp(Kind.EVENT, event.wire.type, where, data=event.model_dump(mode="json"))
            return await self._outgoing(exchange, routing_key, envelope, mandatory=False)

    async def reply(self, command: Envelope, reply: Reply, part: int = 0) -> Outgoing:
        """Answer a command; its id is derived, so that a duplicate is answered with the same reply.

        A part of an answer, counted from 1, is transient.
        """
        envelope = Envelope(
            id=derived(command.id, self.service, "reply", *([part] if part else [])),
            source=self.source,
            type=command.type.replace("mb.cmd.", "mb.rpl.", 1),
            time=datetime.now(UTC),
            traceparent=command.traceparent,
            correlationid=command.correlationid,
            causationid=command.id,
            mbkind=Kind.REPLY,
            mbrequester=self.principal or self.identity,
            mbtraceid=command.mbtraceid,
            mbhops=min(command.mbhops + 1, MAX_HOPS),
            data=reply.model_dump(mode="json", exclude_defaults=True) | {"status": reply.status},
        )
        outgoing = await self._outgoing(REPLIES, command.mbreplyto or "", envelope)
        return replace(outgoing, transient=True) if part else outgoing

    def _stamp(self, kind: Kind, wire_type: str, where: Coordinates, **attributes: Any) -> Envelope:
        require_fields(where, Coordinates)
        context = current_message()
        cause = context.envelope if context else None
        if context is not None and context.hops > MAX_HOPS:
            raise PermanentFailure(f"{MAX_HOPS} hops from its beginning: the flow runs in a circle", Code.INVALID)
        account = where.get("cause")
        own = Parent(account.traceparent, account.tracestate) if account and account.traceparent else None
        parent = own or current_parent(cause)
        message_id = where.get("message_id") or (context.next_id(wire_type) if context else str(uuid7()))
        return Envelope(
            id=message_id,
            source=self.source,
            type=wire_type,
            time=datetime.now(UTC),
            traceparent=parent.traceparent,
            tracestate=parent.tracestate,
            correlationid=account.correlation_id if account else cause.correlationid if cause else message_id,
            causationid=cause.id if cause else None,
            mbkind=kind,
            mbrequester=self.principal or self.identity,
            mbonbehalfof=self.identity if self.principal else None,
            mbrole=self.role,
            mbtraceid=where.get("trace") or (cause.mbtraceid if cause else None),
            mbstepid=where.get("step") or (cause.mbstepid if cause else None),
            mbattempt=where.get("attempt") or (cause.mbattempt if cause else None),
            mbhops=min(account.hops, MAX_HOPS) if account else context.hops if context else 0,
            **attributes,
        )

    async def _outgoing(
        self, exchange: str, routing_key: str, envelope: Envelope, *, mandatory: bool = True
    ) -> Outgoing:
        body = envelope.to_wire()
        if len(body) > self.max_body_bytes:
            dataref = await self.claims.deposit(envelope.data or {})
            envelope = envelope.model_copy(update={"data": None, "dataref": dataref})
            body = envelope.to_wire()
        return Outgoing(exchange, routing_key, envelope, body, mandatory)


def in_time(timeout_s: float) -> datetime:
    """The moment `timeout_s` seconds from now."""
    return datetime.now(UTC) + timedelta(seconds=timeout_s)


PARTS_PER_S = 15
# A reply queue is away while its owner reconnects.
_ASKER_AWAY_S = 5.0


class StreamWriter:
    """Gathers text into at most fifteen parts a second; a part may get lost, the result holds the whole text.

    Text is sent within a fifteenth of a second. The first part says that the text begins, since an earlier handling of
    the command may have sent some. Leave the block before the result is sent, so that no part follows it.
    """

    def __init__(self, sender: Sender, transport: Transport, command: Envelope) -> None:
        self._sender, self._transport, self._command = sender, transport, command
        self._unsent = ""
        self._begins = True
        self._parts = 0
        self._sending: asyncio.Task[None] | None = None
        self._is_leaving = asyncio.Event()
        self._unroutable_since: float | None = None

    @property
    def asker_left(self) -> bool:
        """Whether parts have found no reply queue for longer than a reconnection takes."""
        since = self._unroutable_since
        return since is not None and asyncio.get_running_loop().time() - since >= _ASKER_AWAY_S

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        self._is_leaving.set()
        if self._sending is not None:
            if error is not None:
                await end(self._sending)
            else:
                await self._sending

    async def write(self, text: str) -> None:
        """Queue a part of the text; parts that follow closely are sent together, a `TextPart` may restart the text."""
        if restarts(text):
            self._unsent, self._begins = "", True
        elif not text:
            return
        self._unsent += text
        if self._command.mbreplyto is not None and (self._sending is None or self._sending.done()):
            self._sending = asyncio.create_task(self._send(), name="stream writer")
            # The first part need not wait until the writer pauses.
            await asyncio.sleep(0)

    async def _send(self) -> None:
        while self._unsent or (self._begins and self._parts):
            result = {"text": self._unsent, "restart": True} if self._begins else {"text": self._unsent}
            self._unsent, self._begins = "", False
            self._parts += 1
            part = Reply(status="partial", result=result)
            try:
                await self._transport.publish(await self._sender.reply(self._command, part, part=self._parts))
                self._unroutable_since = None
            except Unroutable:
                self._unroutable_since = self._unroutable_since or asyncio.get_running_loop().time()
            except BusUnavailable as unavailable:
                logger().debug("part not sent", reason=str(unavailable))
            with suppress(TimeoutError):
                async with asyncio.timeout(1 / PARTS_PER_S):
                    await self._is_leaving.wait()
