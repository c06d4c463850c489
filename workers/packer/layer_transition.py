"""Layer transition of one episode: read it, pack it, apply the pack to long-term memory."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from pydantic import BaseModel

from agents.models.language_model import LanguageModel
from agents.packer import read_cold, read_warm
from bus_schema.episodes import Episode, HotContent, Layer, WarmContent
from bus_schema.lsm import GetEpisode
from bus_schema.lsm_packing import ApplyPack
from bus_schema.messages import Command
from bus_schema.packer import Packed
from bus_schema.replies import Code
from memory.packing.budget import cold_budget, content_words
from memory.packing.packing import OFFLINE, Pack, PackingFailed, Proposal, pack_cold, pack_warm
from mindbus.bus.client import Client
from mindbus.bus.context import current_message
from mindbus.errors import Rejected
from mindbus.logs import logger
from mindbus.sdk.requests import in_id_scope, request

ResultT = TypeVar("ResultT", bound=BaseModel)


@dataclass(frozen=True)
class TransitionResult:
    """Result for an episode, with its words before and after."""

    packed: Packed
    words_before: int = 0
    words_after: int = 0


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
            return Proposal(self.model.name, reading.content, reading.unfounded) if reading else None
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
        content = {"expected_version": episode.version, "to": pack.content.layer, "content": pack.content}
        command = ApplyPack.model_validate({"episode_id": episode.id, "report": report, "at": at, **content})
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
