"""Worker of simulations: starts, resumes, stops one at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict

from agents.sim.generator import MessageGenerator
from agents.sim.scenarios import SimLibrary
from bus_schema import sim
from bus_schema.data import ClearData, Removed
from bus_schema.ids import derived
from bus_schema.replies import Code
from bus_schema.sim import GetSimStatus, SimCounts, SimStarted, SimState, SimStopped, StartSim, StopSim
from config.settings import FleetSettings
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, on_command
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import Rejected, TemporaryFailure
from mindbus.logs import logger
from mindbus.sdk.agent_state import AgentStateStore, OutgoingMessage
from mindbus.tasks import end
from workers.sim.player import SimPlayer, SimProgress

T = TypeVar("T")

_ONLY = "simulation"
_LOOKS_AGAIN_S = 1.0


class SimRecord(BaseModel):
    """The simulation that runs, or ran last; all messages up to `done` have been seen to."""

    model_config = ConfigDict(frozen=True)
    sim_id: str = ""
    order: StartSim | None = None
    scenario: str = ""
    started_at: AwareDatetime | None = None
    is_running: bool = False
    done: int = 0
    failed: tuple[int, ...] = ()
    counts: SimCounts | None = None


class SimWorker(Worker):
    """Plays one simulation at a time; one that was interrupted goes on where it was."""

    name = "sim"
    start_stage = 5

    def __init__(self, context: WorkerContext) -> None:
        self._bus, self._clock = context.bus, context.clock
        self._library = SimLibrary(context.settings_as(FleetSettings).sim_dir)
        self._states = AgentStateStore(context.bus, self.name, SimRecord)
        self._player: SimPlayer | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Resume the simulation of an earlier instance as soon as storage answers."""
        self._task = asyncio.create_task(self._resume(), name="simulation")

    async def stop(self) -> None:
        """Interrupt the simulation; the next start resumes it."""
        if self._task is not None:
            await end(self._task)
        if self._player is not None:
            await self._player.abandon()

    @on_command
    async def begin(self, command: StartSim, context: MessageContext) -> list[OutgoingMessage | sim.Simulation]:
        """Start a simulation, unless one is running."""
        scenario = self._generator(command)[1]
        sim_id = f"sim_{derived(context.message_id, 'simulation')}"

        async def begun(last: SimRecord) -> tuple[SimRecord, Sequence[OutgoingMessage]]:
            if last.is_running:
                raise Rejected(Code.CONFLICT, f"{last.sim_id} is running; stop it first", {"sim_id": last.sim_id})
            fields = command.model_dump() | {"sim_id": sim_id, "scenario": scenario}
            record = SimRecord(
                sim_id=sim_id, order=command, scenario=scenario, started_at=self._clock(), is_running=True
            )
            return record, [Publish(SimStarted.model_validate(fields))]

        said = await self._states.process_once(_ONLY, context.message_id, begun)
        record = await self._states.state(_ONLY)
        if self._player is None and record.is_running:
            self._player = self._player_from(record)
            self._task = asyncio.create_task(self._run(record), name="simulation")
        return [sim.Simulation(sim_id=sim_id), *said]

    @on_command
    async def end(self, command: StopSim) -> SimCounts:
        """Stop the simulation once all messages are answered; the counts are final."""
        record = await self._states.state(_ONLY)
        if not record.sim_id or command.sim_id not in (None, record.sim_id):
            raise Rejected(Code.NOT_FOUND, "there is no such simulation; sim.status tells which one runs, or ran last")
        if record.is_running:
            if self._player is None or self._task is None:
                raise TemporaryFailure("the simulation is about to go on")
            self._player.stop()
            await asyncio.wait({self._task})
            record = await self._states.state(_ONLY)
        if record.counts is None:
            raise TemporaryFailure("the simulation has not come to its end")
        return record.counts

    @on_command
    async def clear(self, _command: ClearData, context: MessageContext) -> Removed:
        """Stop the simulation that runs, delete its record."""
        record = await self._states.state(_ONLY)
        if record.is_running:
            await self.end(StopSim())
        await self._states.forget(_ONLY, "", lambda _record: None)
        return Removed.of({"simulations": int(bool(record.sim_id))})

    @on_command
    async def status(self, query: GetSimStatus) -> SimState:
        record = await self._states.state(_ONLY)
        order = record.order
        if order is None:
            return SimState()
        live = self._player.progress.counts(record.sim_id) if self._player and record.is_running else record.counts
        state = order.model_dump() | {"is_running": record.is_running, "scenario": record.scenario}
        return SimState.model_validate(state | {"started_at": record.started_at, "counts": live})

    async def _resume(self) -> None:
        record = await _until_stored(lambda: self._states.state(_ONLY))
        if record.is_running and self._player is None:
            await self._run(record)
        elif not record.is_running:
            await _until_stored(lambda: self._states.publish_due(_ONLY, lambda last: (last, ()), self._bus.publish))

    def _player_from(self, record: SimRecord) -> SimPlayer:
        assert record.order is not None
        order = record.order
        simulation, _scenario = self._generator(order)
        messages = islice(simulation.messages(), record.done, order.limit)
        return SimPlayer(self._bus, record.sim_id, messages, order.speed, _progress_of(record))

    async def _run(self, record: SimRecord) -> None:
        """Play it from where it is; one that cannot go on ends there, or it could neither be stopped nor replaced."""
        try:
            player = self._player = self._player or self._player_from(record)
            reason = await player.run(lambda: self._save(player, record.sim_id))
        except Exception as error:  # noqa: BLE001  # as for files that have changed since it began
            logger().exception("simulation cannot go on", sim_id=record.sim_id)
            reason = f"it cannot go on: {error}"
        await self._conclude(record, reason)
        self._player = None

    async def _conclude(self, record: SimRecord, reason: str) -> None:
        progress = _progress_of(record)
        if self._player is not None:
            await self._player.abandon()
            progress = self._player.progress

        def ended(last: SimRecord) -> tuple[SimRecord, Sequence[SimStopped]]:
            if not last.is_running:
                return last, ()
            stopped = SimStopped(counts=progress.counts(record.sim_id), reason=reason)
            return last.model_copy(update=_changes(progress, record.sim_id) | {"is_running": False}), (stopped,)

        await _until_stored(lambda: self._states.publish_due(_ONLY, ended, self._bus.publish))

    async def _save(self, player: SimPlayer, sim_id: str) -> None:
        """Save the progress once; the next save makes up for a failed one."""
        change = _changes(player.progress, sim_id)
        try:
            await self._states.change(_ONLY, lambda record: record.model_copy(update=change))
        except TemporaryFailure as error:
            logger().warning("simulation not written down", reason=str(error))

    def _generator(self, order: StartSim) -> tuple[MessageGenerator, str]:
        """The generator of the messages with the scenario's name. Raises Rejected where it cannot be played."""
        team = self._library.team(order.profiles)
        scenario = self._library.scenario(order.scenario or team.scenario)
        return MessageGenerator(team, scenario, order.seed), scenario.name


async def _until_stored(call: Callable[[], Awaitable[T]]) -> T:
    """Repeat a call until storage answers."""
    while True:
        try:
            return await call()
        except TemporaryFailure as error:
            logger().warning("simulation waits for storage", reason=str(error))
            await asyncio.sleep(_LOOKS_AGAIN_S)


def _progress_of(record: SimRecord) -> SimProgress:
    return SimProgress(begun=record.done, done=record.done, failed=set(record.failed))


def _changes(progress: SimProgress, sim_id: str) -> dict[str, object]:
    return {
        "done": progress.done,
        "failed": tuple(sorted(number for number in progress.failed if number <= progress.done)),
        "counts": progress.counts(sim_id),
    }
