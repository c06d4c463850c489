"""The private RabbitMQ node: what it promises to `mindbus up` and to the tests."""

import asyncio
import os
import pwd
import shutil
import signal
import socket
import stat
import sys
import tempfile
import threading
from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from pathlib import Path
from subprocess import PIPE, Popen

import aio_pika
import httpx
import pytest
from pamqp.common import FieldTable
from yarl import URL

from mindbus.management import Management as Viewing
from mindbus.testing.wait import until
from mindbus_fleet.node.address import VIEWER, NodeAddress, speaks_amqp
from mindbus_fleet.node.installation import (
    Installation,
    NodeAlreadyRunning,
    NodeDidNotStart,
    NodeNotRunning,
    RabbitMQMissing,
    find_rabbitmq,
)
from mindbus_fleet.node.private import PrivateNode, running_node
from tests.brokers import Broker, do_without, registered
from tests.management import Management

pytestmark = pytest.mark.rabbit

needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads /proc")

QUEUE = "kept"
QUORUM: FieldTable = {"x-queue-type": "quorum"}

# Runs under another user, to whom neither this checkout nor this Python need be readable: all is imported before
# the user changes.
CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
from mindbus_fleet.node.private import PrivateNode

uid, gid, folder, then = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
if uid != os.getuid():
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)

async def main():
    async with PrivateNode(folder) as node:
        print(node.pid, node.amqp_url, flush=True)
        if then == "wait":
            signal.pause()

