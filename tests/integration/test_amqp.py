"""The client of AMQP on a real RabbitMQ: confirms, returns, refusals, losses, TLS."""

import asyncio
import random
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvloop
from pamqp import commands
from yarl import URL

from mindbus.bus.amqp.channel import ChannelClosed, ConsumingChannel, NotTaken, PublishingChannel, Returned
from mindbus.bus.amqp.connection import Connection, ConnectionLost, connect
from mindbus.bus.amqp.frames import Content, pack_properties
from mindbus.bus.rabbit import RabbitTransport
from mindbus.bus.topology import Topology
from mindbus.bus.transport import Properties, RawCopy
from mindbus.errors import BusUnavailable
from mindbus.testing.wait import until
from mindbus_fleet.node.private import PrivateNode
from tests.brokers import Broker
from tests.chaos.faulty_link import faulty_link

pytestmark = pytest.mark.rabbit

QUEUE = "q"
PROPERTIES = pack_properties({"message_id": "m"}, {}, is_durable=True)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Connection]:
    connection = await connect(URL(url), "test")
    try:
        async with asyncio.timeout(30):
            yield connection
    finally:
        await connection.close()


async def declare(
    channel: PublishingChannel | ConsumingChannel, name: str = QUEUE, arguments: dict[str, Any] | None = None
) -> None:
    request = commands.Queue.Declare(queue=name, durable=True, arguments=arguments or {})
    await channel.call(request, commands.Queue.DeclareOk)


async def publish(channel: PublishingChannel, body: bytes, queue: str = QUEUE, *, mandatory: bool = True) -> None:
    await channel.publish(("", queue, "m"), PROPERTIES, body, mandatory=mandatory)


async def left_in(channel: ConsumingChannel) -> int:
    request = commands.Queue.Declare(queue=QUEUE, passive=True)
    return (await channel.call(request, commands.Queue.DeclareOk)).message_count or 0


class Deliveries:
    """What a consumer has been given, in order."""

    def __init__(self, channel: ConsumingChannel) -> None:
        self.bodies: list[bytes] = []
        self.tags: list[int] = []
        channel.on_delivery = self._take

    def _take(self, tag: int, _exchange: str, _routing_key: str, content: Content) -> None:
        self.tags.append(tag)
        self.bodies.append(content.body)

    async def of(self, number: int) -> list[bytes]:
        await until(lambda: len(self.bodies) >= number)
        return self.bodies


async def test_messages_of_every_size_arrive_as_they_were_and_in_order(vhost_url: str) -> None:
    bodies = [b"", b"x", b"y" * 131_063, b"z" * 131_064, b"w" * 131_065, b"v" * 1_000_000]
    async with connected(vhost_url) as connection:
        publishing = await connection.open_channel(PublishingChannel)
        consuming = await connection.open_channel(ConsumingChannel)
        deliveries = Deliveries(consuming)
        await declare(publishing)
        await consuming.consume(QUEUE)

        await asyncio.gather(*(publish(publishing, body) for body in bodies))

        assert await deliveries.of(len(bodies)) == bodies


async def test_what_is_settled_in_any_order_is_gone_and_what_is_not_comes_back(vhost_url: str) -> None:
    async with connected(vhost_url) as connection:
        publishing = await connection.open_channel(PublishingChannel)
        consuming = await connection.open_channel(ConsumingChannel)
        deliveries = Deliveries(consuming)
        await declare(publishing)
        await asyncio.gather(*(publish(publishing, b"%d" % number) for number in range(8)))
        await consuming.set_prefetch(8)
        await consuming.consume(QUEUE)
        await deliveries.of(8)

        for place in (0, 1, 5, 3):
            consuming.ack(deliveries.tags[place])
        await asyncio.sleep(0)
        consuming.ack(deliveries.tags[2])
        consuming.ack(deliveries.tags[2])
        consuming.requeue(deliveries.tags[4])
        await consuming.close()

        again = await connection.open_channel(ConsumingChannel)
        rest = Deliveries(again)
        await again.consume(QUEUE)
        assert sorted(await rest.of(3)) == [b"4", b"6", b"7"]
        assert await left_in(again) == 0


async def test_what_no_queue_takes_comes_back_to_whom_published_it_alone(vhost_url: str) -> None:
    async with connected(vhost_url) as connection:
        channel = await connection.open_channel(PublishingChannel)
        await declare(channel)

        results = await asyncio.gather(
            *(publish(channel, b"x", queue) for queue in (QUEUE, "nowhere", QUEUE, "nowhere", "nowhere")),
            publish(channel, b"x", "nowhere", mandatory=False),
            return_exceptions=True,
        )

        assert [result is None for result in results] == [True, False, True, False, False, True]
        assert all(isinstance(result, Returned) for result in results if result is not None)


