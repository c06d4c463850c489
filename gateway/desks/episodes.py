"""What was said long ago, as the gateway's user looks at it."""

from typing import Final

from bus_schema.episodes import AnchorReason, EpisodeHead, HotContent
from bus_schema.lsm import EpisodePage, ListEpisodes, SetAnchor, UnpackEpisode
from bus_schema.lsm_search import FoundEpisodes, SearchEpisodes
from bus_schema.lsm_statistics import (
    EpisodeStats,
    ExplainedEpisode,
    ExplainEpisode,
    GetEpisodeStats,
    GetLayerHistory,
    LayerHistory,
)
from bus_schema.packer import Packed, PackEpisode
from mindbus.bus.client import Client

# Whoever looks at a screen waits no longer; a model that packs may take its time.
_WITHIN_S: Final = 10.0
_PACKED_WITHIN_S: Final = 120.0


class EpisodesDesk:
    """Looks without touching, so that nothing stays near because somebody has watched it."""

    bus: Client

    async def episodes(self, wanted: ListEpisodes) -> EpisodePage:
        """The latest first."""
        return await self.bus.request(wanted, timeout_s=_WITHIN_S)

    async def episode(self, wanted: ExplainEpisode) -> ExplainedEpisode:
        """One beside its raw text."""
        return await self.bus.request(wanted, timeout_s=_WITHIN_S)

    async def search_episodes(self, wanted: SearchEpisodes) -> FoundEpisodes:
        """What was said on a matter."""
        return await self.bus.request(wanted, timeout_s=_WITHIN_S)

    async def episode_stats(self, chat_id: str | None = None) -> EpisodeStats:
        """How much there is, how dense it is."""
        return await self.bus.request(GetEpisodeStats(chat_id=chat_id), timeout_s=_WITHIN_S)

    async def layer_history(self, wanted: GetLayerHistory) -> LayerHistory:
        """Words by layer over time."""
        return await self.bus.request(wanted, timeout_s=_WITHIN_S)

    async def unpack_episode(self, episode_id: str) -> HotContent:
        """Word by word; it is hot again."""
        return await self.bus.request(UnpackEpisode(episode_id=episode_id), timeout_s=_WITHIN_S)

    async def pack_episode(self, wanted: PackEpisode) -> Packed:
        """Down to another layer, due or not."""
        return await self.bus.request(wanted, timeout_s=_PACKED_WITHIN_S)

    async def set_anchor(
        self, episode_id: str, reason: AnchorReason = AnchorReason.EXPLICIT, *, is_anchor: bool = True
    ) -> EpisodeHead:
        """Have it never go cold, or let it."""
        command = SetAnchor(episode_id=episode_id, is_anchor=is_anchor, reason=reason)
        return await self.bus.request(command, timeout_s=_WITHIN_S)
