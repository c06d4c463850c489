"""Interface of the bus to a broker."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from bus_schema.delegation import OPERATOR_ROLE, client_identity, is_operator_by, may_operate
from bus_schema.envelope import Envelope
from mindbus.bus.topology import DEAD, REQUEUE, Topology


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message with its address; `body` is the envelope as bytes, within the size limit.

    A transient one is not written to disk.
    """

    exchange: str
    routing_key: str
    envelope: Envelope
    body: bytes
    mandatory: bool = True
    transient: bool = False


@dataclass(frozen=True, slots=True)
class RawCopy:
    """A message passed on with body and properties unchanged; our headers replace the broker's."""

    exchange: str
    routing_key: str
    body: bytes
    properties: "Properties"
    headers: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Properties:
    """AMQP properties copied from the envelope, for operators."""

    message_id: str | None = None
    type: str | None = None
    content_type: str | None = None
    content_encoding: str | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    app_id: str | None = None
    user_id: str | None = None


# Header of a copy: the user who first sent the message.
USER = "mb-user"
# The broker's user of whoever owns the installation: may speak for anybody.
ADMIN = "mindbus"


@dataclass(frozen=True, slots=True)
class Origin:
    """Broker's user who first sent a message, empty if unknown; `is_trusted`: who may speak for anybody."""

    user: str
    is_trusted: bool = False
    # Of what came back to a queue: whether its receiver or the administrator has sent it there.
    may_return: bool = True

    @property
    def may_operate(self) -> bool:
        """Whether an operator whom the message names as its requester has an operator's rights."""
        return self.is_trusted or may_operate(self.user)

    def is_operator(self, role: str | None) -> bool:
        """Whether the message is an operator's: by its login, or by its `mbrole` where that is believed."""
        return (self.is_trusted and role == OPERATOR_ROLE) or is_operator_by(self.user, role)


@dataclass(frozen=True, slots=True)
class Receiver:
    """Participant that receives: the broker's user that it is there, its name among the services."""

    user: str
    service: str

    @property
    def shares_user(self) -> bool:
        """Whether participants share the user, so that it tells nothing of them, and declares all that they need."""
        return client_identity(self.user) is None and self.user != self.service

    def origin_of(self, user: str, exchange: str, headers: Callable[[], dict[str, Any]]) -> Origin:
        """The first sender of a message that a user has published, which the broker has verified.

        A copy that was tried again or replayed names it in a header, believed of the receiver and the administrator.
        """
        may_return = user in (self.user, ADMIN)
        # Only the broker writes to `DEAD`.
        if exchange in (REQUEUE, DEAD) and may_return:
            user = str(headers().get(USER) or user)
        return Origin(user, user == ADMIN or (user == self.user and self.shares_user), may_return)


class Incoming(Protocol):
    """One delivery: settle it once, by `ack` or by `requeue`."""

    @property
    def body(self) -> bytes: ...
    @property
    def exchange(self) -> str: ...
    @property
    def routing_key(self) -> str: ...
    @property
    def headers(self) -> dict[str, Any]: ...
    @property
    def properties(self) -> Properties: ...
    @property
    def origin(self) -> Origin | None:
        """First sender, as the broker has verified; None in memory, where nobody verifies."""

    async def ack(self) -> None:
        """Take it off the queue; after a lost connection this does nothing, the broker delivers it again."""

    async def requeue(self) -> None:
        """Give it back untouched, for another consumer."""


class Consumer(Protocol):
    """A consumer that reconnects by itself."""

    @property
    def ready(self) -> bool:
        """Whether the broker delivers to it just now."""

    async def wait_ready(self) -> None: ...

    async def wait_refused(self) -> None:
        """Wait until the broker has refused the queue, or one of its bindings; it is asked again all the same."""

    async def pause(self) -> None:
        """Take no further deliveries; those at hand can still be settled."""

    async def close(self) -> None: ...


class Transport(Protocol):
    """A broker: RabbitMQ, or its in-memory double."""

    @property
    def shares_user(self) -> bool:
        """Whether participants share a user of RabbitMQ, so that each makes what it needs."""

    @property
    def is_cluster(self) -> bool:
        """Whether it has several nodes, so that what must last is kept on more than one."""

    async def publish(self, message: Outgoing | RawCopy) -> None:
        """Returns once the broker has confirmed. Raises BusUnavailable, or Unroutable for a mandatory message."""

    async def declare(self, topology: Topology) -> None:
        """Make sure that all of it exists."""

    async def require(self, topology: Topology) -> None:
        """Check that what an administrator makes has been made. Raises TopologyMissing, BusUnavailable."""

    async def remove(self, queue: str) -> None:
        """Delete a queue with its messages; it need not exist. Raises BusUnavailable."""

    def consume(
        self,
        topology: Topology,
        queue: str,
        prefetch: int | None,
        deliver: Callable[[Incoming], None],
        on_begin: Callable[[], None] | None = None,
    ) -> Consumer:
        """Deliver from `queue`, re-declaring `topology` whenever the connection is new; `deliver` must not block.

        Without a `prefetch` everything is delivered at once and counts as acknowledged: what is lost is lost.
        `on_begin` is called each time before the first delivery, so again after a pause.
        """

    def waiting(self, queue: str) -> AsyncGenerator[Incoming]:
        """Messages that wait in a queue just now, each once; those not acknowledged go back when it is closed.

        None where there is no such queue. Raises BusUnavailable.
        """

    async def close(self) -> None: ...


def properties_of(envelope: Envelope, user_id: str | None = None) -> Properties:
    """The copies, one rule per property: a reply's `correlation_id` is the command's id, elsewhere the flow's."""
    is_reply = envelope.mbkind == "reply"
    return Properties(
        message_id=envelope.id,
        type=envelope.type,
        content_type="application/cloudevents+json",
        correlation_id=envelope.causationid if is_reply else envelope.correlationid,
        reply_to=envelope.mbreplyto,
        app_id=envelope.service,
        user_id=user_id,
    )
