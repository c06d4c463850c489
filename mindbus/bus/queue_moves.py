"""Moves of all that waits in queues by an administrator: to rebuild a queue, to redistribute over partitions."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import aio_pika
import aiormq
from aio_pika.abc import AbstractChannel, AbstractExchange, AbstractIncomingMessage

from bus_schema.replies import Code
from mindbus.bus.claims import ClaimLost
from mindbus.bus.decode import ORIGIN
from mindbus.bus.rabbit_link import declarations
from mindbus.bus.topology import (
    DELAYS,
    LOST,
    REQUEUE,
    Binding,
    Exchange,
    Queue,
    Topology,
    commands_exchange,
    commands_queue,
    service_of,
    target_of,
)
from mindbus.bus.transport import ADMIN, USER
from mindbus.errors import MindBusError, TemporaryFailure
from mindbus.tenants import name_of

MOVING = ".moving"
_PREFETCH, _NEXT_WITHIN_S = 100, 30.0
_NUMBERED = re.compile(r"mb\.q\.([^.]+)\.[0-9]+")
Redeem = Callable[[str], Awaitable[Mapping[str, Any]]]


class StillInUse(MindBusError, code=Code.CONFLICT):
    """This queue has consumers; stop its worker first, so that nothing is handled while messages move."""


async def _waiting_in(channel: AbstractChannel, name: str) -> AsyncIterator[AbstractIncomingMessage]:
    """The messages of a queue, in their order, until it is empty; each is acknowledged before the next is taken.

    Consumed, since a quorum queue with a single active consumer knows no `basic.get`.
    """
    await channel.set_qos(_PREFETCH)
    while count := (queue := await channel.declare_queue(name, passive=True)).declaration_result.message_count or 0:
        arrived: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
        are_gone, tag = False, await queue.consume(arrived.put)
        for _ in range(count):
            try:
                async with asyncio.timeout(_NEXT_WITHIN_S):
                    message = await arrived.get()
            except TimeoutError:
                # Their time to live is over, or somebody else has taken them.
                are_gone = True
                break
            yield message
        await queue.cancel(tag)
        while not arrived.empty():
            yield arrived.get_nowait()
        if are_gone and (await channel.declare_queue(name, passive=True)).declaration_result.consumer_count:
            raise StillInUse(f"{StillInUse.__doc__} ({name})")


@dataclass(frozen=True)
class QueueMove:
    """Move of all messages of a queue by an administrator."""

    queue: Queue
    admin: str
    bindings: tuple[Binding, ...]

    @property
    def is_work(self) -> bool:
        """Whether it is a worker's, who takes only what comes by its exchange or as a retry."""
        return any(binding.source == REQUEUE for binding in self.bindings)

    @property
    def delay(self) -> str | None:
        """The exchange before a rung of the retry ladder."""
        return next((each.source for each in self.bindings if each.source.startswith(DELAYS)), None)

    async def between(
        self, channel: AbstractChannel, source: str, exchange: AbstractExchange, key: str | None = None
    ) -> None:
        """Under the key; without one under the queue that each comes from, as a retry waits for its own."""
        async for message in _waiting_in(channel, source):
            origin, headers = self.queue.name, message.headers
            if self.delay is not None:
                # The broker has seen to it that the key of a retry is its worker's own queue.
                own = message.routing_key if source == self.queue.name else headers.get(ORIGIN)
                origin = str(own or self.queue.name)
                headers = {**headers, ORIGIN: origin}
            elif self.is_work:
                headers = {ORIGIN: origin, **headers}
            # Of what was lost, the queue that it was meant for says whose copies are believed.
            meant_for = str(headers.get(ORIGIN) or origin) if self.queue.name == LOST else origin
            copy = admin_copy(message, self.admin, service_of(meant_for), headers)
            await exchange.publish(copy, origin if key is None else key, timeout=10)
            await message.ack()


async def rebuild(channel: AbstractChannel, move: QueueMove, *, is_there: bool, is_old: bool) -> None:
    """Make a queue anew with its messages in order; an old one has other arguments, and is emptied first.

    Raises StillInUse; where others have come meanwhile, a repetition finishes it.
    """
    queue, own = move.queue, move.bindings
    if is_there:
        there = await channel.declare_queue(queue.name, passive=True)
        if there.declaration_result.consumer_count:
            raise StillInUse(f"{StillInUse.__doc__} ({queue.name})")
    beside = Queue(queue.name + MOVING, {"x-queue-type": "quorum", "x-delivery-limit": 1_000_000})
    # A retry that is due meanwhile waits there, too: nobody would hear that it finds no queue.
    returns = tuple(each for each in own if each.source == REQUEUE)
    detours = tuple(replace(each, target=beside.name) for each in returns)
    await declare(channel, Topology(queues=(beside,), bindings=detours))
    if is_old:
        old = await channel.declare_queue(queue.name, passive=True)
        # What is published from here on finds no queue: its publisher hears so, nothing is lost.
        for binding in own:
            await old.unbind(binding.source, binding.key)
        await move.between(channel, queue.name, channel.default_exchange, beside.name)
        await channel.queue_delete(queue.name)
    # What is published must not overtake what waits: so long its publishers find no queue.
    await declare(channel, Topology(queues=(queue,), bindings=own if move.delay else returns))
    for each in detours:
        await (await channel.declare_queue(beside.name, passive=True)).unbind(each.source, each.key)
    if move.delay:
        await move.between(channel, beside.name, await channel.get_exchange(move.delay, ensure=False))
    else:
        way = await channel.get_exchange(REQUEUE, ensure=False) if move.is_work else channel.default_exchange
        await move.between(channel, beside.name, way, queue.name)
    await declare(channel, Topology(bindings=own))
    await channel.queue_delete(beside.name)


