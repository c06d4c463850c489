"""Names and declarations of all exchanges, queues and bindings."""

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from bus_schema.envelope import Envelope
from bus_schema.messages import Message

EVENTS = "mb.evt"
REPLIES = "mb.reply"
SUBSCRIBERS = "mb.sub"
DEAD = "mb.dead"
# Workers write their dead letters to this one, each under its own name alone; the broker writes to the other.
DEAD_LETTERS = "mb.deadletter"
REQUEUE = "mb.requeue"
UNROUTED = "mb.unrouted"
DELAYS = "mb.delay."
LOST = "mb.q.lost.dead"

# As RabbitMQ 4 has it by itself. Those before have none, and would deliver a message that kills its worker for ever.
DELIVERY_LIMIT = 20
# An operator's policy of a higher priority says otherwise.
EVENTS_KEPT = timedelta(days=10)
DEAD_LETTERS_KEPT = timedelta(days=20)
COMMANDS_MAX = 100_000
COMMANDS_MAX_BYTES = 1 << 30
REPLY_EXPIRES_MS = 600_000
SUBSCRIBER_EXPIRES_MS = 7 * 24 * 3_600_000

_AT_LEAST_ONCE = {
    "x-queue-type": "quorum",
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",
}
# RabbitMQ 4 would drop a message after twenty looks at it.
_UNBOUNDED = {"x-queue-type": "quorum", "x-delivery-limit": 1_000_000}
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class NotARung(ValueError):
    """A rung of the retry ladder is a number with its unit, such as 500ms, 10s, 1m or 2h."""


def _ms(period: timedelta) -> int:
    return int(period.total_seconds() * 1000)


@dataclass(frozen=True, slots=True)
class Exchange:
    """An exchange; all of ours are durable."""

    name: str
    kind: Literal["topic", "direct", "fanout"] = "topic"
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue; durable unless it is exclusive to one connection."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class Binding:
    """From an exchange to a queue, or to an exchange."""

    source: str
    target: str
    key: str
    to_exchange: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """Arguments of all queues whose name fits a pattern; unlike those of a declaration they can be changed."""

    name: str
    pattern: str
    definition: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Body of the management API."""
        return {"pattern": self.pattern, "definition": self.definition, "apply-to": "queues", "priority": 0}


@dataclass(frozen=True, slots=True)
class Topology:
    """Exchanges, queues and bindings to be declared; policies, which the management API takes."""

    exchanges: tuple[Exchange, ...] = ()
    queues: tuple[Queue, ...] = ()
    bindings: tuple[Binding, ...] = ()
    policies: tuple[Policy, ...] = ()

    def __add__(self, other: "Topology") -> "Topology":
        return Topology(
            self.exchanges + other.exchanges,
            self.queues + other.queues,
            self.bindings + other.bindings,
            self.policies + other.policies,
        )


@dataclass(frozen=True, slots=True)
class Rung:
    """One fixed delay of the retry ladder: its TTL is immutable, so it lives in the name."""

    name: str
    delay: timedelta

    @property
    def queue(self) -> str:
        return f"mb.retry.{self.name}"

    @property
    def exchange(self) -> str:
        """The exchange before its queue; a topic one, where each worker may use its own queues' names alone."""
        return f"{DELAYS}{self.name}"


# Of work alone: others keep what is delivered again and again. Events that nobody has taken become dead letters; these
# go for good before the claims that they point at (30 days).
_POLICIES = (
    Policy("mb.commands", r"^mb\.q\.[^.]+(\.[0-9]+)?$", {"delivery-limit": DELIVERY_LIMIT}),
    Policy("mb.events", r"^mb\.q\.[^.]+\.events$", {"delivery-limit": DELIVERY_LIMIT, "message-ttl": _ms(EVENTS_KEPT)}),
    Policy("mb.dead", r"^mb\.q\.[^.]+\.dead$", {"message-ttl": _ms(DEAD_LETTERS_KEPT)}),
)


def rungs_of(ladder: str) -> tuple[Rung, ...]:
    """Read `1s,10s,1m` into rungs, shortest first. Raises NotARung."""
    rungs = []
    for name in filter(None, map(str.strip, ladder.split(","))):
        match = re.fullmatch(r"([1-9][0-9]*)(ms|s|m|h)", name)
        if match is None:
            raise NotARung(f"{NotARung.__doc__} Got: {name}")
        rungs.append(Rung(name, timedelta(seconds=int(match[1]) * _UNITS[match[2]])))
    if not rungs:
        raise NotARung(NotARung.__doc__)
    return tuple(sorted(rungs, key=lambda rung: rung.delay))


def commands_exchange(service: str) -> str:
    """Exchange of the commands to one service, or to a partition of it; writing to it is commanding the service."""
    return f"mb.cmd.{service}"


# Partitions of a service: the first has its name, the others a number behind it; each has an exchange and a queue.
def targets_of(service: str, count: int) -> tuple[str, ...]:
    """Names of the partitions."""
    return (service, *(f"{service}.{number}" for number in range(1, count)))


def target_of(service: str, key: str | None, count: int) -> str:
    """The partition of a key, by CRC-32; what has none goes to the first."""
    return service if key is None or count == 1 else targets_of(service, count)[zlib.crc32(key.encode()) % count]


def service_of_target(target: str) -> str:
    return target.partition(".")[0]


def key_of(message: Message | Envelope) -> str | None:
    """The key that commands are spread by: the user whom one is about, if any."""
    key = getattr(message, "user_id", None)
    return key if isinstance(key, str) else None


