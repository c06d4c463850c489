"""A private RabbitMQ node for `mindbus up`, the demo and the tests."""

import asyncio
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from subprocess import Popen
from typing import Self

from mindbus_fleet.node.address import LOOPBACK, NodeAddress, is_awake, knows_names, lets_in, speaks_amqp
from mindbus_fleet.node.folder import NodeFolder
from mindbus_fleet.node.guarded_process import Guarded, send_to_group, wait_for_exit
from mindbus_fleet.node.installation import (
    CtlFailed,
    Installation,
    NodeAlreadyRunning,
    NodeDidNotStart,
    NodeNotRunning,
    find_rabbitmq,
)

# How long a predecessor that is just ending may hold the folder: a killed Erlang machine returns its memory first.
LOCK_WITHIN_S = 5
POLL_S = 0.05
TRIES_FOR_PORTS = 3


class PrivateNode:
    """Listens on loopback only; what is durable stays in the folder, which one node at a time may use.

    It needs no event loop between calls: one loop may start it, another stop it.
    """

    def __init__(
        self, folder: Path, find: Callable[[], Installation] = find_rabbitmq, workers: Iterable[str] = ()
    ) -> None:
        self._folder = NodeFolder(folder)
        self._find = find
        self._passwords = {worker: secrets.token_urlsafe(24) for worker in workers}
        self._address: NodeAddress | None = None
        self._lock: int | None = None
        self._guarded: Guarded | None = None
        self._broker: Popen[bytes] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.stop()

    @property
    def folder(self) -> Path:
        return self._folder.root

    @property
    def address(self) -> NodeAddress:
        """Its address; stays the same over restarts unless a port is taken meanwhile."""
        if self._address is None:
            raise NodeNotRunning
        return self._address

    @property
    def amqp_url(self) -> str:
        """The default vhost, with the password."""
        return self.address.amqp_url

    @property
    def worker_urls(self) -> dict[str, str]:
        """AMQP address of each worker that it was made for, with a user of its own."""
        return {worker: self.address.url_of(worker, password) for worker, password in self._passwords.items()}

    @property
    def pid(self) -> int:
        return self._running_broker().pid

    @property
    def is_running(self) -> bool:
        """Whether the broker's process lives, frozen or not."""
        return self._broker is not None and self._broker.poll() is None

    async def start(self, within_s: float = 90) -> None:
        """Return when both AMQP and the management API let the user in.

        Raises RabbitMQMissing, NodeAlreadyRunning, NodeDidNotStart.
        """
        installation = self._find()
        if not self.is_running:
            await self.kill()  # what a broker that died by itself has left
        self._lock = await self._take_folder()
        try:
            async with asyncio.timeout(within_s):
                await self._start_on_free_ports(installation, self._lock)
        except TimeoutError as late:
            last_words = self._folder.last_words()
            await self.kill()
            raise NodeDidNotStart(f"(not ready after {within_s:g} s)\n{last_words}") from late
        except BaseException:
            await self.kill()
            raise

    async def stop(self, within_s: float = 30) -> None:
        """End it in good order; when that takes too long, kill it."""
        if self._broker is not None:
            send_to_group(self._broker, signal.SIGCONT)
            send_to_group(self._broker, signal.SIGTERM)
            await wait_for_exit(self._broker, within_s)
        await self.kill()

    async def kill(self) -> None:
        """End it as a power cut would; nothing is left running, the data stay."""
        await self._end_processes()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def answers(self) -> bool:
        """Whether the broker answers just now."""
        return await is_awake(self.address)

    def end_frozen(self) -> None:
        """Kill the broker, which need not notice; `is_running` turns False, `start` tidies up."""
        send_to_group(self._running_broker(), signal.SIGKILL)

    def freeze(self) -> None:
        """Stop the broker's clock: connections stay open while nobody answers."""
        broker = self._running_broker()
        send_to_group(broker, signal.SIGSTOP)
        # Its threads stop one by one; the last of them might still confirm a message.
        os.waitid(os.P_PID, broker.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self) -> None:
        """Let it go on after freeze()."""
        send_to_group(self._running_broker(), signal.SIGCONT)

    async def ctl(self, *arguments: str) -> str:
        """Run rabbitmqctl and return its output. Raises CtlFailed."""
        installation = self._find()
        environment = self._folder.environment(self.address, installation)
        command = [str(installation.ctl), *arguments]
        done = await asyncio.to_thread(
            lambda: subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        )
        if done.returncode != 0:
            raise CtlFailed(f"{' '.join(arguments)}: {done.stderr or done.stdout}")
        return done.stdout

    async def _take_folder(self) -> int:
        deadline = time.monotonic() + LOCK_WITHIN_S
        while True:
            try:
                return self._folder.take()
            except NodeAlreadyRunning:
                if self.is_running or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(POLL_S)

    async def _start_on_free_ports(self, installation: Installation, lock: int) -> None:
        address = (self._folder.address() or NodeAddress.new()).on_free_ports()
        for tries_left in range(TRIES_FOR_PORTS - 1, -1, -1):
            self._address = address
            try:
                return await self._start_at(address, installation, lock)
            except NodeDidNotStart as failure:
                if not tries_left or not failure.port_was_taken:
                    raise
            # Somebody was faster between our look at the port and the broker's.
            await self._end_processes()
            address = address.on_new_ports()
        return None

    async def _start_at(self, address: NodeAddress, installation: Installation, lock: int) -> None:
        self._folder.prepare(address, self._passwords, installation)
        self._guarded = Guarded(self._folder.root, self._folder.environment(address, installation), lock)
        epmd = [str(installation.epmd), "-port", str(address.epmd_port), "-address", LOOPBACK]
        self._guarded.launch(epmd, self._folder.epmd_log)
        await self._until(lambda: knows_names(address.epmd_port))
        self._broker = self._guarded.launch([str(installation.server)], self._folder.console)
        await self._until(lambda: speaks_amqp(address.amqp_port))
        await self._until(lambda: lets_in(address))
        self._folder.keep()

    async def _until(self, ready: Callable[[], Awaitable[bool]]) -> None:
        while not await ready():
            if self._guarded is None or not self._guarded.all_live:
                raise NodeDidNotStart(self._folder.last_words())
            await asyncio.sleep(POLL_S)

    async def _end_processes(self) -> None:
        if self._guarded is not None:
            await self._guarded.end()
        self._guarded = self._broker = None

    def _running_broker(self) -> Popen[bytes]:
        if self._broker is None or self._broker.poll() is not None:
            raise NodeNotRunning
        return self._broker


def running_node(folder: Path) -> NodeAddress | None:
    """Address of the private node running in a data folder, possibly still starting; None if there is none."""
    known = NodeFolder(folder)
    return known.address() if known.is_taken() else None
