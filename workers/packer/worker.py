"""Listens for what is to be kept more densely."""

import time
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

from agents.models.language_model import LanguageModel
from agents.models.selection import model_of
from bus_schema.episodes import Layer
from bus_schema.lsm_packing import DueEpisode, GetDueEpisodes
from bus_schema.packer import Packed, PackEpisode, PackRun, RunPacking
from mindbus.bus.handlers import every, on_command
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import Rejected, TemporaryFailure
from mindbus.logs import logger
from workers.packer.descent import Descent, Step
from workers.packer.tally import Tally

_BATCH = 20
# Somebody may wait for the answer; whoever asks again has it go on.
_PORTION_S = 15.0
_SCHEDULED = 200
_LOOKS_S = 1.0
_AGAIN = timedelta(seconds=30)


class PackerWorker(Worker):
    """Keeps nothing itself: memory says what is due, so that a run that was cut short is simply gone on with."""

    name = "packer"
    concurrency = 2
    # Memory may be away for long.
    attempts = 150

    def __init__(self, context: WorkerContext, model: LanguageModel | None = None) -> None:
        self._clock = context.clock
        self._model = model or model_of(context.settings)
        self._descent = Descent(context.bus.acting_as(self.identity, service=self.name), self._model)
        self._interval = timedelta(seconds=context.settings.packer_interval_s)
        self._next_run = context.clock()

    async def stop(self) -> None:
        """Let go of the model."""
        await self._model.aclose()

    @on_command
    async def pack(self, command: PackEpisode) -> Packed:
        """Step by step: a cold one goes by way of warm."""
        done: Packed | None = None
        for to in (Layer.WARM, Layer.COLD) if command.to is Layer.COLD else (Layer.WARM,):
            step = (await self._descent.one_down(command.episode_id, to, command.at)).packed
            done = _both(done, step) if done else step
        assert done is not None
        return done

    @on_command
    async def run(self, command: RunPacking) -> PackRun:
        return await self._run(command.at, command.limit)

    @every(seconds=_LOOKS_S)
    async def run_when_due(self) -> None:
        """What has come of age since the last time."""
        if not self._interval or self._clock() < self._next_run:
            return
        try:
            done = await self._run(None, _SCHEDULED)
        except (TemporaryFailure, Rejected) as trouble:
            logger().warning("packing waits", reason=str(trouble))
            self._next_run = self._clock() + _AGAIN
            return
        self._next_run = self._clock() + (self._interval if done.is_done else timedelta(0))

    async def _run(self, at: datetime | None, limit: int) -> PackRun:
        tally, ends = Tally(), time.monotonic() + _PORTION_S
        async for due in self._due(at, tally):
            if tally.packed >= limit or time.monotonic() > ends:
                return tally.done.model_copy(update={"is_done": False})
            step = await self._one(due, at)
            tally.count(step.packed, step.words_before, step.words_after)
        return tally.done

    async def _due(self, at: datetime | None, tally: Tally) -> AsyncIterator[DueEpisode]:
        """All, in passes until one of them packs nothing: a warm episode may be due to be cold at once."""
        number = packed_before = -1
        while packed_before < tally.packed:
            packed_before, number, after = tally.packed, number + 1, None
            while items := await self._batch(at, after, number):
                for due in items:
                    yield due
                after = items[-1].episode_id

    async def _batch(self, at: datetime | None, after: str | None, number: int) -> tuple[DueEpisode, ...]:
        asked = GetDueEpisodes(at=at, after=after, limit=_BATCH)
        return (await self._descent.ask(f"due/{number}/{after}", asked)).items

    async def _one(self, due: DueEpisode, at: datetime | None) -> Step:
        try:
            return await self._descent.one_down(due.episode_id, due.to, at)
        except Rejected as no:
            # One that is gone must not keep the others.
            logger().warning("episode not packed", episode_id=due.episode_id, code=no.code.value, reason=str(no))
            return Step(Packed(episode_id=due.episode_id, outcome="refused", layer=due.layer, reason=str(no)))


def _both(first: Packed, second: Packed) -> Packed:
    """What became of an episode in two steps; the last one says where it is."""
    if second.outcome == "unchanged" or first.outcome == "unchanged":
        return first if second.outcome == "unchanged" else second
    put_back, struck_out = (*first.put_back, *second.put_back), (*first.struck_out, *second.struck_out)
    return second.model_copy(update={"put_back": put_back, "struck_out": struck_out})
