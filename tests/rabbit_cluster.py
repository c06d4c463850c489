"""Three RabbitMQ nodes in one cluster on this machine, of which each can be killed, frozen, or lose its disk."""

import asyncio
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import Popen

from mindbus.testing.wait import until
from mindbus_fleet.node.address import LOOPBACK, NodeAddress, knows_names, lets_in, speaks_amqp
from mindbus_fleet.node.folder import NodeFolder
from mindbus_fleet.node.guarded_process import Guarded, kill_group, send_to_group, wait_for_exit
from mindbus_fleet.node.installation import find_rabbitmq
from tests.management import Management

_UP_WITHIN_S = 120.0
# As the documentation of clusters advises where a frozen machine must not hold up the others for a minute.
_NET_TICK_S = 8


@dataclass
class ClusterNode:
    """One node, by the folder that it runs in."""

    folder: NodeFolder
    address: NodeAddress
    environment: dict[str, str]
    guarded: Guarded | None = None
    process: Popen[bytes] | None = None

    @property
    def name(self) -> str:
        return self.environment["RABBITMQ_NODENAME"]

    def launch(self) -> None:
        """Start it; it is not ready yet."""
        assert self.guarded is not None
        self.guarded.environment = self.environment
        self.guarded.folder = self.folder.root
        self.process = self.guarded.launch([str(find_rabbitmq().server)], self.folder.console)

    async def ready(self) -> None:
        """Wait until it lets users in."""
        await until(self._is_up, _UP_WITHIN_S, f"{self.name} lets users in")

    async def kill(self) -> None:
        """End it as a power cut would."""
        assert self.process is not None
        kill_group(self.process)
        await wait_for_exit(self.process)

    def freeze(self) -> None:
        assert self.process is not None
        send_to_group(self.process, signal.SIGSTOP)

    def thaw(self) -> None:
        if self.process is not None:
            send_to_group(self.process, signal.SIGCONT)

    def lose_disk(self) -> None:
        """Delete all that it has stored; it must not run."""
        shutil.rmtree(self.folder.root / "mnesia")

    async def ctl(self, *arguments: str) -> str:
        """The output of rabbitmqctl. Raises CalledProcessError."""
        command = [str(find_rabbitmq().ctl), *arguments]
        done = await asyncio.to_thread(
            subprocess.run, command, env=self.environment, capture_output=True, text=True, check=True
        )
        return str(done.stdout)

    async def _is_up(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.folder.last_words()
        return await speaks_amqp(self.address.amqp_port) and await lets_in(self.address)


@dataclass
class RabbitCluster:
    """All nodes, each of which knows every user."""

    nodes: tuple[ClusterNode, ...]

    @property
    def amqp_url(self) -> str:
        """One address of all nodes."""
        first = self.nodes[0].address
        hosts = ",".join(f"{LOOPBACK}:{node.address.amqp_port}" for node in self.nodes)
        return f"amqp://{first.username}:{first.password}@{hosts}/"

    @property
    def management_url(self) -> str:
        """One address of the management API of all nodes."""
        first = self.nodes[0].address
        hosts = ",".join(f"{LOOPBACK}:{node.address.management_port}" for node in self.nodes)
        return f"http://{first.username}:{first.password}@{hosts}"

    async def running(self) -> set[str]:
        """Names of the nodes that run, as the first of those alive sees it."""
        alive = next(node for node in self.nodes if node.process is not None and node.process.poll() is None)
        address = alive.address
        async with Management(address.management_url, address.username, address.password) as management:
            return await management.running_nodes()


@asynccontextmanager
async def rabbit_cluster(folder: Path, size: int = 3) -> AsyncIterator[RabbitCluster]:
    """A cluster for as long as the block lasts."""
    folders = [NodeFolder(folder / f"node{number}") for number in range(size)]
    locks = [each.take() for each in folders]
    nodes = _made(folders)
    # Of whichever folder: it ends the processes of all.
    guarded = Guarded(folders[0].root, nodes[0].environment, locks[0])
    try:
        await _start(nodes, guarded)
        yield RabbitCluster(nodes)
    finally:
        for node in nodes:
            node.thaw()
        await guarded.end()
        for lock in locks:
            os.close(lock)


def _made(folders: Sequence[NodeFolder]) -> tuple[ClusterNode, ...]:
    """Nodes that know one another by one name service, and the same users."""
    first, cookie = NodeAddress.new(), secrets.token_hex(24)
    shared = {name: getattr(first, name) for name in ("epmd_port", "username", "password", "viewer_password")}
    names = [f"mindbus{number}@localhost" for number, _ in enumerate(folders)]
    nodes = []
    for name, folder in zip(names, folders, strict=True):
        address = replace(NodeAddress.new(), **shared)
        _prepare(folder, address, cookie, names)
        environment = folder.environment(address, find_rabbitmq()) | {"RABBITMQ_NODENAME": name}
        nodes.append(ClusterNode(folder, address, environment))
    return tuple(nodes)


async def _start(nodes: Sequence[ClusterNode], guarded: Guarded) -> None:
    port = nodes[0].address.epmd_port
    guarded.launch([str(find_rabbitmq().epmd), "-port", str(port), "-address", LOOPBACK], nodes[0].folder.epmd_log)
    await until(lambda: knows_names(port), _UP_WITHIN_S, "the name service answers")
    for node in nodes:
        node.guarded = guarded
        node.launch()
    await asyncio.gather(*(node.ready() for node in nodes))
    await until(lambda: _has(nodes), _UP_WITHIN_S, "the nodes have found one another")


async def _has(nodes: Sequence[ClusterNode]) -> bool:
    return await RabbitCluster(tuple(nodes)).running() == {node.name for node in nodes}


def _prepare(folder: NodeFolder, address: NodeAddress, cookie: str, names: list[str]) -> None:
    folder.prepare(address, {}, find_rabbitmq())
    cookie_file = folder.root / "home/.erlang.cookie"
    cookie_file.chmod(0o600)
    cookie_file.write_text(cookie)
    cookie_file.chmod(0o400)
    found = [f"cluster_formation.classic_config.nodes.{number + 1} = {name}\n" for number, name in enumerate(names)]
    with (folder.root / "rabbitmq.conf").open("a", encoding="utf-8") as configuration:
        configuration.write("cluster_formation.peer_discovery_backend = classic_config\n")
        configuration.write("cluster_partition_handling = pause_minority\n")
        configuration.writelines(found)
    advanced = f"[{{kernel, [{{net_ticktime, {_NET_TICK_S}}}]}}, {{rabbit, [{{quorum_tick_interval, 1000}}]}}].\n"
    (folder.root / "advanced.config").write_text(advanced)