async def test_a_full_queue_takes_no_more_and_the_channel_lives_on(vhost_url: str) -> None:
    async with connected(vhost_url) as connection:
        channel = await connection.open_channel(PublishingChannel)
        await declare(channel, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
        await declare(channel, "other")
        await publish(channel, b"first")

        with pytest.raises(NotTaken):
            await publish(channel, b"second")
        await publish(channel, b"third", "other")


async def test_a_mistake_closes_its_channel_alone_and_ends_whoever_waits_on_it(vhost_url: str) -> None:
    async with connected(vhost_url) as connection:
        channel, other = [await connection.open_channel(PublishingChannel) for _ in range(2)]
        await declare(other)

        with pytest.raises(ChannelClosed, match=r"404 NOT_FOUND.*no-such-exchange"):
            await channel.publish(("no-such-exchange", "x", "m"), PROPERTIES, b"", mandatory=True)
        assert channel.lost.is_set()
        with pytest.raises(ChannelClosed, match="404"):
            await publish(channel, b"")
        await publish(other, b"")
        numbers = {(await connection.open_channel(ConsumingChannel)).number, channel.number}
        assert numbers == {channel.number}  # the number is free again


async def test_a_consumer_is_told_when_its_queue_goes(vhost_url: str) -> None:
    async with connected(vhost_url) as connection:
        channel, other = [await connection.open_channel(ConsumingChannel) for _ in range(2)]
        await declare(channel)
        await channel.consume(QUEUE)

        await other.call(commands.Queue.Delete(queue=QUEUE), commands.Queue.DeleteOk)

        await channel.lost.wait()
        assert channel.error is None


async def test_who_gives_up_waiting_harms_nobody_else(vhost_url: str) -> None:
    async with connected(vhost_url) as connection:
        channel = await connection.open_channel(PublishingChannel)
        calls = [asyncio.create_task(declare(channel, name)) for name in ("a", QUEUE, "c")]
        await asyncio.sleep(0)
        calls[0].cancel()
        await asyncio.wait(calls)
        impatient = asyncio.create_task(publish(channel, b"impatient"))
        await asyncio.sleep(0)
        impatient.cancel()

        await publish(channel, b"patient")
        assert [call.cancelled() for call in calls] == [True, False, False]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"password": "wrong"}, "403 ACCESS_REFUSED"), ({"path": "/no-such-vhost"}, "530 NOT_ALLOWED.*no-such-vhost")],
)
async def test_the_broker_says_why_it_lets_nobody_in(vhost_url: str, changes: dict[str, str], reason: str) -> None:
    url = URL(vhost_url)
    url = url.with_password(changes["password"]) if "password" in changes else url.with_path(changes["path"])

    with pytest.raises(ConnectionLost, match=reason):
        await connect(url, "stranger")


async def test_while_the_broker_is_out_of_memory_publishers_wait_and_consumers_go_on(used_node: PrivateNode) -> None:
    async with connected(used_node.amqp_url) as connection, connected(used_node.amqp_url) as other:
        publishing = await connection.open_channel(PublishingChannel)
        consuming = await other.open_channel(ConsumingChannel)
        deliveries = Deliveries(consuming)
        await declare(publishing)
        await publish(publishing, b"before")
        await used_node.ctl("set_vm_memory_high_watermark", "absolute", "1")
        try:
            during = asyncio.create_task(publish(publishing, b"during"))
            await until(lambda: not publishing.output.writable.is_set())
            held_back = asyncio.create_task(publish(publishing, b"held back"))
            await consuming.consume(QUEUE)
            assert await deliveries.of(1) == [b"before"]
            assert not during.done()
        finally:
            await used_node.ctl("set_vm_memory_high_watermark", "0.6")

        await asyncio.gather(during, held_back)
        assert await deliveries.of(3) == [b"before", b"during", b"held back"]


async def test_publishers_that_give_up_leave_no_channel_open(used_node: PrivateNode) -> None:
    transport = RabbitTransport(used_node.amqp_url, "test", publish_timeout_s=2)
    message = RawCopy("", QUEUE, b"x", Properties(message_id="m"), {})
    async with connected(used_node.amqp_url) as connection:
        channel = await connection.open_channel(PublishingChannel)
        await declare(channel)
        await declare(channel, "full", {"x-max-length": 1, "x-overflow": "reject-publish"})
        await transport.publish(replace(message, routing_key="full"))
        with pytest.raises(BusUnavailable, match="queue is full"):
            await transport.publish(replace(message, routing_key="full"))
        await transport.publish(message)
        await used_node.ctl("set_vm_memory_high_watermark", "absolute", "1")
        try:
            for _ in range(4):
                with pytest.raises(BusUnavailable):
                    await transport.publish(message)
        finally:
            await used_node.ctl("set_vm_memory_high_watermark", "0.6")

        await transport.publish(message)
        # One of this connection, one of the transport's.
        assert len(await channels_of(used_node)) == 2
    await transport.close()