def changed_partitions(present: Collection[str], topology: Topology) -> list[str]:
    """Services whose queues on the broker are not the partitions that the topology has, or were being changed."""
    wanted = {queue.name for queue in topology.queues}
    services = {match[1] for name in {*present, *wanted} if (match := _NUMBERED.fullmatch(name))}
    services |= {name.removeprefix("mb.q.").removesuffix(_PARKED) for name in present if name.endswith(_PARKED)}
    return [
        service
        for service in sorted(services)
        if commands_queue(service) in wanted
        and (
            _of_service(service, present) != _of_service(service, wanted)
            or {f"{commands_queue(service)}{suffix}" for suffix in (_PARKING, _PARKED)} & {*present}
        )
    ]


def _of_service(service: str, queues: Collection[str]) -> set[str]:
    numbered = {name for name in queues if (match := _NUMBERED.fullmatch(name)) and match[1] == service}
    return numbered | ({commands_queue(service)} & {*queues})


# Where all wait meanwhile; a mark that they all do, from which a repetition goes on.
_PARKING, _PARKED = f".parking{MOVING}", f".parked{MOVING}"


@dataclass(frozen=True)
class Redistribution:
    """Move of what waits for a service into the queues of its partitions, the order of each user kept."""

    service: str
    topology: Topology
    admin: str
    redeem: Redeem | None = None

    async def run(self, channel: AbstractChannel, present: Collection[str]) -> None:
        """Raises StillInUse, TemporaryFailure; can be repeated wherever it has been cut short."""
        base, own = (
            commands_queue(self.service),
            _of_service(self.service, [each.name for each in self.topology.queues]),
        )
        parking, parked = (
            Queue(f"{base}{suffix}", {"x-queue-type": "quorum", "x-delivery-limit": 1_000_000})
            for suffix in (_PARKING, _PARKED)
        )
        await declare(channel, Topology(queues=(parking,)))
        old = sorted(_of_service(self.service, present))
        if parked.name not in present:
            for name in old:
                await self._park(channel, name, parking)
            await declare(channel, Topology(queues=(parked,)))
        bindings = [each for each in self.topology.bindings if each.target in own]
        queues = tuple(each for each in self.topology.queues if each.name in own)
        returns = tuple(each for each in bindings if each.source == REQUEUE)
        await declare(channel, Topology(queues=queues, bindings=returns))
        await self._spread(channel, parking.name, len(own))
        exchanges = tuple(Exchange(commands_exchange(name.removeprefix("mb.q."))) for name in sorted(own))
        await declare(channel, Topology(exchanges=exchanges, bindings=tuple(bindings)))
        for name in {*old} - own:
            await channel.queue_delete(name)
            await channel.exchange_delete(commands_exchange(name.removeprefix("mb.q.")))
        for queue in (parking, parked):
            await channel.queue_delete(queue.name)

    async def _park(self, channel: AbstractChannel, name: str, parking: Queue) -> None:
        queue = await channel.declare_queue(name, passive=True)
        if queue.declaration_result.consumer_count:
            raise StillInUse(f"{StillInUse.__doc__} ({name})")
        # What is published from here on finds no queue: its publisher hears so, nothing is lost.
        await queue.unbind(commands_exchange(name.removeprefix("mb.q.")), "cmd.#")
        async for message in _waiting_in(channel, name):
            copy = admin_copy(message, self.admin, self.service, message.headers)
            await channel.default_exchange.publish(copy, parking.name, timeout=10)
            await message.ack()

    async def _spread(self, channel: AbstractChannel, parking: str, count: int) -> None:
        way = await channel.get_exchange(REQUEUE, ensure=False)
        async for message in _waiting_in(channel, parking):
            target = commands_queue(target_of(self.service, await self._key_of(message.body), count))
            headers = {**message.headers, ORIGIN: target}
            await way.publish(admin_copy(message, self.admin, self.service, headers), target, timeout=10)
            await message.ack()

    async def _key_of(self, body: bytes) -> str | None:
        """The user whom a message is about; none where nothing can be read: its worker says what is wrong with it.

        Raises TemporaryFailure where the file store is away.
        """
        try:
            envelope = json.loads(body)
            dataref = envelope.get("dataref")
            data = await self.redeem(dataref) if dataref and self.redeem else envelope.get("data") or {}
            key = data.get("user_id")
        except (ClaimLost, ValueError, AttributeError, TypeError):
            return None
        except OSError as error:
            raise TemporaryFailure(f"file store: {error}") from error
        return key if isinstance(key, str) else None


async def declare(channel: AbstractChannel, topology: Topology) -> None:
    underlay = cast("aiormq.Channel", await channel.get_underlay_channel())
    for request in declarations(topology):
        await underlay.rpc(request)


def admin_copy(
    message: AbstractIncomingMessage, admin: str, service: str, headers: Mapping[str, Any]
) -> aio_pika.Message:
    """A copy under the name of an administrator, with the first sender of a message of a service in a header.

    Of copies made before, the header is believed if the service itself or the administrator has made them.
    """
    user = name_of(message.user_id or "")
    first = message.headers.get(USER) if user in (service, ADMIN, name_of(admin)) else None
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
