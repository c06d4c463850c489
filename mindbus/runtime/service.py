"""Service: one running worker with its consumers, tasks, heartbeat, leadership and drain."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from bus_schema.fleet import NOTE_CHARS, Heartbeat, State
from bus_schema.messages import Event
from mindbus.bus.client import Client
from mindbus.bus.connection import new_client, new_sender
from mindbus.bus.context import ClockOffsets
from mindbus.bus.sender import Sender
from mindbus.bus.telemetry import PUBLISHED, series
from mindbus.bus.topology import Topology, commands_queue, events_queue, rungs_of, targets_of
from mindbus.bus.transport import Consumer, Incoming, Transport
from mindbus.bus.worker import Leadership, Worker, WorkerContext
from mindbus.errors import Damaged
from mindbus.files.store import open_files
from mindbus.logs import logger
from mindbus.middleware.pipeline import Authorisation
from mindbus.runtime.processor import Mailboxes, Processor, Work
from mindbus.runtime.provision import Administrator, limit_deliveries, partitions_of, queues_of, shared_by_all, when_up
from mindbus.runtime.worker_tasks import CrashReplay, WorkerTasks
from mindbus.settings import Settings
from mindbus.tasks import Supervised, end, lasting_tasks
from mindbus.version import __version__

_LEAD_AGAIN_S = 1.0


class Service:
    """Runs a worker on a transport until it is drained.

    `report` is called with its name, its state and its note at every heartbeat.

    A worker with a leadership consumes while it leads; until then, and whenever it has lost it, it stands by.
    """

    def __init__(
        self,
        worker: Worker,
        transport: Transport,
        sender: Sender,
        client: Client,
        settings: Settings,
        report: Callable[[str, State, str], None],
    ) -> None:
        self.worker, self._transport, self._sender, self._settings = worker, transport, sender, settings
        self._asking, self._report = client, report
        self._consumers: list[Consumer] = []
        self._at_work_tasks: set[asyncio.Task[None]] = set()
        replay = CrashReplay(worker, transport, rungs_of(settings.retry_rungs)[0])
        self._tasks = WorkerTasks(worker, sender, transport, replay)
        self._mailboxes: list[Mailboxes] = []
        self._presence: list[asyncio.Task[None]] = []
        self._lasting: list[Supervised] = []
        self._at_work: dict[str, asyncio.Future[int]] = {}
        self._is_open = asyncio.Event()
        self._stands_by = False
        self._damage = ""
        self._clocks = ClockOffsets()

    @property
    def trouble(self) -> str:
        """Reason why it is not well, beyond a broker that is away; empty where there is none."""
        return self._damage or self._failing or self.worker.inbox.trouble

    @property
    def _failing(self) -> str:
        names = [*self._tasks.failing, *(task.name for task in self._lasting if task.is_failing)]
        return f"failing again and again: {', '.join(names)}; its log says why" if names else ""

    @property
    def note(self) -> str:
        """Its trouble, or something to look at in one that is well."""
        return self.trouble or self.worker.inbox.note or self.worker.health_note or self._clocks.wrong_clock()

    @property
    def state(self) -> State:
        """Ready while it consumes from all of its queues and nothing that it does by itself keeps failing."""
        if self._stands_by and not self._failing:
            return State.STANDING_BY
        is_consuming = self._is_open.is_set() and all(consumer.ready for consumer in self._consumers)
        return State.READY if is_consuming and not self.trouble else State.UNREADY

    @property
    def at_work(self) -> int:
        """Number of messages that are being handled."""
        return len(self._at_work_tasks)

    @property
    def makes_queues(self) -> bool:
        """Whether it makes its queues itself, as participants do that share a login of RabbitMQ."""
        return self._transport.shares_user

    async def require(self) -> None:
        """Check that its queues have been made, where it does not make them itself. Raises TopologyMissing."""
        await self._transport.require(queues_of(self.worker, self._settings))

    async def start(self) -> None:
        """Open the worker, then its queues; or stand by, if another instance leads."""
        with lasting_tasks() as self._lasting:
            leadership = self.worker.leadership
            self._stands_by = leadership is not None and not await leadership.try_acquire()
            if self._stands_by:
                logger().info("another instance leads, standing by", worker=self.worker.name)
            else:
                await self._open()
            if leadership is not None:
                term = partial(self._serve_term, leadership)
                self._presence.append(Supervised(f"{self.worker.name} leads", term, _LEAD_AGAIN_S, lasts=True).start())
        # Apart: while the bus is away, the file says that the worker lives.
        for name, step in (("health", self._report_health), ("heartbeat", self._send_heartbeat)):
            beating = Supervised(f"{self.worker.name} {name}", step, self._settings.heartbeat_s)
            self._presence.append(beating.start())

    async def wait_ready(self) -> None:
        """Wait until it consumes from all of its queues, unless it stands by."""
        if not self._stands_by:
            await self._is_open.wait()
            await asyncio.gather(*(consumer.wait_ready() for consumer in self._consumers))
        self._report(self.worker.name, self.state, self.note)

    async def drain(self) -> None:
        """Take nothing more, finish what has begun within the drain time, close."""
        await asyncio.gather(*(mailboxes.close() for mailboxes in self._mailboxes))
        # Another instance would be served at once, while an earlier message of the same key is still at work here.
        if not self.worker.is_ordered:
            await asyncio.gather(*(consumer.pause() for consumer in self._consumers))
        if self._at_work_tasks:
            _done, unfinished = await asyncio.wait(self._at_work_tasks, timeout=self._settings.drain_s)
            if unfinished:
                logger().warning("cut short, to be delivered again", worker=self.worker.name, messages=len(unfinished))
            await end(*unfinished)
        await end(*self._presence)
        await self._close()
        if self.worker.leadership is not None:
            await self.worker.leadership.release()
        await self.worker.stop()
        await self._asking.stop_listening()

    async def _serve_term(self, leadership: Leadership) -> None:
        """Wait for the lead, consume until it is lost; who cannot consume leaves it to the next."""
        if self._stands_by:
            await leadership.acquire()
        try:
            if not self._is_open.is_set():
                self._stands_by = False
                await self._open()
                logger().info("takes over", worker=self.worker.name)
            await leadership.wait_until_lost()
        except Exception:
            await self._step_down(leadership)
            raise
        await self._step_down(leadership)

    async def _step_down(self, leadership: Leadership) -> None:
        self._stands_by = True
        try:
            await self._close()
        finally:
            await leadership.release()

    async def _open(self) -> None:
        await self.worker.start()
        await self.worker.inbox.start(self._transport)
        routes, name = self.worker.routes, self.worker.name
        topology = topology_of(self.worker, self._settings)
        if routes.commands:
            targets = targets_of(name, self.worker.partitions)
            own = self._settings.partition
            for target in targets if own is None or len(targets) == 1 else targets[own : own + 1]:
                self._consume(topology, commands_queue(target))
        if routes.event_keys:
            self._consume(topology, events_queue(name))
        self._tasks.start()
        self._is_open.set()

    async def _close(self) -> None:
        """Stop consuming. Handlers that still run are fenced by their rows in the inbox; their messages come again."""
        self._is_open.clear()
        try:
            await self._tasks.stop()
            await self.worker.inbox.stop()
        finally:
            await asyncio.gather(*(mailboxes.close() for mailboxes in self._mailboxes))
            await asyncio.gather(*(consumer.close() for consumer in self._consumers))
            self._mailboxes.clear()
            self._consumers.clear()

    def _consume(self, topology: Topology, queue: str) -> None:
        ladder, worker = rungs_of(self._settings.retry_rungs), self.worker
        processor = Processor(
            worker,
            self._sender,
            self._transport,
            ladder,
            queue,
            self._at_work,
            in_place=worker.is_ordered,
            authorisation=Authorisation(self._settings.operators, self._settings.readers),
            clocks=self._clocks,
        )
        deliver: Callable[[Incoming], None] = partial(self._process, processor)
        if worker.is_ordered:
            self._mailboxes.append(Mailboxes(processor, partial(self._begin, queue)))
            deliver = self._mailboxes[-1].deliver
        self._consumers.append(
            self._transport.consume(topology, queue, worker.concurrency, deliver, worker.on_consuming)
        )

    def _process(self, processor: Processor, incoming: Incoming) -> None:
        self._begin(processor.queue, incoming, partial(processor.process, incoming))

    def _begin(self, queue: str, incoming: Incoming, work: Work) -> asyncio.Task[None]:
        # A task of ours, not of the channel's: the work outlives a lost connection.
        task = asyncio.create_task(self._settle(queue, incoming, work))
        self._at_work_tasks.add(task)
        task.add_done_callback(self._at_work_tasks.discard)
        return task

    async def _settle(self, queue: str, incoming: Incoming, work: Work) -> None:
        try:
            await work()
        except Damaged as damage:
            await self._halt(str(damage))
            await incoming.requeue()
        except Exception:  # noqa: BLE001  # a mistake of the runtime's own must not leave the message in limbo
            logger().exception("delivery failed", queue=queue, id=incoming.properties.message_id)
            # Bounded by the queue's delivery limit.
            await incoming.requeue()

    async def _halt(self, damage: str) -> None:
        """Consume no more until the process is started anew; what comes meanwhile stays in the queues."""
        if not self._damage:
            logger().error("worker stops consuming", worker=self.worker.name, reason=damage)
        self._damage = damage
        await asyncio.gather(*(consumer.pause() for consumer in self._consumers))

    async def _report_health(self) -> None:
        if damage := self.worker.inbox.damage:
            await self._halt(damage)
        self._report(self.worker.name, self.state, self.note)

    async def tell(self, state: Event) -> None:
        """Publish what is void once the next of its kind is told. Raises BusUnavailable."""
        await self._transport.publish(replace(await self._sender.event(state), transient=True))
        series(PUBLISHED, state.wire.type).inc()

    async def _send_heartbeat(self) -> None:
        beat = Heartbeat(
            service=self.worker.name,
            instance=self._sender.instance,
            ready=self.state is State.READY,
            standing_by=self._stands_by,
            version=__version__,
            note=self.note[:NOTE_CHARS],
        )
        await self.tell(beat)


def build(
    make: Callable[[WorkerContext], Worker],
    name: str,
    settings: Settings,
    transport: Transport,
    report: Callable[[str, State, str], None] = lambda _name, _state, _note: None,
) -> Service:
    """Build a worker with a client of its own, ready to be started."""
    principal = new_sender(name, f"svc.{name}", settings)
    client = new_client(transport, principal, settings)
    worker = make(WorkerContext(settings, client))
    worker.partitions = partitions_of(worker, settings)
    if worker.direct_files:
        principal.claims.files = principal.claims.files or open_files(settings)
    identity = worker.identity if worker.identity.startswith("svc.") else f"{worker.identity}.{principal.instance}"
    sender = replace(principal, service=worker.name, identity=identity)
    return Service(worker, transport, sender, client, settings, report)


def topology_of(worker: Worker, settings: Settings) -> Topology:
    """Everything that a worker needs on the broker."""
    return shared_by_all(settings) + queues_of(worker, settings)


async def provide(services: Sequence[Service], settings: Settings) -> None:
    """Have the exchanges and queues of services, before they start; those that share a login make theirs later.

    On the private node its owner makes these. Raises TopologyMissing where somebody else has to.
    """
    admin = Administrator.of_private_node(settings)
    if admin is not None:
        workers = [service.worker for service in services]
        await when_up(lambda: admin.provide(workers, settings))
    elif services and services[0].makes_queues:
        await limit_deliveries(settings)
    for service in services:
        await service.require()
