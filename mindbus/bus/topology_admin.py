"""Keeps broker and code together: apply, compare, prune, migrate."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import aio_pika
import aiormq.exceptions
from aio_pika.abc import AbstractChannel, AbstractConnection
from yarl import URL

from mindbus.broker_url import nodes_of
from mindbus.bus.queue_moves import (
    MOVING,
    QueueMove,
    Redeem,
    Redistribution,
    changed_partitions,
    declare,
    rebuild,
)
from mindbus.bus.topology import Queue, Topology
from mindbus.errors import BusUnavailable
from mindbus.management import Management, QueueState

# Queues that live and die with their clients, or wait for them, are nobody's to prune.
_TEMPORARY_PREFIXES = ("mb.reply.", "mb.tap.", "mb.sub.")
_CONNECT_TIMEOUT_S = 10.0


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
        connection = await _connect(amqp_url)
        async with connection, connection.channel(publisher_confirms=True, on_return_raises=True) as channel:
            yield channel
    except (aiormq.exceptions.AMQPError, aio_pika.exceptions.AMQPError, OSError, TimeoutError) as error:
        raise BusUnavailable(f"{BusUnavailable.__doc__} ({error!r})") from error


async def _connect(amqp_url: str) -> AbstractConnection:
    """A connection to the first node that answers. Raises the last one's refusal."""
    nodes = nodes_of(amqp_url)
    for node in nodes[:-1]:
        with suppress(aiormq.exceptions.AMQPError, aio_pika.exceptions.AMQPError, OSError, TimeoutError):
            return await aio_pika.connect(node, timeout=_CONNECT_TIMEOUT_S / len(nodes))
    return await aio_pika.connect(nodes[-1], timeout=_CONNECT_TIMEOUT_S / len(nodes))


def user_of(amqp_url: str) -> str:
    """Name of the user that an AMQP address logs in."""
    return URL(nodes_of(amqp_url)[0]).user or "guest"


async def compare(management: Management, topology: Topology) -> list[Difference]:
    """Differences between the declared and the actual `mb.` names: missing, different, unknown."""
    differences = await _policy_differences(management, topology)
    queues = {queue.name: queue for queue in await management.queues()}
    exchanges = {row["name"]: row for row in await management.exchanges()}
    bound = {(row["source"], row["destination"], row["routing_key"]) for row in await management.bindings()}
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


async def made_otherwise(management: Management, topology: Topology) -> list[str]:
    """Queues that exist with other arguments; `migrate` is for them. Raises ManagementUnavailable."""
    states = {queue.name: queue for queue in await management.queues()}
    return [queue.name for queue in _unique(topology) if queue.name in states and _is_old(queue, states[queue.name])]


async def apply(amqp_url: str, topology: Topology) -> None:
    """Declare all but policies. Raises BusUnavailable, also where a queue exists with other arguments."""
    async with admin_channel(amqp_url) as channel:
        await declare(channel, topology)


async def apply_policies(management: Management, topology: Topology) -> None:
    """Set the policies. Raises ManagementUnavailable."""
    for policy in topology.policies:
        await management.put_policy(policy.name, policy.as_json())


async def prune(amqp_url: str, management: Management, topology: Topology) -> list[str]:
    """Delete unknown exchanges, plus unknown queues that are empty and that nobody consumes from.

    A service of which any queue has a consumer keeps all that it has.
    """
    states = {queue.name: queue for queue in await management.queues()}
    at_work = {_service_in(queue.name) for queue in states.values() if queue.consumers} - {""}
    unknown = [
        difference
        for difference in await compare(management, topology)
        if difference.kind.startswith("unknown") and _service_in(difference.name) not in at_work
    ]
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


async def migrate(amqp_url: str, management: Management, topology: Topology, redeem: Redeem | None = None) -> list[str]:
    """Give each queue that differs its new arguments, and each service its partitions; messages keep their order.

    The policies are set. `redeem` returns data that lie in the file store. Raises StillInUse, TemporaryFailure.

    A crash half-way leaves the messages in `….moving`; running it again brings them home.
    """
    # First: a queue is to have a limit at any time.
    await apply_policies(management, topology)
    states = {queue.name: queue for queue in await management.queues()}
    moved = []
    for queue in _unique(topology):
        is_old = queue.name in states and _is_old(queue, states[queue.name])
        if is_old or queue.name + MOVING in states:
            async with admin_channel(amqp_url) as channel:
                own = tuple(binding for binding in topology.bindings if binding.target == queue.name)
                move = QueueMove(queue, user_of(amqp_url), own)
                await rebuild(channel, move, is_there=queue.name in states, is_old=is_old)
            moved.append(queue.name)
    for service in changed_partitions({*states}, topology):
        async with admin_channel(amqp_url) as channel:
            await Redistribution(service, topology, user_of(amqp_url), redeem).run(channel, {*states})
        moved.append(service)
    return moved


async def _policy_differences(management: Management, topology: Topology) -> list[Difference]:
    if not topology.policies:
        return []
    there = await management.policies()
    differences = []
    for policy in {each.name: each for each in topology.policies}.values():
        wanted, found = policy.as_json(), there.get(policy.name)
        if found is None:
            differences.append(Difference("missing policy", policy.name))
        elif {name: found.get(name) for name in wanted} != wanted:
            differences.append(Difference("different policy", policy.name, f"is {found.get('definition')}"))
    return differences


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


def _is_old(queue: Queue, state: QueueState) -> bool:
    return bool(_queue_differences(queue, state))


def _service_in(name: str) -> str:
    """The service whose queue or exchange has this name."""
    return name.split(".")[2] if name.startswith(("mb.q.", "mb.cmd.", "mb.evt.")) else ""


def _unique(topology: Topology) -> list[Queue]:
    return list({queue.name: queue for queue in topology.queues}.values())


def _is_temporary(name: str) -> bool:
    return name.startswith(_TEMPORARY_PREFIXES) or name.endswith(MOVING)
