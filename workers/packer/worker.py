"""The packer: packs episodes on command and by schedule."""

import time
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

from agents.models.language_model import LanguageModel
from agents.models.selection import model_of
from bus_schema.episodes import Layer
from bus_schema.lsm_packing import DueEpisode, GetDueEpisodes
from bus_schema.packer import Packed, PackEpisode, PackRun, RunPacking
from config.settings import FleetSettings
from mindbus.bus.handlers import every, on_command
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import Rejected, TemporaryFailure
from mindbus.logs import logger
from workers.packer.layer_transition import LayerTransition, TransitionResult

_BATCH = 20
# Longest run: the requester may wait for the reply, and a next run continues.
_MAX_RUN_S = 15.0
_SCHEDULED_LIMIT = 200
_CHECK_INTERVAL_S = 1.0
_RETRY_AFTER = timedelta(seconds=30)


class PackerWorker(Worker):
    """Stateless: memory says what is due, so that an interrupted run is continued by the next one."""

    name = "packer"
    concurrency = 2
    # Memory may be unavailable for long.
    attempts = 150

    def __init__(self, context: WorkerContext, model: LanguageModel | None = None) -> None:
        self._clock = context.clock
        self._model = model or model_of(context.settings_as(FleetSettings))
        self._transition = LayerTransition(context.bus.acting_as(self.identity, service=self.name), self._model)
        self._interval = timedelta(seconds=context.settings_as(FleetSettings).packer_interval_s)
        self._next_run = context.clock()

    async def stop(self) -> None:
        """Close the model."""
        await self._model.aclose()

    @on_command
    async def pack(self, command: PackEpisode) -> Packed:
        """Pack an episode layer by layer: a hot one becomes warm before it becomes cold."""
        packed = (await self._transition.apply(command.episode_id, Layer.WARM, command.at)).packed
        if command.to is Layer.COLD:
            cold = (await self._transition.apply(command.episode_id, Layer.COLD, command.at)).packed
            packed = _combined(packed, cold)
        return packed

    @on_command
    async def run(self, command: RunPacking) -> PackRun:
        return await self._run(command.at, command.limit)

    @every(seconds=_CHECK_INTERVAL_S)
    async def run_when_due(self) -> None:
        """Run at the interval of the settings."""
        if not self._interval or self._clock() < self._next_run:
            return
        try:
            done = await self._run(None, _SCHEDULED_LIMIT)
        except (TemporaryFailure, Rejected) as error:
            logger().warning("packing waits", reason=str(error))
            self._next_run = self._clock() + _RETRY_AFTER
            return
        self._next_run = self._clock() + (self._interval if done.is_done else timedelta(0))

    async def _run(self, at: datetime | None, limit: int) -> PackRun:
        totals, deadline = _RunTotals(), time.monotonic() + _MAX_RUN_S
        async for due in self._due(at, totals):
            if totals.packed >= limit or time.monotonic() > deadline:
                return totals.run.model_copy(update={"is_done": False})
            totals.add(await self._apply(due, at))
        return totals.run

    async def _due(self, at: datetime | None, totals: "_RunTotals") -> AsyncIterator[DueEpisode]:
        """Due episodes, in passes until one packs nothing: a new warm episode may be due to go cold."""
        number = packed_before = -1
        while packed_before < totals.packed:
            packed_before, number, after = totals.packed, number + 1, None
            while items := await self._batch(at, after, number):
                for due in items:
                    yield due
                after = items[-1].episode_id

    async def _batch(self, at: datetime | None, after: str | None, number: int) -> tuple[DueEpisode, ...]:
        query = GetDueEpisodes(at=at, after=after, limit=_BATCH)
        return (await self._transition.request(f"due/{number}/{after}", query)).items

    async def _apply(self, due: DueEpisode, at: datetime | None) -> TransitionResult:
        try:
            return await self._transition.apply(due.episode_id, due.to, at)
        except Rejected as error:
            # Such as an episode that has been erased: the others are packed all the same.
            logger().warning("episode not packed", episode_id=due.episode_id, code=error.code.value, reason=str(error))
            refused = Packed(episode_id=due.episode_id, outcome="refused", layer=due.layer, reason=str(error))
            return TransitionResult(refused)


class _RunTotals:
    """Totals of a run in transitions: an episode that goes down two layers counts twice."""

    def __init__(self) -> None:
        self.run = PackRun()

    @property
    def packed(self) -> int:
        return self.run.warm + self.run.cold

    def add(self, result: TransitionResult) -> None:
        packed, run = result.packed, self.run
        if packed.outcome != "packed":
            self._update(refused=run.refused + (packed.outcome == "refused"))
            return
        self._update(
            warm=run.warm + (packed.layer is Layer.WARM),
            cold=run.cold + (packed.layer is Layer.COLD),
            words_before=run.words_before + result.words_before,
            words_after=run.words_after + result.words_after,
            put_back=run.put_back + len(packed.put_back),
            struck_out=run.struck_out + len(packed.struck_out),
        )

    def _update(self, **counts: int) -> None:
        self.run = self.run.model_copy(update=counts)


def _combined(first: Packed, second: Packed) -> Packed:
    """Result of two transitions; the layer is that of the second unless that changed nothing."""
    if second.outcome == "unchanged" or first.outcome == "unchanged":
        return first if second.outcome == "unchanged" else second
    put_back, struck_out = (*first.put_back, *second.put_back), (*first.struck_out, *second.struck_out)
    return second.model_copy(update={"put_back": put_back, "struck_out": struck_out})
