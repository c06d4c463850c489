"""What is asked of the long-term memory about itself: why an episode is where it is, how it is doing (spec 002 L9)."""

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from bus_schema.episodes import (
    Episode,
    EpisodeId,
    Layer,
    RawTurn,
)
from bus_schema.identities import UserId
from bus_schema.lsm import Moment
from bus_schema.lsm_packing import PackReport
from bus_schema.messages import Query


class PriorityTerms(BaseModel):
    """What a priority is made of, each term with its weight in it; an anchor has `floor` at least."""

    model_config = ConfigDict(frozen=True)
    recency: float
    frequency: float
    importance: float
    relevance: float
    floor: float | None = None


class NextLayer(BaseModel):
    """The layer that an episode goes down to next, not before `at`, as long as nobody asks for it."""

    model_config = ConfigDict(frozen=True)
    layer: Layer
    at: AwareDatetime


class ExplainedEpisode(BaseModel):
    """An episode beside all that it was made from: its raw turns, its last pack's report, why it lies where it lies.

    `kept_words` are those of its layer; nothing is `next` where it stays as it is.
    """

    model_config = ConfigDict(frozen=True)
    episode: Episode
    turns: tuple[RawTurn, ...]
    kept_words: int = Field(ge=0)
    terms: PriorityTerms
    next: NextLayer | None = None
    report: PackReport | None = None


class ExplainEpisode(Query[ExplainedEpisode], domain="lsm", action="explain_episode"):
    """Look at an episode with its raw text, as of `at`; that does not count as use."""

    episode_id: EpisodeId
    at: Moment | None = None


class LayerMoment(BaseModel):
    """How many words each layer had at a time, how many had been said by then."""

    model_config = ConfigDict(frozen=True)
    at: AwareDatetime
    words: dict[Layer, int]
    raw_words: int


class LayerHistory(BaseModel):
    """How the layers have grown and shrunk, from the first word on."""

    model_config = ConfigDict(frozen=True)
    points: tuple[LayerMoment, ...]


class GetLayerHistory(Query[LayerHistory], domain="lsm", action="layer_history"):
    """Ask for words by layer over time, of one chat or of all, up to `until`, in so many steps."""

    chat_id: UserId | None = None
    until: Moment | None = None
    steps: int = Field(default=60, ge=2, le=400)


class LayerStats(BaseModel):
    """Of one layer: how many episodes with how many words, how many packs brought them, how often a search hit it."""

    model_config = ConfigDict(frozen=True)
    episodes: int = 0
    words: int = 0
    raw_words: int = 0
    packs: int = 0
    hits: int = 0
    used: int = 0

    @property
    def compression(self) -> float | None:
        """How many times fewer words there are than were said."""
        return self.raw_words / self.words if self.words else None


class EpisodeStats(BaseModel):
    """The measures that memory learns from (spec 002 L9)."""

    model_config = ConfigDict(frozen=True)
    chats: int
    turns: int
    episodes: int
    anchors: int
    layers: dict[Layer, LayerStats]
    searches: int
    unpacked: int
    with_feedback: int
    hit_rate: float | None = None
    verified_packs: int
    put_back: int
    struck_out: int
    waiting_for_vectors: int


class GetEpisodeStats(Query[EpisodeStats], domain="lsm", action="stats"):
    """Count, for one chat or for all."""

    chat_id: UserId | None = None
