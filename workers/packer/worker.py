"""The packer: packs episodes on command and by schedule."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from pydantic import BaseModel

from agents.configuration.model_roles import model_of
from agents.models.language_model import LanguageModel
from agents.packer import read_cold, read_warm
from bus_schema.episodes import Episode, HotContent, Layer, WarmContent
from bus_schema.lsm import GetEpisode
from bus_schema.messages import Command
from bus_schema.packer import ApplyPack, DueEpisode, GetDueEpisodes, Packed, PackEpisode, PackRun, RunPacking
from bus_schema.replies import Code
from config.settings import FleetSettings
from memory.packing.budget import cold_budget, content_words
from memory.packing.packing import OFFLINE, Pack, PackingFailed, Proposal, pack_cold, pack_warm
from mindbus.bus.client import Client
from mindbus.bus.context import current_message
from mindbus.bus.handlers import every, on_command
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import Rejected, TemporaryFailure
from mindbus.logs import logger
from mindbus.sdk.requests import in_id_scope, request
from workers.chat_priority import ChatPriority
from workers.model_calls import ModelCallRecorder

_BATCH = 20
# Longest run: the requester may wait for the reply, and a next run continues.
_MAX_RUN_S = 15.0
_SCHEDULED_LIMIT = 200
_CHECK_INTERVAL_S = 1.0
_RETRY_AFTER = timedelta(seconds=30)
ResultT = TypeVar("ResultT", bound=BaseModel)


@dataclass(frozen=True)
class TransitionResult:
    """Result for an episode, with its words before and after."""

    packed: Packed
    words_before: int = 0
    words_after: int = 0


class PackerWorker(Worker):
    """Stateless: memory says what is due, so that an interrupted run is continued by the next one."""

    name = "packer"
    concurrency = 2
    # One run packs hundreds of episodes.
    time_limit_s = 4 * 3600
    # Memory may be unavailable for long.
    attempts = 150

    def __init__(self, context: WorkerContext, model: LanguageModel | None = None) -> None:
        settings = context.settings_as(FleetSettings)
        self._clock = context.clock
        self._model = model or model_of(settings, self.name, ModelCallRecorder(context, self.name))
        self.include(ChatPriority(context.bus, self._model))
        self._transition = LayerTransition(context.bus.acting_as(self.identity, service=self.name), self._model)
        self._interval = timedelta(seconds=settings.packer_interval_s)
        self._next_run = context.clock()

    async def stop(self) -> None:
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
        totals, deadline = Counter[str](), time.monotonic() + _MAX_RUN_S
        async for due in self._due(at, totals):
            if _packed_in(totals) >= limit or time.monotonic() > deadline:
                return PackRun(**totals, is_done=False)
            totals.update(_counts(await self._apply(due, at)))
        return PackRun(**totals)

    async def _due(self, at: datetime | None, totals: Counter[str]) -> AsyncIterator[DueEpisode]:
        """Due episodes, in passes until one packs nothing: a new warm episode may be due to go cold."""
        number = packed_before = -1
        while packed_before < _packed_in(totals):
            packed_before, number, after = _packed_in(totals), number + 1, None
            while True:
                query = GetDueEpisodes(at=at, after=after, limit=_BATCH)
                items = (await self._transition.request(f"due/{number}/{after}", query)).items
                for due in items:
                    yield due
                if not items:
                    break
                after = items[-1].episode_id

    async def _apply(self, due: DueEpisode, at: datetime | None) -> TransitionResult:
        try:
            return await self._transition.apply(due.episode_id, due.to, at)
        except Rejected as error:
            # Such as an episode that has been erased: the others are packed all the same.
            logger().warning("episode not packed", episode_id=due.episode_id, code=error.code.value, reason=str(error))
            refused = Packed(episode_id=due.episode_id, outcome="refused", layer=due.layer, reason=str(error))
            return TransitionResult(refused)


def _counts(result: TransitionResult) -> dict[str, int]:
    """Counts of a run, in transitions: an episode that goes down two layers counts twice."""
    packed = result.packed
    if packed.outcome != "packed":
        return {"refused": int(packed.outcome == "refused")}
    return {
        packed.layer.value: 1,
        "words_before": result.words_before,
        "words_after": result.words_after,
        "put_back": len(packed.put_back),
        "struck_out": len(packed.struck_out),
    }


def _packed_in(totals: Counter[str]) -> int:
    return totals["warm"] + totals["cold"]


def _combined(first: Packed, second: Packed) -> Packed:
    """Result of two transitions; the layer is that of the second unless that changed nothing."""
    if second.outcome == "unchanged" or first.outcome == "unchanged":
        return first if second.outcome == "unchanged" else second
    put_back, struck_out = (*first.put_back, *second.put_back), (*first.struck_out, *second.struck_out)
    return second.model_copy(update={"put_back": put_back, "struck_out": struck_out})


@dataclass(frozen=True)
class LayerTransition:
    """Takes episodes down by one layer; memory accepts only verified packs of the version that was read."""

    bus: Client
    model: LanguageModel

    async def apply(self, episode_id: str, to: Layer, at: datetime | None) -> TransitionResult:
        """Take an episode one layer down, at most to `to`. Raises Rejected, TemporaryFailure, BusUnavailable."""
        episode = await self.request(f"get/{episode_id}/{to}", GetEpisode(episode_id=episode_id, at=at))
        if episode.layer in (to, Layer.COLD):
            return TransitionResult(Packed(episode_id=episode_id, outcome="unchanged", layer=episode.layer))
        if episode.is_anchor and episode.layer is Layer.WARM:
            return _refused(episode, "an anchor never goes cold; remove the anchor first")
        try:
            pack = await self._pack(episode, await self._proposal(episode))
            return await self._apply(episode, pack, at)
        except PackingFailed as error:
            logger().error("pack fails verification", episode_id=episode_id, reason=str(error))
            return _refused(episode, str(PackingFailed.__doc__))

    async def request(self, scope: str, command: Command[ResultT]) -> ResultT:
        """Send a command with ids of the scope and the attempt, so that a retry is not answered with old results."""
        context = current_message()
        return await in_id_scope(f"{scope}/{context.attempt if context else 0}", lambda: request(self.bus, command))

    async def _proposal(self, episode: Episode) -> Proposal | None:
        """The model's proposal, if it makes one."""
        content = episode.content
        if isinstance(content, HotContent):
            reading = await read_warm(content.raw_messages, self.model)
            return Proposal(self.model.name, *reading) if reading else None
        if isinstance(content, WarmContent):
            budget = cold_budget(content_words(content), episode.words)
            headline = await read_cold(content, budget.wanted, self.model)
            return Proposal(self.model.name, headline) if headline else None
        return None

    async def _pack(self, episode: Episode, proposal: Proposal | None) -> Pack:
        content = episode.content
        if isinstance(content, HotContent):
            return await asyncio.to_thread(pack_warm, content.raw_messages, proposal)
        if isinstance(content, WarmContent):
            return await asyncio.to_thread(pack_cold, content, episode.words, proposal)
        raise PackingFailed("there is no layer below cold")

    async def _apply(self, episode: Episode, pack: Pack, at: datetime | None) -> TransitionResult:
        """Apply a pack; where memory rejects a model's, apply one by rules."""
        report = pack.report
        content: dict[str, Any] = {"to": pack.content.layer, "content": pack.content}
        if pack.notes:
            # Without any, memory of an earlier release takes the pack as well.
            content["notes"] = pack.notes
        about = {"episode_id": episode.id, "expected_version": episode.version, "report": report, "at": at}
        command = ApplyPack.model_validate(about | content)
        try:
            await self.request(f"apply/{episode.id}/{episode.version}/{report.maker}", command)
        except Rejected as error:
            if error.code is Code.CONFLICT:
                unchanged = Packed(episode_id=episode.id, outcome="unchanged", layer=episode.layer, reason=str(error))
                return TransitionResult(unchanged)
            if error.code is not Code.INVALID:
                raise
            logger().warning("pack rejected", episode_id=episode.id, maker=report.maker, details=error.details)
            if report.maker == OFFLINE:
                return _refused(episode, str(error))
            return await self._apply(episode, await self._pack(episode, None), at)
        logger().info("episode packed", episode_id=episode.id, layer=command.to.value, maker=report.maker)
        return TransitionResult(_packed(command), report.words_before, report.words_after)


def _packed(command: ApplyPack) -> Packed:
    return Packed(
        episode_id=command.episode_id,
        outcome="packed",
        layer=Layer(command.to),
        compression=command.report.compression,
        verified=command.report.verified,
        put_back=command.report.put_back,
        struck_out=command.report.struck_out,
    )


def _refused(episode: Episode, reason: str) -> TransitionResult:
    return TransitionResult(Packed(episode_id=episode.id, outcome="refused", layer=episode.layer, reason=reason))