asyncio.run(main())
"""


@pytest.fixture
def installed() -> Installation:
    try:
        return find_rabbitmq()
    except RabbitMQMissing as missing:
        do_without(missing)


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    return tmp_path / "данные агентов"


@pytest.fixture
async def stopped(folder: Path, installed: Installation) -> AsyncIterator[PrivateNode]:
    """Not yet started; ended after the test, whatever became of it."""
    private = PrivateNode(folder, lambda: installed)
    yield private
    await private.kill()


async def test_a_started_node_speaks_amqp(node: PrivateNode) -> None:
    assert await speaks_amqp(node.address.amqp_port)

    async with await aio_pika.connect(node.amqp_url) as connection:
        assert not connection.is_closed


async def test_the_management_api_lets_in_only_the_random_user(node: PrivateNode) -> None:
    async with httpx.AsyncClient(
        base_url=node.address.management_url, verify=False, trust_env=False, timeout=60
    ) as http:
        ours = await http.get("/api/whoami", auth=(node.address.username, node.address.password))
        guest = await http.get("/api/whoami", auth=("guest", "guest"))

    assert ours.json()["name"] == node.address.username
    assert guest.status_code == 401


async def test_the_viewer_sees_queues_and_changes_nothing(node: PrivateNode) -> None:
    async with await aio_pika.connect(node.amqp_url) as connection:
        channel = await connection.channel()
        await channel.declare_queue("looked_at", durable=True)
    assert [queue.name for queue in await Viewing(node.address.viewer_url).queues("looked")] == ["looked_at"]
    login = (VIEWER, node.address.viewer_password)
    queue = "/api/queues/%2F/looked_at"
    taken = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
    # The server may close a connection after a refusal: each request has its own.
    single = httpx.Limits(max_keepalive_connections=0)
    async with httpx.AsyncClient(
        base_url=node.address.management_url, auth=login, trust_env=False, limits=single, timeout=60
    ) as http:
        refused = [
            await http.delete(queue),
            await http.delete(f"{queue}/contents"),
            await http.post(f"{queue}/get", json=taken),
            await http.put("/api/users/intruder", json={"password": "x", "tags": "administrator"}),
            await http.put("/api/policies/%2F/mine", json={"pattern": ".*", "definition": {"max-length": 1}}),
        ]
    assert [answer.status_code in (400, 401, 403) for answer in refused] == [True] * len(refused)
    with pytest.raises(aio_pika.exceptions.AMQPError):
        async with await aio_pika.connect(str(URL(node.amqp_url).with_user(VIEWER).with_password(login[1]))) as bus:
            await (await bus.channel()).declare_queue("its_own", durable=True)


async def test_the_brokers_own_metrics_are_served(node: PrivateNode) -> None:
    async with httpx.AsyncClient(verify=False, trust_env=False, timeout=60) as http:
        metrics = await http.get(node.address.prometheus_url)

    assert "rabbitmq_queues" in metrics.text


async def test_nothing_listens_beyond_loopback(node: PrivateNode) -> None:
    ports = [value for name, value in asdict(node.address).items() if name.endswith("_port")]

    assert len(ports) == 5
    for port in ports:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((outward_address(), port), timeout=2)


async def test_only_the_owner_can_read_the_password(node: PrivateNode) -> None:
    secret = [file for file in node.folder.rglob("*") if file.is_file() and holds(file, node.address.password)]

    assert {file.name for file in secret} >= {"node.json", "definitions.json"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in secret} == {0o600}
    assert stat.S_IMODE(node.folder.stat().st_mode) == 0o700


async def test_the_broker_is_set_up_for_long_work(node: PrivateNode) -> None:
    heard = await node.ctl(
        "eval", "[element(2, application:get_env(rabbit, K)) || K <- [heartbeat, consumer_timeout, max_message_size]]."
    )

    assert heard.strip() == "[20,10800000,1048576]"


@needs_proc
async def test_a_stop_leaves_messages_behind_and_nothing_else_and_a_kill_what_was_confirmed(
    stopped: PrivateNode,
) -> None:
    await stopped.start()
    url = stopped.amqp_url
    await keep(url, "письмо")
    assert len(processes_of(stopped.folder)) >= 3

    await stopped.stop()

    await until(lambda: not processes_of(stopped.folder))
    assert not answers(stopped.address)

    await stopped.start()

    assert stopped.amqp_url == url
    assert await kept(url) == "письмо"

    await keep(url, "letter")
    await registered(stopped, QUEUE)
    await stopped.kill()
    assert not stopped.is_running
    await stopped.start()

    assert stopped.amqp_url == url
    assert await kept(url) == "letter"


async def test_a_broker_that_died_by_itself_is_started_again(used_node: PrivateNode) -> None:
    first = used_node.pid

    os.kill(first, signal.SIGKILL)
    await until(lambda: not used_node.is_running)
    await used_node.start()

    assert used_node.pid != first
    assert await speaks_amqp(used_node.address.amqp_port)


async def test_a_frozen_broker_answers_nobody_until_it_is_thawed(used_node: PrivateNode) -> None:
    port = used_node.address.amqp_port

    used_node.freeze()
    assert used_node.is_running
    assert not await speaks_amqp(port)

    used_node.thaw()
    await until(lambda: speaks_amqp(port))


async def test_a_frozen_broker_can_be_stopped(used_node: PrivateNode) -> None:
    used_node.freeze()

    await used_node.stop()

    assert not used_node.is_running


async def test_one_folder_takes_one_node(node: PrivateNode) -> None:
    with pytest.raises(NodeAlreadyRunning, match="MINDBUS_DATA_DIR") as refused:
        await PrivateNode(node.folder).start()

    assert str(node.folder) in str(refused.value)
    with pytest.raises(NodeAlreadyRunning):
        await node.start()
    assert await speaks_amqp(node.address.amqp_port)


async def test_no_node_runs_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert running_node(tmp_path / "nowhere") is None
    assert not exists(tmp_path / "nowhere")


async def test_others_find_a_node_while_it_runs_and_a_port_that_somebody_has_taken_is_replaced(
    used_node: PrivateNode,
) -> None:
    before = used_node.address
    assert running_node(used_node.folder) == before
    await used_node.kill()
    assert running_node(used_node.folder) is None

    with socket.create_server(("127.0.0.1", before.amqp_port)):
        await used_node.start()

    after = used_node.address
    assert after.amqp_port != before.amqp_port
    assert after == replace(before, amqp_port=after.amqp_port)


async def test_losing_the_race_for_a_port_is_tried_again(folder: Path, tmp_path: Path, installed: Installation) -> None:
    loser = script(
        tmp_path / "rabbitmq-server",
        f'[ -e "{tmp_path}/lost" ] && exec {installed.server}; touch "{tmp_path}/lost"; echo eaddrinuse; exit 1',
    )

    async with PrivateNode(folder, lambda: Installation(loser, installed.epmd)) as private:
        assert await speaks_amqp(private.address.amqp_port)


async def test_a_machine_without_rabbitmq_says_what_to_do(folder: Path) -> None:
    with pytest.raises(RabbitMQMissing) as missing:
        await PrivateNode(folder, lambda: find_rabbitmq(lambda _program: None)).start()

    for words in ("apt-get install", "brew install rabbitmq", "MINDBUS_AMQP_URL"):
        assert words in str(missing.value)
    assert not exists(folder)


async def test_a_server_that_dies_at_once_is_quoted(folder: Path, tmp_path: Path, installed: Installation) -> None:
    server = script(tmp_path / "rabbitmq-server", "echo диск полон >&2; exit 1")

    with pytest.raises(NodeDidNotStart, match="диск полон"):
        await PrivateNode(folder, lambda: Installation(server, installed.epmd)).start()

    assert running_node(folder) is None


@needs_proc
async def test_a_server_that_never_listens_is_given_up(folder: Path, tmp_path: Path, installed: Installation) -> None:
    server = script(tmp_path / "rabbitmq-server", "echo dreaming; exec sleep 600")

    with pytest.raises(NodeDidNotStart, match=r"(?s)not ready after 1 s.*dreaming"):
        await PrivateNode(folder, lambda: Installation(server, installed.epmd)).start(within_s=1)

    await until(lambda: not processes_of(folder))


async def test_a_node_that_never_started_has_no_address(folder: Path) -> None:
    with pytest.raises(NodeNotRunning):
        PrivateNode(folder).amqp_url  # noqa: B018 (the look is the test)


@needs_proc
async def test_a_start_that_is_cancelled_leaves_nothing_but_a_usable_folder(stopped: PrivateNode) -> None:
    starting = asyncio.create_task(stopped.start())
    await until(lambda: list(stopped.folder.glob("mnesia/*/schema.DAT")), deadline_s=60)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await until(lambda: not processes_of(stopped.folder))

    await stopped.start()

    await keep(stopped.amqp_url, "letter")


@needs_proc
@pytest.mark.usefixtures("installed")
async def test_a_node_dies_with_a_python_that_is_killed(folder: Path) -> None:
    with child(os.getuid(), os.getgid(), folder, then="wait") as python:
        broker_pid, _url = await said_by(python)
        assert broker_pid in processes_of(folder)

        python.kill()
        await asyncio.to_thread(python.wait)

    await until(lambda: not processes_of(folder))
    assert running_node(folder) is None


async def test_a_node_outlives_the_thread_that_started_it(stopped: PrivateNode) -> None:
    thread = threading.Thread(target=lambda: asyncio.run(stopped.start()))
    thread.start()
    await asyncio.to_thread(thread.join)

    await keep(stopped.amqp_url, "letter")
    assert stopped.is_running


@needs_proc
@pytest.mark.usefixtures("installed")
async def test_it_runs_without_root() -> None:
    user = pwd.getpwnam("nobody") if os.getuid() == 0 else pwd.getpwuid(os.getuid())
    folder = Path(tempfile.mkdtemp(prefix="mindbus-"))  # tmp_path lies where only its owner may look
    os.chown(folder, user.pw_uid, user.pw_gid)
    try:
        with child(user.pw_uid, user.pw_gid, folder, then="stop") as python:
            broker_pid, url = await said_by(python)
            assert owner(broker_pid) == user.pw_uid
            assert await asyncio.to_thread(python.wait) == 0
        assert url.startswith("amqp://mindbus:")
        await until(lambda: not processes_of(folder))
    finally:
        shutil.rmtree(folder)


async def test_tests_do_not_see_each_others_vhosts(broker: Broker, vhost_url: str, management: Management) -> None:
    await keep(vhost_url, "mine")

    assert QUEUE not in await management.queues("/")
    assert await kept(vhost_url) == "mine"


async def keep(url: str, body: str) -> None:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel(publisher_confirms=True)
        queue = await channel.declare_queue(QUEUE, durable=True, arguments=QUORUM)
        message = aio_pika.Message(body.encode(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        await channel.default_exchange.publish(message, routing_key=queue.name)


async def kept(url: str) -> str:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue(QUEUE, durable=True, arguments=QUORUM)
        message = await queue.get(timeout=10)
        await message.ack()
        return message.body.decode()


def child(uid: int, gid: int, folder: Path, then: str) -> Popen[bytes]:
    return Popen([sys.executable, "-c", CHILD, str(uid), str(gid), str(folder), then], stdout=PIPE)


async def said_by(python: Popen[bytes]) -> tuple[int, str]:
    assert python.stdout is not None
    pid, url = (await asyncio.to_thread(python.stdout.readline)).decode().split()
    return int(pid), url


def script(path: Path, commands: str) -> Path:
    path.write_text(f"#!/bin/sh\n{commands}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def processes_of(folder: Path) -> list[int]:
    """All that were given this folder as their home: the broker, its children, epmd, the guard."""
    mark = f"HOME={folder}/home".encode()
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and mark in environ(entry)]


def owner(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


def environ(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:  # gone, or not ours
        return b""


def exists(path: Path) -> bool:
    return path.exists()


def holds(file: Path, secret: str) -> bool:
    return secret.encode() in file.read_bytes()


def outward_address() -> str:
    """An address of this machine that others could reach; loopback's second best where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: it only asks which address would be used
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.2"


def answers(address: NodeAddress) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", address.amqp_port)) == 0