def events_exchange(service: str) -> str:
    return f"mb.evt.{service}"


def commands_queue(service: str) -> str:
    return f"mb.q.{service}"


def events_queue(service: str) -> str:
    return f"mb.q.{service}.events"


def dead_queue(service: str) -> str:
    return f"mb.q.{service}.dead"


def reply_queue(key: str) -> str:
    return f"mb.{key}"


def subscriber_queue(key: str) -> str:
    """Name of the durable queue of a subscriber."""
    return f"{SUBSCRIBERS}.{key}"


def service_of(queue: str) -> str:
    return queue.removeprefix("mb.q.").split(".")[0]


def backbone(rungs: Iterable[Rung]) -> Topology:
    """Exchanges and queues shared by all services: events, replies, retries, dead letters."""
    ladder = tuple(rungs)
    return Topology(
        exchanges=(
            Exchange(EVENTS),
            Exchange(REPLIES),
            Exchange(SUBSCRIBERS),
            Exchange(DEAD, "direct"),
            Exchange(DEAD_LETTERS),
            Exchange(UNROUTED, "fanout"),
            # A retry whose queue is gone must not block the rung for the others.
            Exchange(REQUEUE, "direct", {"alternate-exchange": UNROUTED}),
            *(Exchange(rung.exchange) for rung in ladder),
        ),
        queues=(Queue(LOST, _UNBOUNDED), *(_rung_queue(rung) for rung in ladder)),
        bindings=(Binding(UNROUTED, LOST, ""), *(Binding(rung.exchange, rung.queue, "#") for rung in ladder)),
        policies=_POLICIES,
    )


def of_service(
    service: str,
    *,
    takes_commands: bool,
    event_keys: Iterable[str],
    is_ordered: bool = False,
    partitions: int = 1,
) -> Topology:
    """A service's exchanges, plus queues for what it listens to; where order matters, one consumer at a time."""
    keys = tuple(sorted(set(event_keys)))
    topology = Topology(
        exchanges=(Exchange(EVENTS), Exchange(events_exchange(service))),
        bindings=(Binding(events_exchange(service), EVENTS, "#", to_exchange=True),),
    )
    ordering = {"x-single-active-consumer": True} if is_ordered else {}
    if takes_commands:
        bounds = {"x-max-length": COMMANDS_MAX, "x-max-length-bytes": COMMANDS_MAX_BYTES}
        for target in targets_of(service, partitions):
            topology += Topology(exchanges=(Exchange(commands_exchange(target)),))
            topology += _work_queue(service, commands_queue(target), bounds | ordering)
            topology += Topology(bindings=(Binding(commands_exchange(target), commands_queue(target), "cmd.#"),))
    if keys:
        topology += _work_queue(service, events_queue(service), ordering)
        topology += Topology(bindings=tuple(Binding(EVENTS, events_queue(service), key) for key in keys))
    # A service that only publishes needs no queue.
    if takes_commands or keys:
        topology += Topology(exchanges=(Exchange(commands_exchange(service)),))
        dead = dead_queue(service)
        bindings = Binding(DEAD, dead, service), Binding(DEAD_LETTERS, dead, service)
        topology += Topology(queues=(Queue(dead, _UNBOUNDED),), bindings=bindings)
    return topology


def replies_to(key: str, *, exclusive: bool, replicated: bool = False) -> Topology:
    """Queue of the replies to a requester; a durable one outlives a lost connection by ten minutes.

    A replicated one outlives a node of a cluster, too; any other would be away for as long as its node is.
    """
    kept = {"x-expires": REPLY_EXPIRES_MS}
    arguments = kept | _UNBOUNDED if replicated else {} if exclusive else kept
    return Topology(
        exchanges=(Exchange(REPLIES),),
        queues=(Queue(reply_queue(key), arguments, exclusive and not replicated),),
        bindings=(Binding(REPLIES, reply_queue(key), key),),
    )


def of_subscriber(key: str) -> Topology:
    """Durable queue of a subscriber; it expires after a week without a consumer."""
    # A subscriber that is away for so long starts anew; its queue must not block publishers.
    arguments = {"x-expires": SUBSCRIBER_EXPIRES_MS, "x-max-length": COMMANDS_MAX, "x-overflow": "drop-head"}
    queue = subscriber_queue(key)
    return Topology(
        exchanges=(Exchange(SUBSCRIBERS),),
        queues=(Queue(queue, _UNBOUNDED | arguments),),
        bindings=(Binding(SUBSCRIBERS, queue, key),),
    )


def tap(queue: str, pattern: str) -> Topology:
    """Exclusive queue of a temporary subscription to events."""
    return Topology(
        exchanges=(Exchange(EVENTS),),
        queues=(Queue(queue, {}, exclusive=True),),
        bindings=(Binding(EVENTS, queue, pattern),),
    )


def _work_queue(service: str, name: str, bounds: dict[str, Any]) -> Topology:
    letters = {"x-dead-letter-exchange": DEAD, "x-dead-letter-routing-key": service, **_AT_LEAST_ONCE}
    return Topology(queues=(Queue(name, {**letters, **bounds}),), bindings=(Binding(REQUEUE, name, name),))


def _rung_queue(rung: Rung) -> Queue:
    return Queue(rung.queue, {"x-message-ttl": _ms(rung.delay), "x-dead-letter-exchange": REQUEUE, **_AT_LEAST_ONCE})
