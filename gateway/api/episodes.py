"""Long-term memory, over HTTP: listed, searched, looked at, packed, unpacked."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from bus_schema.episodes import AnchorReason, EpisodeHead, EpisodeId, HotContent, Layer
from bus_schema.identities import UserId
from bus_schema.lsm import MAX_PAGE, EpisodePage, ListEpisodes, Tag
from bus_schema.lsm_search import MAX_BUDGET_WORDS, MAX_QUERY_CHARS, FoundEpisodes, SearchEpisodes
from bus_schema.lsm_statistics import EpisodeStats, ExplainedEpisode, ExplainEpisode, GetLayerHistory, LayerHistory
from bus_schema.packer import Packed, PackEpisode
from gateway.api.dependencies import Desk

router = APIRouter(tags=["episodes"])

Episode = Annotated[EpisodeId, Path()]
Chat = Annotated[UserId | None, Query()]


class EpisodeListParams(BaseModel):
    """Which episodes; all that is given is ANDed."""

    model_config = ConfigDict(extra="forbid")
    chat: UserId | None = None
    layer: tuple[Layer, ...] = Field(default=(), max_length=3)
    anchors: bool = False
    at: AwareDatetime | None = Field(default=None, description="Priorities are those of then; default: now.")
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=50, ge=1, le=MAX_PAGE)


class EpisodeSearchParams(BaseModel):
    """What is looked for; a look from here does not count as use."""

    model_config = ConfigDict(extra="forbid")
    q: str = Field(min_length=1, max_length=MAX_QUERY_CHARS)
    chat: UserId
    budget_words: int = Field(default=1200, ge=1, le=MAX_BUDGET_WORDS)
    at: AwareDatetime | None = None
    layer: tuple[Layer, ...] = Field(default=(), max_length=3)
    tag: tuple[Tag, ...] = Field(default=(), max_length=20)
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    explain: bool = False


class AnchorRequest(BaseModel):
    """Whether it is an anchor, why."""

    model_config = ConfigDict(extra="forbid")
    is_anchor: bool = True
    reason: AnchorReason = AnchorReason.EXPLICIT


class PackRequest(BaseModel):
    """Down to where."""

    model_config = ConfigDict(extra="forbid")
    to: Literal[Layer.WARM, Layer.COLD] = Layer.WARM


@router.get("/episodes")
async def episodes(wanted: Annotated[EpisodeListParams, Query()], desk: Desk) -> EpisodePage:
    """Episodes, the latest first."""
    return await desk.episodes(
        ListEpisodes(
            chat_id=wanted.chat,
            layers=wanted.layer,
            anchors_only=wanted.anchors,
            at=wanted.at,
            cursor=wanted.cursor,
            limit=wanted.limit,
        )
    )


@router.get("/episodes/search")
async def search(wanted: Annotated[EpisodeSearchParams, Query()], desk: Desk) -> FoundEpisodes:
    """What was said on a matter, within a budget of words."""
    fields = wanted.model_dump(exclude={"q", "chat", "layer", "tag"})
    named = {"query": wanted.q, "chat_id": wanted.chat, "layers": wanted.layer, "tags": wanted.tag, "touch": False}
    return await desk.search_episodes(SearchEpisodes.model_validate(fields | named))


@router.get("/episodes/stats")
async def stats(desk: Desk, chat: Chat = None) -> EpisodeStats:
    """How much there is in each layer, how dense it is, how well it is searched."""
    return await desk.episode_stats(chat)


@router.get("/episodes/history")
async def history(
    desk: Desk,
    chat: Chat = None,
    until: Annotated[AwareDatetime | None, Query()] = None,
    steps: Annotated[int, Query(ge=2, le=400)] = 60,
) -> LayerHistory:
    """Words by layer, from the first word on."""
    return await desk.layer_history(GetLayerHistory(chat_id=chat, until=until, steps=steps))


@router.get("/episodes/{episode_id}")
async def episode(
    episode_id: Episode, desk: Desk, at: Annotated[AwareDatetime | None, Query()] = None
) -> ExplainedEpisode:
    """One episode beside its raw text, with its last pack's report, with the terms of its priority."""
    return await desk.episode(ExplainEpisode(episode_id=episode_id, at=at))


@router.post("/episodes/{episode_id}/unpack")
async def unpack(episode_id: Episode, desk: Desk) -> HotContent:
    """Its whole text; it is hot again."""
    return await desk.unpack_episode(episode_id)


@router.post("/episodes/{episode_id}/pack")
async def pack(episode_id: Episode, desk: Desk, wanted: PackRequest | None = None) -> Packed:
    """Down to another layer, due or not."""
    return await desk.pack_episode(PackEpisode(episode_id=episode_id, to=(wanted or PackRequest()).to))


@router.post("/episodes/{episode_id}/anchor")
async def anchor(episode_id: Episode, desk: Desk, wanted: AnchorRequest | None = None) -> EpisodeHead:
    """Have it never go cold, or let it."""
    wanted = wanted or AnchorRequest()
    return await desk.set_anchor(episode_id, wanted.reason, is_anchor=wanted.is_anchor)
