"""Long-term memory over HTTP: record, list, search, explain, pack, unpack and anchor episodes."""

from typing import Annotated, Final, Literal

from fastapi import APIRouter, Path, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from bus_schema.episodes import AnchorReason, EpisodeHead, EpisodeId, HotContent, Layer
from bus_schema.identities import UserId
from bus_schema.lsm import (
    MAX_PAGE,
    MAX_RECORDED,
    EpisodePage,
    ListEpisodes,
    Recorded,
    RecordExchange,
    SaidMessage,
    SetAnchor,
    Tag,
    UnpackEpisode,
)
from bus_schema.lsm_search import MAX_BUDGET_WORDS, MAX_QUERY_CHARS, FoundEpisodes, SearchEpisodes
from bus_schema.lsm_statistics import (
    EpisodeStats,
    ExplainedEpisode,
    ExplainEpisode,
    GetEpisodeStats,
    GetLayerHistory,
    LayerHistory,
)
from bus_schema.packer import Packed, PackEpisode
from gateway.backend import BackendDependency

router = APIRouter(tags=["episodes"])

# A model that packs takes its time.
PACK_TIMEOUT_S: Final = 120.0

Episode = Annotated[EpisodeId, Path()]
Chat = Annotated[UserId | None, Query()]
At = Annotated[AwareDatetime | None, Query()]


class EpisodeListParams(BaseModel):
    """List conditions; all that you give must hold."""

    model_config = ConfigDict(extra="forbid")
    chat: UserId | None = None
    layer: tuple[Layer, ...] = Field(default=(), max_length=3)
    anchors: bool = False
    at: AwareDatetime | None = Field(default=None, description="Time for which priorities are computed; default: now.")
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=50, ge=1, le=MAX_PAGE)


class EpisodeSearchParams(BaseModel):
    """Query and conditions of a search, which does not count as an access."""

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
    newest_first: bool = False


class RecordRequest(BaseModel):
    """Messages of a conversation held elsewhere, in order of time; one whose id is known is not added again."""

    model_config = ConfigDict(extra="forbid")
    chat: UserId
    messages: tuple[SaidMessage, ...] = Field(min_length=1, max_length=MAX_RECORDED)


class AnchorRequest(BaseModel):
    """Set or remove an anchor, with the reason."""

    model_config = ConfigDict(extra="forbid")
    is_anchor: bool = True
    reason: AnchorReason = AnchorReason.EXPLICIT


class PackRequest(BaseModel):
    """Target layer of a pack."""

    model_config = ConfigDict(extra="forbid")
    to: Literal[Layer.WARM, Layer.COLD] = Layer.WARM


@router.post("/episodes/messages")
async def record(body: RecordRequest, backend: BackendDependency) -> Recorded:
    """Add a user's conversation with an assistant to that user's long-term memory."""
    command = RecordExchange(chat_id=body.chat, messages=body.messages)
    return await backend.acting_as(body.chat).request(command)


@router.get("/episodes")
async def episodes(params: Annotated[EpisodeListParams, Query()], backend: BackendDependency) -> EpisodePage:
    """Episodes, the latest first."""
    fields = params.model_dump(include={"at", "cursor", "limit"})
    query = ListEpisodes(chat_id=params.chat, layers=params.layer, anchors_only=params.anchors, **fields)
    return await backend.query(query)


@router.get("/episodes/search")
async def search(params: Annotated[EpisodeSearchParams, Query()], backend: BackendDependency) -> FoundEpisodes:
    """Episodes relevant to a query, within a budget of words."""
    fields = params.model_dump(exclude={"q", "chat", "layer", "tag"})
    named = {"query": params.q, "chat_id": params.chat, "layers": params.layer, "tags": params.tag, "touch": False}
    return await backend.query(SearchEpisodes.model_validate(fields | named))


@router.get("/episodes/stats")
async def stats(backend: BackendDependency, chat: Chat = None, sizes: bool = False) -> EpisodeStats:
    """Words, compression and search statistics of each layer; bytes where `sizes` are wanted, which takes longer."""
    return await backend.query(GetEpisodeStats(chat_id=chat, with_sizes=sizes))


@router.get("/episodes/history")
async def history(
    backend: BackendDependency, chat: Chat = None, until: At = None, steps: Annotated[int, Query(ge=2, le=400)] = 60
) -> LayerHistory:
    """Number of words in each layer over time."""
    return await backend.query(GetLayerHistory(chat_id=chat, until=until, steps=steps))


@router.get("/episodes/{episode_id}")
async def episode(episode_id: Episode, backend: BackendDependency, at: At = None) -> ExplainedEpisode:
    """An episode with its raw turns, the report of its last pack and the terms of its priority."""
    return await backend.query(ExplainEpisode(episode_id=episode_id, at=at))


@router.post("/episodes/{episode_id}/unpack")
async def unpack(episode_id: Episode, backend: BackendDependency) -> HotContent:
    """Restore the raw text; the episode is hot again."""
    return await backend.query(UnpackEpisode(episode_id=episode_id))


@router.post("/episodes/{episode_id}/pack")
async def pack(episode_id: Episode, backend: BackendDependency, request: PackRequest | None = None) -> Packed:
    """Pack an episode to another layer, whether or not it is due."""
    return await backend.query(PackEpisode(episode_id=episode_id, to=(request or PackRequest()).to), PACK_TIMEOUT_S)


@router.post("/episodes/{episode_id}/anchor")
async def anchor(episode_id: Episode, backend: BackendDependency, request: AnchorRequest | None = None) -> EpisodeHead:
    """Set or remove an anchor; an anchor never becomes cold."""
    request = request or AnchorRequest()
    return await backend.query(SetAnchor(episode_id=episode_id, is_anchor=request.is_anchor, reason=request.reason))
