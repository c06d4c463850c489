"""Decodes a delivery's bytes into a typed message, as strictly as untrusted input deserves."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from pydantic import ValidationError

from bus_schema.delegation import OPERATOR_ROLE, is_own, speaks_for
from bus_schema.envelope import CONTENT_TYPE, Envelope, Kind, NotAnEnvelope, explain, from_wire
from bus_schema.identities import owner_of
from bus_schema.messages import Message
from bus_schema.replies import Code
from bus_schema.strict_json import MalformedJson, has_nul
from mindbus.bus.claims import ClaimLost, Claims
from mindbus.bus.permissions import instance_mark
from mindbus.bus.routes import Route, Routes
from mindbus.bus.topology import REQUEUE
from mindbus.bus.transport import Incoming, properties_of

ATTEMPT = "mb-attempt"
ORIGIN = "mb-origin"
HARD_LIMIT_BYTES = 256 * 1024
_COPIED = ("message_id", "type", "correlation_id", "reply_to")
_copied = attrgetter(*_COPIED)


class Unreadable(Exception):
    """This delivery is not a message for this worker; it is dead-lettered with the reason."""

    def __init__(self, code: Code, reason: str, envelope: Envelope | None = None) -> None:
        super().__init__(reason)
        self.code = code
        self.envelope = envelope


@dataclass(frozen=True, slots=True)
class Decoded:
    """A delivery as a typed message, with the route to its handler."""

    envelope: Envelope
    message: Message | Envelope
    route: Route
    attempt: int
    may_operate: bool = True
    # Whether its sender's login, or the gateway, says that an operator asks.
    is_operator: bool = False

    @property
    def is_query(self) -> bool:
        """Whether it changes nothing, so that a duplicate is simply answered again."""
        return self.route.is_query


async def decode(incoming: Incoming, queue: str, routes: Routes, claims: Claims) -> Decoded:
    """Read a delivery. Raises Unreadable."""
    envelope = read_envelope(incoming)
    if has_nul(incoming.body):
        raise Unreadable(Code.INVALID, "contains a NUL character, which not every database can store", envelope)
    _check_way(incoming, envelope, queue)
    rights = _rights_of(incoming, envelope)
    route = routes.find(envelope.type)
    if route is None:
        raise Unreadable(Code.INVALID, f"unknown type {envelope.type}: this service does not take it", envelope)
    if route.receives is None:
        return Decoded(envelope, envelope, route, attempt_of(incoming), *rights)
    data = await data_of(envelope, claims)
    try:
        message = route.receives.model_validate(data)
    except ValidationError as invalid:
        raise Unreadable(Code.INVALID, explain(invalid), envelope) from invalid
    return Decoded(envelope, message, route, attempt_of(incoming), *rights)


def read_envelope(incoming: Incoming) -> Envelope:
    """Read the envelope, which must agree with the AMQP properties. Raises Unreadable."""
    if len(incoming.body) > HARD_LIMIT_BYTES:
        reason = f"{len(incoming.body)} bytes; a body has at most {HARD_LIMIT_BYTES}: send a pointer instead"
        raise Unreadable(Code.TOO_LARGE, reason)
    if incoming.properties.content_encoding:
        raise Unreadable(Code.INVALID, f"content_encoding {incoming.properties.content_encoding} is not accepted")
    if (incoming.properties.content_type or "").split(";")[0] != CONTENT_TYPE:
        raise Unreadable(Code.INVALID, f"content_type must be {CONTENT_TYPE}")
    try:
        envelope = from_wire(incoming.body)
    except NotAnEnvelope as malformed:
        raise Unreadable(Code.INVALID, f"malformed envelope: {malformed}") from malformed
    _check_origin(incoming, envelope)
    expected, properties = _copied(properties_of(envelope)), _copied(incoming.properties)
    if properties != expected:
        name = next(name for name, *values in zip(_COPIED, expected, properties, strict=True) if len({*values}) > 1)
        raise Unreadable(Code.INVALID, f"AMQP {name} does not agree with the envelope", envelope)
    return envelope


async def data_of(envelope: Envelope, claims: Claims) -> dict[str, Any]:
    """The data, brought back from the file store where it was too large to travel. Raises Unreadable."""
    if envelope.dataref is None:
        return envelope.data or {}
    try:
        return await claims.redeem(envelope.dataref)
    except (ClaimLost, MalformedJson) as lost:
        raise Unreadable(Code.FILE_NOT_FOUND, str(lost), envelope) from lost


def attempt_of(incoming: Incoming) -> int:
    """Which attempt this delivery is, from 1; only our own retried copies carry a number."""
    attempt = incoming.headers.get(ATTEMPT)
    return attempt if incoming.exchange == REQUEUE and isinstance(attempt, int) and 1 <= attempt < 1000 else 1


def _rights_of(incoming: Incoming, envelope: Envelope) -> tuple[bool, bool]:
    """Whether its sender may speak as an operator whom the settings name; whether it is an operator's whoever asks."""
    if incoming.origin is None:
        return True, envelope.mbrole == OPERATOR_ROLE
    return incoming.origin.may_operate, incoming.origin.is_operator(envelope.mbrole)


def _check_origin(incoming: Incoming, envelope: Envelope) -> None:
    """Refuse what says that it comes from somebody for whom its sender, whom the broker knows, may not speak."""
    origin = incoming.origin
    if origin is None or origin.is_trusted:
        return
    if not origin.user:
        raise Unreadable(Code.UNAUTHORIZED, "user_id is missing: set it to the user that you are to RabbitMQ", envelope)
    own_replies = f"reply.{envelope.service}.{instance_mark(origin.user)}"
    if envelope.mbreplyto is not None and not envelope.mbreplyto.startswith(own_replies):
        # Whoever else is meant hears nothing of it.
        raise Unreadable(Code.UNAUTHORIZED, f"{origin.user} may not have {envelope.mbreplyto} answered")
    sender, requester = owner_of(envelope.mbrequester), owner_of(envelope.requester)
    if envelope.mbonbehalfof is not None and not is_own(origin.user, sender, envelope.service):
        raise Unreadable(Code.UNAUTHORIZED, f"{origin.user} is not {sender}", envelope)
    # Without `mbonbehalfof`, as senders of an earlier version write it, the requester is somebody else at once.
    if not speaks_for(origin.user, requester, envelope.service):
        reason = f"{origin.user} may not speak for {requester} as the service {envelope.service}"
        raise Unreadable(Code.UNAUTHORIZED, reason, envelope)


def _check_way(incoming: Incoming, envelope: Envelope, queue: str) -> None:
    """Refuse what came by a way that its type does not go, such as a CC header past the target's exchange."""
    if incoming.exchange == REQUEUE:
        is_strange = incoming.origin is not None and not incoming.origin.may_return
        # The broker copies to further keys than the one that it checks.
        if is_strange or incoming.headers.get(ORIGIN) != queue:
            raise Unreadable(Code.INVALID, "a retried copy that this queue has not sent", envelope)
        return
    _, word, domain, name, _ = envelope.type.split(".")
    if envelope.mbkind is Kind.REPLY or incoming.routing_key != f"{word}.{domain}.{name}" or "CC" in incoming.headers:
        raise Unreadable(Code.INVALID, f"{envelope.type} does not come by {incoming.routing_key}", envelope)
