"""Queries about the state of long-term memory: priorities, layers, statistics (spec 002 L9)."""

from typing import Literal

from pydantic import AwareDatetime, Field

from bus_schema.episodes import Episode, EpisodeId, Layer, RawTurn
from bus_schema.identities import UserId
from bus_schema.lsm import Moment
from bus_schema.messages import Query, Value
from bus_schema.packer import PackReport

# Largest value of each term of an episode's priority (spec 002 §4.4).
RECENCY_WEIGHT = 0.3
FREQUENCY_WEIGHT = 0.2
IMPORTANCE_WEIGHT = 0.3
RELEVANCE_WEIGHT = 0.2


class PriorityTerms(Value):
    """Terms of a priority, each with its weight applied; `floor` is the minimum for an anchor."""

    recency: float
    frequency: float
    importance: float
    relevance: float
    floor: float | None = None


class NextLayer(Value):
    """The next lower layer of an episode, and the earliest time of the transition if the episode is not used."""

    layer: Layer
    at: AwareDatetime


class ExplainedEpisode(Value):
    """An episode with its raw turns, the report of its last pack, and the terms of its priority.

    `kept_words` counts the words of its layer; there is no `next` if the episode stays as it is. `raw_turns` tells
    where the texts are: in the log, in an artifact, or gone with it; then `turns` has only those that can be read.
    """

    episode: Episode
    turns: tuple[RawTurn, ...]
    kept_words: int = Field(ge=0)
    terms: PriorityTerms
    next: NextLayer | None = None
    report: PackReport | None = None
    raw_turns: Literal["log", "artifact", "gone"] = "log"


class ExplainEpisode(Query[ExplainedEpisode], domain="lsm", action="explain_episode"):
    """Read an episode with its raw text and priority terms as of `at`; does not count as use."""

    episode_id: EpisodeId
    at: Moment | None = None


class LayerMoment(Value):
    """Words per layer at a time, and words recorded by then."""

    at: AwareDatetime
    words: dict[Layer, int]
    raw_words: int


class LayerHistory(Value):
    """Words per layer over time, from the first recorded word."""

    points: tuple[LayerMoment, ...]


class GetLayerHistory(Query[LayerHistory], domain="lsm", action="layer_history"):
    """Read words per layer over time, of one chat or of all, up to `until`, in `steps` points."""

    chat_id: UserId | None = None
    until: Moment | None = None
    steps: int = Field(default=60, ge=2, le=400)


class LayerStats(Value):
    """Statistics of one layer: episodes, words, packs that led to it, search hits."""

    episodes: int = 0
    words: int = 0
    raw_words: int = 0
    packs: int = 0
    hits: int = 0
    used: int = 0

    @property
    def compression(self) -> float | None:
        """Ratio of the words recorded to the words kept."""
        return self.raw_words / self.words if self.words else None


class MemorySizes(Value):
    """Bytes that long-term memory takes.

    `texts`, `packs` and `vectors` are in the database; `archives` are artifacts with texts of cold episodes, which
    took `archived_texts` there. `indexes` is the memory of the search indexes in use, `snapshots` the files that the
    large ones are mapped from.
    """

    texts: int
    archives: int
    archived_texts: int
    packs: int
    vectors: int
    indexes: int
    snapshots: int


class EpisodeStats(Value):
    """Statistics of long-term memory that tuning uses (spec 002 L9), and its sizes where they are wanted."""

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
    sizes: MemorySizes | None = None


class GetEpisodeStats(Query[EpisodeStats], domain="lsm", action="stats"):
    """Read the statistics of one chat, or of all; `with_sizes` looks at every text for the sizes."""

    chat_id: UserId | None = None
    with_sizes: bool = False
