"""One connection to RabbitMQ, made anew when it breaks, elsewhere in a cluster; declarations of a topology."""

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TypeVar

from pamqp import commands
from pamqp.base import Frame
from yarl import URL

from mindbus.bus.amqp.channel import Channel, ChannelClosed, ConsumingChannel, PublishingChannel
from mindbus.bus.amqp.connection import Connection, connect
from mindbus.bus.topology import Topology
from mindbus.bus.transport import Receiver
from mindbus.errors import BusUnavailable, TopologyMissing
from mindbus.logs import logger
from mindbus.tenants import name_of

_CONNECT_TIMEOUT_S = 10.0
_COUNT_TIMEOUT_S = 20.0

_OTHER_ARGUMENTS = re.compile(r"PRECONDITION_FAILED - inequivalent arg .* for queue '([^']+)'")
# Other queues and all exchanges are made by an administrator.
_OF_PARTICIPANTS = ("mb.reply.", "mb.tap.")

ChannelT = TypeVar("ChannelT", PublishingChannel, ConsumingChannel)

# A lost connection, a closed channel, a broker that does not answer.
CONNECTION_ERRORS = (OSError, TimeoutError)


class RabbitLink:
    """Keeps at most one connection, opened anew on the next use after a loss: to the next of its nodes in turn."""

    def __init__(self, nodes: Sequence[str], name: str, service: str) -> None:
        self._nodes, self._name = deque(map(URL, nodes)), name
        self.login = self._nodes[0].user or "guest"
        self.receiver = Receiver(name_of(self.login), service)
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._counting: ConsumingChannel | None = None
        self._counts_one = asyncio.Lock()
        self._closed = False
        # Queues that another version has made, which serve as they are until somebody migrates them.
        self._older: set[str] = set()

    async def open_channel(self, kind: type[ChannelT]) -> ChannelT:
        """A channel of the open connection. Raises one of CONNECTION_ERRORS."""
        return await (await self._connect()).open_channel(kind)

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[ConsumingChannel]:
        """A channel that is closed after the block. Raises one of CONNECTION_ERRORS."""
        channel = await self.open_channel(ConsumingChannel)
        try:
            yield channel
        finally:
            channel.abandon()

    async def count(self, queue: str) -> commands.Queue.DeclareOk:
        """Messages and consumers of a queue, over a channel that is kept for such questions.

        Raises one of CONNECTION_ERRORS, also where there is no such queue.
        """
        # Whoever waits for a slow answer to another question is not late itself.
        async with self._counts_one, asyncio.timeout(_COUNT_TIMEOUT_S):
            if self._counting is None or self._counting.error is not None:
                self._counting = await self.open_channel(ConsumingChannel)
            request = commands.Queue.Declare(queue=queue, passive=True)
            return await self._counting.call(request, commands.Queue.DeclareOk)

    async def prepare(self, channel: Channel, topology: Topology) -> None:
        """Have what a consumer needs: declared by a user that participants share, else by an administrator before.

        Raises TopologyMissing, or one of CONNECTION_ERRORS. Where a queue is there with other arguments it raises, too,
        and takes that queue as it is the next time.
        """
        if self.receiver.shares_user:
            await self._declare(channel, topology)
            return
        own = own_part(topology)
        await channel.call_all(declarations(own))
        shared = [queue for queue in topology.queues if queue not in own.queues]
        try:
            await channel.call_all(checks(Topology(queues=tuple(shared))))
        except ChannelClosed as error:
            if "NOT_FOUND" in str(error):
                raise TopologyMissing(f"{TopologyMissing.__doc__} ({error})") from error
            raise

    async def _declare(self, channel: Channel, topology: Topology) -> None:
        queues = tuple(queue for queue in topology.queues if queue.name not in self._older)
        try:
            await channel.call_all(declarations(replace(topology, queues=queues)))
        except ChannelClosed as error:
            if (found := _OTHER_ARGUMENTS.search(str(error))) is not None:
                self._older.add(found[1])
                advice = "`mindbus topology migrate` brings it up to date"
                logger().warning("queue made by another version", queue=found[1], reason=str(error), advice=advice)
            raise

    async def close(self) -> None:
        self._closed = True
        if self._connection is not None:
            await self._connection.close()

    async def _connect(self) -> Connection:
        async with self._connecting:
            if self._closed:
                raise ConnectionError("this transport has been closed")
            if self._connection is None or not self._connection.is_open:
                if self._connection is not None:
                    # It may be frozen, and would take connections that nobody serves.
                    self._nodes.rotate(-1)
                self._connection = await self._connect_somewhere()
                if self._closed:
                    # Meanwhile, by somebody who found none to close.
                    self._connection.abandon()
                    raise ConnectionError("this transport has been closed")
            return self._connection

    async def _connect_somewhere(self) -> Connection:
        """A connection to the first node that lets it in. Raises the last one's refusal."""
        refusal: OSError = ConnectionError("no node is known")
        for _ in range(len(self._nodes)):
            node = self._nodes[0]
            try:
                async with asyncio.timeout(_CONNECT_TIMEOUT_S / len(self._nodes)):
                    connection = await connect(node, self._name)
            except asyncio.CancelledError:
                # Whoever wanted it has waited long enough: the next one asks another node first.
                self._nodes.rotate(-1)
                raise
            except CONNECTION_ERRORS as error:
                refusal = error
                self._nodes.rotate(-1)
            else:
                logger().debug("connected to RabbitMQ", link=self._name, host=node.host, port=node.port)
                return connection
        raise refusal


@contextmanager
def translate_connection_errors() -> Iterator[None]:
    """Raise BusUnavailable in place of any of CONNECTION_ERRORS."""
    try:
        yield
    except CONNECTION_ERRORS as error:
        raise BusUnavailable(f"{BusUnavailable.__doc__} ({error!r})") from error


def own_part(topology: Topology) -> Topology:
    """Queues that a participant makes for itself, with their bindings."""
    queues = tuple(queue for queue in topology.queues if queue.name.startswith(_OF_PARTICIPANTS))
    names = {queue.name for queue in queues}
    return Topology((), queues, tuple(binding for binding in topology.bindings if binding.target in names))


def checks(topology: Topology) -> Iterator[Frame]:
    """Requests that are answered by an error where an exchange or a queue is missing."""
    for exchange in topology.exchanges:
        yield commands.Exchange.Declare(exchange=exchange.name, passive=True)
    for queue in topology.queues:
        yield commands.Queue.Declare(queue=queue.name, passive=True)


def declarations(topology: Topology) -> Iterator[Frame]:
    """Requests that declare exchanges, queues, bindings, in this order; each has an answer."""
    for exchange in topology.exchanges:
        yield commands.Exchange.Declare(
            exchange=exchange.name, exchange_type=exchange.kind, durable=True, arguments=exchange.arguments
        )
    for queue in topology.queues:
        yield commands.Queue.Declare(
            queue=queue.name, durable=not queue.exclusive, exclusive=queue.exclusive, arguments=queue.arguments
        )
    for binding in topology.bindings:
        if binding.to_exchange:
            yield commands.Exchange.Bind(
                destination=binding.target, source=binding.source, routing_key=binding.key, arguments={}
            )
        else:
            yield commands.Queue.Bind(
                queue=binding.target, exchange=binding.source, routing_key=binding.key, arguments={}
            )
