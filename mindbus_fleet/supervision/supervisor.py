"""The supervisor of a fleet on one machine: a private broker and the worker processes.

As a program, which `mindbus up -d` leaves behind, it lives as long as the fleet and does next to nothing: hence it
imports neither Pydantic nor the libraries of the command line.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import Self

from bus_schema.codes import Code
from mindbus.errors import MindBusError
from mindbus.files.disk import allow_many_open_files, write_private
from mindbus.health import MISSED_HEARTBEATS, HealthFolder
from mindbus.logs import configure_logs_later, logger
from mindbus.run_dir import RunSettings, broker_file, last_gateway_url, management_file, user_file
from mindbus.tasks import Supervised, end, run_until_stopped
from mindbus_fleet.node.address import VIEWER
from mindbus_fleet.node.hosted import HostBroker, broker_of
from mindbus_fleet.node.private import PrivateNode
from mindbus_fleet.supervision.children import Child, Group, Launch, rotate_logs
from mindbus_fleet.supervision.run_folder import RunFolder, UpState, WorkerProcess

READY_WITHIN_S = 120.0
# What draining takes beyond the time that messages may take.
_STOP_MARGIN_S = 10.0
_POLL_S = 0.1
_LOOK_S = 1.0
_ROTATE_S = 60.0
_TRIES_TO_START = 3


class WorkersDidNotStart(MindBusError, code=Code.UNAVAILABLE):
    """Not every worker became ready."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"{cleandoc(type(self).__doc__ or '')}\n{detail}")


class Supervisor:
    """Starts a fleet on one data folder, then keeps it alive; `logs` is where its workers write."""

    def __init__(
        self, settings: RunSettings, groups: Sequence[Group], broken: dict[str, str], logs: Path | None = None
    ) -> None:
        self._settings = settings
        self._folder = RunFolder(settings)
        self._health = HealthFolder(settings)
        self._groups, self._broken, self._logs = groups, broken, logs
        workers = [name for group in groups for name in group.workers]
        self._node = broker_of(settings, workers) if settings.amqp_url is None else None
        self._children: list[Child] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._lock: int | None = None
        # Of the broker, how often in a row it has not answered, and when it was asked last.
        self._unanswered, self._asked_at = 0, time.monotonic()
        self._frozen_after_s = settings.heartbeat_s * MISSED_HEARTBEATS
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
            self._keep("broker", partial(self._keep_broker, self._node), _POLL_S)
        self._keep("workers", self._end_frozen_workers, _LOOK_S)
        if self._logs is not None:
            self._keep("logs", partial(asyncio.to_thread, rotate_logs, self._logs), _ROTATE_S)
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
        environment = self._settings.environment()
        if self._settings.metrics_port is not None:
            # A process each, so a port each, in the order in which `up` lists them.
            environment["MINDBUS_METRICS_PORT"] = str(self._settings.metrics_port + len(self._children))
        return Launch(command, environment, lock, log)

    def _publish_address(self, node: PrivateNode | HostBroker) -> None:
        address = node.address
        write_private(management_file(self._settings), address.viewer_url)
        for worker, url in node.worker_urls.items():
            write_private(user_file(self._settings, worker), url)
        # Last: the workers wait for it.
        write_private(broker_file(self._settings), node.amqp_url)

    def _keep(self, name: str, step: Callable[[], Awaitable[None]], interval_s: float) -> None:
        self._tasks.append(asyncio.create_task(Supervised(name, step, interval_s).run(), name=name))

    async def _keep_broker(self, node: PrivateNode | HostBroker) -> None:
        """Start the broker again if it has died. Raises NodeError where it does not start, OSError."""
        if node.is_running:
            await self._end_frozen_broker(node)
            return
        logger().warning("broker died, restarting")
        before = node.amqp_url
        await node.start()
        logger().info("broker is back")
        self._unanswered, self._asked_at = 0, time.monotonic()
        if node.amqp_url != before:
            self._publish_address(node)
            for child in self._children:
                child.restart()
        self._write_state()

    async def _end_frozen_broker(self, node: PrivateNode | HostBroker) -> None:
        """Kill a broker that has not answered for three heartbeats of a worker, asked once in each."""
        if time.monotonic() - self._asked_at < self._settings.heartbeat_s:
            return
        self._unanswered = 0 if await node.answers() else self._unanswered + 1
        self._asked_at = time.monotonic()
        if self._unanswered >= MISSED_HEARTBEATS:
            logger().error("broker is frozen, killing it", pid=node.pid)
            node.end_frozen()

    async def _end_frozen_workers(self) -> None:
        """Kill each process whose workers have missed three heartbeats; it is started again."""
        for child in self._children:
            if child.pid is None:
                continue
            limit_s = READY_WITHIN_S if (sign := self._health.last_sign(child.pid)) == 0 else self._frozen_after_s
            if child.silent_s(sign, _LOOK_S) > limit_s:
                hint = "its log shows where its threads stood; what blocks belongs into a thread"
                logger().error("worker is frozen, killing it", process=child.group.name, pid=child.pid, hint=hint)
                await child.end_frozen()

    async def _until_ready(self) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        while waiting := [child for child in self._children if not self._child_is_ready(child)]:
            hopeless = [c for c in waiting if c.deaths >= _TRIES_TO_START]
            for child in hopeless:
                if not child.group.is_third_party:
                    raise WorkersDidNotStart(child.complaint(f"died {child.deaths} times while starting"))
            if len(hopeless) == len(waiting):
                for child in hopeless:
                    # Somebody else's worker must not keep ours from working; it is still being restarted.
                    name = child.group.name
                    self._broken[name] = f"dies while starting; run `mindbus worker {name}` to see why"
                return
            if time.monotonic() > deadline:
                complaint = f"was not ready within {READY_WITHIN_S:g} s"
                raise WorkersDidNotStart("\n".join(child.complaint(complaint) for child in waiting))
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
            username=VIEWER if node else None,
            password=node.viewer_password if node else None,
            gateway_url=last_gateway_url(self._settings),
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


