"""One episode, one layer down: read, packed, proposed to long-term memory."""

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
class Step:
    """What became of an episode, with its words before and after."""

    packed: Packed
    words_before: int = 0
    words_after: int = 0


@dataclass(frozen=True)
class Descent:
    """Packs what memory gives it; memory takes a pack only of the version that was read, only if it holds."""

    bus: Client
    model: LanguageModel

    async def one_down(self, episode_id: str, to: Layer, at: datetime | None) -> Step:
        """Towards this layer. Raises Rejected, TemporaryFailure, BusUnavailable."""
        episode = await self.ask(f"get/{episode_id}/{to}", GetEpisode(episode_id=episode_id, at=at))
        if episode.layer in (to, Layer.COLD):
            return Step(Packed(episode_id=episode_id, outcome="unchanged", layer=episode.layer))
        if episode.is_anchor and episode.layer is Layer.WARM:
            return _refused(episode, "an anchor never goes cold; let it be none first")
        try:
            pack = await self._made(episode, await self._proposal(episode))
            return await self._applied(episode, pack, at)
        except PackingFailed as trouble:
            logger().error("pack does not hold", episode_id=episode_id, reason=str(trouble))
            return _refused(episode, str(PackingFailed.__doc__))

    async def ask(self, scope: str, command: Command[ResultT]) -> ResultT:
        """Under ids of its own: what is gone on with asks something else than what was cut short."""
        context = current_message()
        return await in_id_scope(f"{scope}/{context.attempt if context else 0}", lambda: request(self.bus, command))

    async def _proposal(self, episode: Episode) -> Proposal | None:
        """What a language model would keep, where there is one that helps."""
        content = episode.content
        if isinstance(content, HotContent):
            reading = await read_warm(content.raw_messages, self.model)
            return Proposal(self.model.name, reading.content, reading.unfounded) if reading else None
        if isinstance(content, WarmContent):
            budget = cold_budget(content_words(content), episode.words)
            headline = await read_cold(content, budget.wanted, self.model)
            return Proposal(self.model.name, headline) if headline else None
        return None

    async def _made(self, episode: Episode, proposal: Proposal | None) -> Pack:
        content = episode.content
        if isinstance(content, HotContent):
            return await asyncio.to_thread(pack_warm, content.raw_messages, proposal)
        if isinstance(content, WarmContent):
            return await asyncio.to_thread(pack_cold, content, episode.words, proposal)
        raise PackingFailed("nothing is below cold")

    async def _applied(self, episode: Episode, pack: Pack, at: datetime | None) -> Step:
        """What memory does not take from a model, it is offered without."""
        report = pack.report
        proposed = {"expected_version": episode.version, "to": pack.content.layer, "content": pack.content}
        command = ApplyPack.model_validate({"episode_id": episode.id, "report": report, "at": at, **proposed})
        try:
            await self.ask(f"apply/{episode.id}/{episode.version}/{report.maker}", command)
        except Rejected as no:
            if no.code is Code.CONFLICT:
                unchanged = Packed(episode_id=episode.id, outcome="unchanged", layer=episode.layer, reason=str(no))
                return Step(unchanged)
            if no.code is not Code.INVALID:
                raise
            logger().warning("memory refuses a pack", episode_id=episode.id, maker=report.maker, details=no.details)
            if report.maker == OFFLINE:
                return _refused(episode, str(no))
            return await self._applied(episode, await self._made(episode, None), at)
        logger().info("episode packed", episode_id=episode.id, layer=command.to.value, maker=report.maker)
        return Step(_packed(command), report.words_before, report.words_after)


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


def _refused(episode: Episode, reason: str) -> Step:
    return Step(Packed(episode_id=episode.id, outcome="refused", layer=episode.layer, reason=reason))