async def test_a_channel_that_refuses_a_message_is_replaced(used_node: PrivateNode) -> None:
    """On 3.10 one may refuse for ever after a queue has lost its leader (tests/chaos/test_cluster_loses_nodes.py)."""
    transport = RabbitTransport(used_node.amqp_url, "test", publish_timeout_s=10)
    message = RawCopy("", "full", b"x", Properties(message_id="m"), {})
    async with connected(used_node.amqp_url) as connection:
        channel = await connection.open_channel(ConsumingChannel)
        await declare(channel)
        await declare(channel, "full", {"x-max-length": 1, "x-overflow": "reject-publish"})
    await transport.publish(message)
    before = await channels_of(used_node)
    with pytest.raises(BusUnavailable, match="queue is full"):
        await transport.publish(message)
    await transport.publish(replace(message, routing_key=QUEUE))

    after = await channels_of(used_node)
    assert len(after) == len(before) == 1
    assert after != before
    await transport.close()


async def test_a_channel_that_retires_closes_when_all_is_confirmed(vhost_url: str) -> None:
    async with connected(vhost_url) as connection:
        channel = await connection.open_channel(PublishingChannel)
        await declare(channel)
        on_its_way = asyncio.create_task(publish(channel, b"x"))
        await asyncio.sleep(0)
        channel.retire()
        assert channel.error is None
        await on_its_way
        assert channel.error is not None


async def channels_of(node: PrivateNode) -> set[str]:
    """Processes of all channels."""
    listed = await node.ctl("list_channels", "pid")
    return {line for line in listed.splitlines() if line.startswith("<mindbus@")}


async def test_a_connection_that_opens_after_its_transport_was_closed_is_given_up(vhost_url: str) -> None:
    url = URL(vhost_url)
    async with faulty_link("127.0.0.1", url.port or 5672, random.Random(1)) as link:
        link.withhold(to_server=False)
        transport = RabbitTransport(str(url.with_port(link.port)), "test")
        declaring = asyncio.create_task(transport.declare(Topology()))
        await until(lambda: link.connections == 1)
        await transport.close()
        link.heal()

        with pytest.raises(BusUnavailable, match="has been closed"):
            await declaring
        await until(lambda: link.connections == 0)


async def test_a_connection_that_is_given_up_leaves_no_task(used_node: PrivateNode) -> None:
    used_node.freeze()
    try:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await connect(URL(used_node.amqp_url), "test")
        await asyncio.sleep(0)

        assert asyncio.all_tasks() == {asyncio.current_task()}
    finally:
        used_node.thaw()


async def test_a_broker_that_freezes_is_given_up_after_two_heartbeats(used_node: PrivateNode) -> None:
    connection = await connect(URL(used_node.amqp_url).update_query(heartbeat=1), "test")
    channel = await connection.open_channel(PublishingChannel)
    await declare(channel)
    used_node.freeze()
    try:
        with pytest.raises(ChannelClosed, match="no heartbeat within 2 s"):
            async with asyncio.timeout(20):
                await publish(channel, b"x")
    finally:
        used_node.thaw()
    assert not connection.is_open


async def test_a_connection_that_is_idle_stays(vhost_url: str) -> None:
    connection = await connect(URL(vhost_url).update_query(heartbeat=1), "test")
    channel = await connection.open_channel(ConsumingChannel)
    with suppress(TimeoutError):
        async with asyncio.timeout(4):
            await channel.lost.wait()

    await declare(channel)
    await connection.close()


def test_an_event_loop_of_uvloop_will_do(broker: Broker) -> None:
    async def send() -> None:
        async with connected(broker.amqp_url) as connection:
            channel = await connection.open_channel(PublishingChannel)
            await publish(channel, b"x" * 1_000_000, "nowhere", mandatory=False)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(send())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1, signed by itself, with its key."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")),
        ],
        check=True,
        capture_output=True,
    )
    return folder


@asynccontextmanager
async def tls_in_front_of(url: URL, certificate: Path) -> AsyncIterator[URL]:
    """A server that ends TLS and passes everything on to the broker."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(65536):
                target.write(data)
                await target.drain()
        target.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection(url.host, url.port)
        try:
            await asyncio.gather(copy(reader, forth), copy(back, writer))
        finally:
            forth.close()
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        port: int = server.sockets[0].getsockname()[1]
        yield url.with_scheme("amqps").with_host("127.0.0.1").with_port(port)


async def test_tls_is_spoken_with_whom_the_certificate_fits(vhost_url: str, certificate: Path) -> None:
    async with tls_in_front_of(URL(vhost_url), certificate) as url:
        async with connected(str(url.update_query(cafile=str(certificate / "cert.pem")))) as connection:
            channel = await connection.open_channel(PublishingChannel)
            await declare(channel)
            await publish(channel, b"secret" * 100_000)
        async with connected(str(url.update_query(no_verify_ssl="1"))) as connection:
            assert connection.is_open
        with pytest.raises(ssl.SSLCertVerificationError):
            await connect(url, "trusts nobody unknown")