@dataclass(frozen=True)
class PlainSettings:
    """Settings that an earlier process has read: absolute paths, with the environment of the workers."""

    data: str
    run: str
    tenant: str | None
    amqp_url: str | None
    management_url: str | None
    metrics_port: int | None
    heartbeat_s: float
    drain_s: float
    variables: dict[str, str]

    @classmethod
    def of(cls, settings: RunSettings) -> Self:
        return cls(
            data=str(settings.data_dir.absolute()),
            run=str(settings.run_dir.absolute()),
            tenant=settings.tenant,
            amqp_url=settings.amqp_url,
            management_url=settings.management_url,
            metrics_port=settings.metrics_port,
            heartbeat_s=settings.heartbeat_s,
            drain_s=settings.drain_s,
            variables=settings.environment(),
        )

    @property
    def data_dir(self) -> Path:
        return Path(self.data)

    @property
    def run_dir(self) -> Path:
        return Path(self.run)

    def environment(self) -> dict[str, str]:
        """A copy of the environment of the workers."""
        return dict(self.variables)


@dataclass(frozen=True)
class Plan:
    """The fleet to keep alive, as the program reads it from its standard input."""

    settings: PlainSettings
    groups: tuple[Group, ...]
    broken: dict[str, str]
    logs: str
    log_level: str
    log_format: str

    @classmethod
    def read(cls, text: str) -> Self:
        """The plan of which `as_json` is the text."""
        fields = json.loads(text)
        groups = (Group(each["name"], tuple(each["workers"]), each["is_third_party"]) for each in fields["groups"])
        return cls(**fields | {"settings": PlainSettings(**fields["settings"]), "groups": tuple(groups)})

    def as_json(self) -> str:
        return json.dumps(asdict(self))


async def keep_up(plan: Plan) -> None:
    """Keep the fleet up for ever."""
    async with fleet_up(Supervisor(plan.settings, plan.groups, plan.broken, Path(plan.logs))):
        await asyncio.Event().wait()


def main() -> None:
    plan = Plan.read(sys.stdin.read())
    configure_logs_later(plan.log_level, plan.log_format)
    allow_many_open_files()
    try:
        asyncio.run(run_until_stopped(keep_up(plan)))
    except (MindBusError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
