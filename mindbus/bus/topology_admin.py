"""Keeps broker and code together: apply, compare, prune, migrate."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import aio_pika
import aiormq.exceptions
from aio_pika.abc import AbstractChannel, AbstractExchange, AbstractIncomingMessage
from yarl import URL

from bus_schema.replies import Code
from mindbus.bus.decode import ORIGIN
from mindbus.bus.rabbit_link import declarations
from mindbus.bus.topology import REQUEUE, Queue, Topology
from mindbus.bus.transport import ADMIN, USER
from mindbus.errors import BusUnavailable, MindBusError
from mindbus.management import Management, QueueState

# Queues that live and die with their clients, or wait for them, are nobody's to prune.
_TEMPORARY_PREFIXES = ("mb.reply.", "mb.tap.", "mb.sub.")
_MOVING = ".moving"


class StillInUse(MindBusError, code=Code.CONFLICT):
    """This queue has consumers; stop its worker first, so that nothing is handled while messages move."""


@dataclass(frozen=True)
class Difference:
    """One way in which the broker is not as the code says."""

    kind: str
    name: str
    detail: str = ""


@asynccontextmanager
async def admin_channel(amqp_url: str) -> AsyncIterator[AbstractChannel]:
    """A channel with confirms on a connection of its own. Raises BusUnavailable."""
    try:
        connection = await aio_pika.connect(amqp_url, timeout=10)
        async with connection, connection.channel(publisher_confirms=True, on_return_raises=True) as channel:
            yield channel
    except (aiormq.exceptions.AMQPError, aio_pika.exceptions.AMQPError, OSError, TimeoutError) as error:
        raise BusUnavailable(f"{BusUnavailable.__doc__} ({error!r})") from error


def user_of(amqp_url: str) -> str:
    """Name of the user that an AMQP address logs in."""
    return URL(amqp_url).user or "guest"


async def compare(management: Management, topology: Topology) -> list[Difference]:
    """Differences between the declared and the actual `mb.` names: missing, different, unknown."""
    queues = {queue.name: queue for queue in await management.queues()}
    exchanges = {row["name"]: row for row in await management.exchanges()}
    bound = {(row["source"], row["destination"], row["routing_key"]) for row in await management.bindings()}
    differences: list[Difference] = []
    for queue in _unique(topology):
        differences += _queue_differences(queue, queues.get(queue.name))
    for exchange in {exchange.name: exchange for exchange in topology.exchanges}.values():
        if exchange.name not in exchanges:
            differences.append(Difference("missing exchange", exchange.name))
        elif exchanges[exchange.name]["type"] != exchange.kind:
            differences.append(
                Difference("different exchange", exchange.name, f"is {exchanges[exchange.name]['type']}")
            )
    for binding in dict.fromkeys(topology.bindings):
        if (binding.source, binding.target, binding.key) not in bound:
            differences.append(Difference("missing binding", binding.target, f"{binding.source} · {binding.key}"))
    known_queues = {queue.name for queue in topology.queues}
    known_exchanges = {exchange.name for exchange in topology.exchanges}
    strangers = {"queue": sorted({*queues} - known_queues), "exchange": sorted({*exchanges} - known_exchanges)}
    for kind, names in strangers.items():
        differences += [Difference(f"unknown {kind}", name) for name in names if not _is_temporary(name)]
    return differences


async def apply(amqp_url: str, topology: Topology) -> None:
    """Declare all of it; what exists with other arguments is left to `migrate`. Raises BusUnavailable."""
    async with admin_channel(amqp_url) as channel:
        await _declare(channel, topology)


async def prune(amqp_url: str, management: Management, topology: Topology) -> list[str]:
    """Delete unknown exchanges, plus unknown queues that are empty and that nobody consumes from."""
    unknown = [
        difference for difference in await compare(management, topology) if difference.kind.startswith("unknown")
    ]
    states = {queue.name: queue for queue in await management.queues()}
    pruned = []
    async with admin_channel(amqp_url) as channel:
        for item in unknown:
            if item.kind == "unknown exchange":
                await channel.exchange_delete(item.name)
            elif states[item.name].depth == 0 and states[item.name].consumers == 0:
                await channel.queue_delete(item.name)
            else:
                continue
            pruned.append(item.name)
    return pruned


async def migrate(amqp_url: str, management: Management, topology: Topology) -> list[str]:
    """Give each queue that differs its new arguments, its messages kept. Raises StillInUse.

    A crash half-way leaves the messages in `….moving`; running it again brings them home.
    """
    states = {queue.name: queue for queue in await management.queues()}
    moved = []
    for queue in _unique(topology):
        differences = _queue_differences(queue, states.get(queue.name))
        if queue.name + _MOVING in states or any(difference.kind == "different queue" for difference in differences):
            async with admin_channel(amqp_url) as channel:
                await _rebuild(channel, _Move(queue, user_of(amqp_url)), topology, exists=queue.name in states)
            moved.append(queue.name)
    return moved


@dataclass(frozen=True)
class _Move:
    """Move of all messages of a queue by an administrator."""

    queue: Queue
    admin: str

    async def between(self, channel: AbstractChannel, source: str, exchange: AbstractExchange, key: str) -> None:
        waiting = await channel.get_queue(source)
        service = self.queue.name.removeprefix("mb.q.").partition(".")[0]
        while (message := await waiting.get(no_ack=False, fail=False)) is not None:
            headers = {ORIGIN: self.queue.name, **message.headers}
            await exchange.publish(admin_copy(message, self.admin, service, headers), key, timeout=10)
            await message.ack()


async def _rebuild(channel: AbstractChannel, move: _Move, topology: Topology, *, exists: bool) -> None:
    queue = move.queue
    own = tuple(binding for binding in topology.bindings if binding.target == queue.name)
    beside = Queue(queue.name + _MOVING, {"x-queue-type": "quorum", "x-delivery-limit": 1_000_000})
    await _declare(channel, Topology(queues=(beside,)))
    if exists:
        old = await channel.declare_queue(queue.name, passive=True)
        if old.declaration_result.consumer_count:
            raise StillInUse(f"{StillInUse.__doc__} ({queue.name})")
        # What is published from here on finds no queue: its publisher hears so, nothing is lost.
        for binding in own:
            await old.unbind(binding.source, binding.key)
        await move.between(channel, queue.name, channel.default_exchange, beside.name)
        await channel.queue_delete(queue.name)
    await _declare(channel, Topology(queues=(queue,), bindings=own))
    # A worker takes only what comes by its exchange or as a retry.
    is_work = any(binding.source == REQUEUE for binding in own)
    way = await channel.get_exchange(REQUEUE, ensure=False) if is_work else channel.default_exchange
    await move.between(channel, beside.name, way, queue.name)
    await channel.queue_delete(beside.name)


async def _declare(channel: AbstractChannel, topology: Topology) -> None:
    underlay = cast("aiormq.Channel", await channel.get_underlay_channel())
    for request in declarations(topology):
        await underlay.rpc(request)


def admin_copy(
    message: AbstractIncomingMessage, admin: str, service: str, headers: Mapping[str, Any]
) -> aio_pika.Message:
    """A copy under the name of an administrator, with the first sender of a message of a service in a header.

    Of copies made before, the header is believed if the service itself or the administrator has made them.
    """
    user = message.user_id or ""
    first = message.headers.get(USER) if user in (service, ADMIN, admin) else None
    return aio_pika.Message(
        message.body,
        headers={**headers, USER: first or user},
        content_type=message.content_type,
        content_encoding=message.content_encoding,
        correlation_id=message.correlation_id,
        reply_to=message.reply_to,
        message_id=message.message_id,
        type=message.type,
        user_id=admin,
        app_id=message.app_id,
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
    )


def _queue_differences(queue: Queue, state: QueueState | None) -> list[Difference]:
    if state is None:
        return [Difference("missing queue", queue.name)]
    names = sorted({*queue.arguments, *state.arguments})
    changed = [
        f"{name}: {state.arguments.get(name)} → {queue.arguments.get(name)}"
        for name in names
        if state.arguments.get(name) != queue.arguments.get(name)
    ]
    return [Difference("different queue", queue.name, "; ".join(changed))] if changed else []


def _unique(topology: Topology) -> list[Queue]:
    return list({queue.name: queue for queue in topology.queues}.values())


def _is_temporary(name: str) -> bool:
    return name.startswith(_TEMPORARY_PREFIXES) or name.endswith(_MOVING)
