"""The supervisor of a fleet on one machine: a private broker and the worker processes."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from inspect import cleandoc
from pathlib import Path

from bus_schema.replies import Code
from config.settings import FleetSettings
from gateway.address import last_url
from mindbus.bus.connection import broker_file
from mindbus.errors import MindBusError
from mindbus.files.disk import write_private
from mindbus.health import HealthFolder
from mindbus.logs import logger
from mindbus.management import management_file
from mindbus.tasks import end
from mindbus_fleet.node.installation import NodeError
from mindbus_fleet.node.private import PrivateNode
from mindbus_fleet.supervision.children import LONGEST_DELAY_S, Child, Group, Launch
from mindbus_fleet.supervision.run_folder import RunFolder, UpState, WorkerProcess

READY_WITHIN_S = 120.0
# What draining takes beyond the time that messages may take.
_STOP_MARGIN_S = 10.0
_POLL_S = 0.1
_TRIES_TO_START = 3


class WorkersDidNotStart(MindBusError, code=Code.UNAVAILABLE):
    """Not every worker became ready."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"{cleandoc(type(self).__doc__ or '')}\n{detail}")


class Supervisor:
    """Starts a fleet on one data folder, then keeps it alive; `logs` is where its workers write."""

    def __init__(
        self, settings: FleetSettings, groups: Sequence[Group], broken: dict[str, str], logs: Path | None = None
    ) -> None:
        self._settings = settings
        self._folder = RunFolder(settings)
        self._health = HealthFolder(settings)
        self._groups, self._broken, self._logs = groups, broken, logs
        self._node = PrivateNode(settings.data_dir / "broker") if settings.amqp_url is None else None
        self._children: list[Child] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._lock: int | None = None
        self.is_ready = False

    async def start(self) -> UpState:
        """Return when every worker is ready. Raises AlreadyUp, OrphansRemain, NodeError, WorkersDidNotStart."""
        self._lock = self._folder.take()
        self._health.sweep()
        self._folder.forget_addresses()
        self._write_state()
        for group in self._groups:
            child = Child(group, self._launch(group, self._lock), self._write_state)
            self._children.append(child)
            child.start()
        if self._node is not None:
            # The workers load their code meanwhile, then wait for the address.
            await self._node.start()
            self._publish_address(self._node)
            self._tasks.append(asyncio.create_task(self._keep_broker(self._node), name="keep broker"))
        await self._until_ready()
        self.is_ready = True
        return self._write_state()

    async def stop(self) -> None:
        """Drain the workers, end the broker, remove what said that they run."""
        await end(*self._tasks)
        within_s = self._settings.drain_s + _STOP_MARGIN_S
        for last in (False, True):
            stopping = [c for c in self._children if ("storage" in c.group.workers) is last]
            await asyncio.gather(*(child.stop(within_s) for child in stopping))
        if self._node is not None:
            await self._node.stop()
        if self._lock is not None:
            self._folder.forget()
            # The lock stays: `mindbus down` waits for it, so for the end of this very process.

    def _launch(self, group: Group, lock: int) -> Launch:
        command = [sys.executable, "-m", "mindbus.cli.main", "worker", "--supervised", *group.workers]
        log = self._logs / f"{group.name}.log" if self._logs is not None else None
        settings = self._settings
        if settings.metrics_port is not None:
            # A process each, so a port each, in the order in which `up` lists them.
            port = settings.metrics_port + len(self._children)
            settings = settings.model_copy(update={"metrics_port": port})
        return Launch(command, settings.environment(), lock, log)

    def _publish_address(self, node: PrivateNode) -> None:
        address = node.address
        login = f"{address.username}:{address.password}@"
        write_private(management_file(self._settings), address.management_url.replace("://", f"://{login}", 1))
        write_private(broker_file(self._settings), node.amqp_url)

    async def _keep_broker(self, node: PrivateNode) -> None:
        failures = 0
        while True:
            await asyncio.sleep(_POLL_S)
            if node.is_running:
                continue
            logger().warning("broker died, restarting")
            before = node.amqp_url
            try:
                await node.start()
            except NodeError as failure:
                failures += 1
                delay_s = min(2.0**failures, LONGEST_DELAY_S)
                logger().error("broker does not start", reason=str(failure), again_in_s=delay_s)
                await asyncio.sleep(delay_s)
                continue
            failures = 0
            logger().info("broker is back")
            if node.amqp_url != before:
                self._publish_address(node)
                for child in self._children:
                    child.restart()
            self._write_state()

    async def _until_ready(self) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        while waiting := [child for child in self._children if not self._child_is_ready(child)]:
            hopeless = [c for c in waiting if c.deaths >= _TRIES_TO_START]
            for child in hopeless:
                if not child.group.is_third_party:
                    raise WorkersDidNotStart(_complaint(child, f"died {child.deaths} times while starting"))
            if len(hopeless) == len(waiting):
                for child in hopeless:
                    # Somebody else's worker must not keep ours from working; it is still being restarted.
                    name = child.group.name
                    self._broken[name] = f"dies while starting; run `mindbus worker {name}` to see why"
                return
            if time.monotonic() > deadline:
                complaint = f"was not ready within {READY_WITHIN_S:g} s"
                raise WorkersDidNotStart("\n".join(_complaint(child, complaint) for child in waiting))
            await asyncio.sleep(_POLL_S)

    def _child_is_ready(self, child: Child) -> bool:
        ready = {health.name for health in self._health.all_here() if health.pid == child.pid and health.is_well}
        return ready.issuperset(child.group.workers)

    def _write_state(self) -> UpState:
        node = self._node.address if self._node is not None and self._node.is_running else None
        state = UpState(
            pid=os.getpid(),
            status="ready" if self.is_ready else "starting",
            data_dir=str(self._folder.data_dir),
            amqp_url=node.amqp_url if node else self._settings.amqp_url,
            management_url=node.management_url if node else self._settings.management_url,
            username=node.username if node else None,
            password=node.password if node else None,
            gateway_url=last_url(self._settings),
            workers=tuple(WorkerProcess(name=c.group.name, pid=c.pid, workers=c.group.workers) for c in self._children),
            broken=self._broken,
        )
        self._folder.write_state(state)
        return state


@asynccontextmanager
async def fleet_up(supervisor: Supervisor) -> AsyncIterator[UpState]:
    """A fleet for as long as the block lasts; a cancelled start leaves nothing behind either."""
    try:
        yield await supervisor.start()
    finally:
        stopping = asyncio.create_task(supervisor.stop())
        while not stopping.done():
            # Whoever cancels once more does not get processes left behind for it.
            with suppress(asyncio.CancelledError):
                await asyncio.shield(stopping)
        stopping.result()


def _complaint(child: Child, what: str) -> str:
    words = child.last_words()
    return f"{', '.join(child.group.workers)} {what}." + (f" The end of its log:\n{words}" if words else "")
