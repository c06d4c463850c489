"""Priority of episodes and the layer that it calls for (spec 002 §4.4)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import log2
from typing import Literal, Protocol

from bus_schema.episodes import Layer
from bus_schema.lsm_statistics import (
    FREQUENCY_WEIGHT,
    IMPORTANCE_WEIGHT,
    RECENCY_WEIGHT,
    RELEVANCE_WEIGHT,
    PriorityTerms,
)
from config.settings import FleetSettings

# Tokens of multilingual models per word of English or Russian text; measured on dialogues.
TOKENS_A_WORD = 1.35
_DAY = timedelta(days=1)

Trigger = Literal["age", "tokens"]


class RatedEpisode(Protocol):
    """Columns of an episode that the rules use."""

    last_accessed: datetime
    access_count: int
    layer: str
    is_anchor: bool


@dataclass(frozen=True, slots=True)
class LayerRules:
    """Formula of the priority and thresholds of the layers, as functions of time.

    Down: the layer's age is reached (or the chat has too many hot tokens) *and* the priority at rest is at or below
    the threshold; one layer at a time; anchors never beyond warm. Up: by unpacking, or by enough accesses in the warm
    layer. A low priority alone moves nothing.
    """

    half_life: timedelta = timedelta(days=14)
    half_frequency: float = 5
    hot_above: float = 0.7
    warm_above: float = 0.3
    warm_after: timedelta = timedelta(days=14)
    cold_after: timedelta = timedelta(days=90)
    hot_tokens: int = 24_000
    hot_after_accesses: int = 3
    anchor_min_priority: float = 0.5

    @classmethod
    def of(cls, settings: FleetSettings) -> "LayerRules":
        return cls(
            half_life=settings.lsm_half_life_days * _DAY,
            half_frequency=settings.lsm_half_frequency,
            hot_above=settings.lsm_hot_above,
            warm_above=settings.lsm_warm_above,
            warm_after=settings.lsm_warm_after_days * _DAY,
            cold_after=settings.lsm_cold_after_days * _DAY,
            hot_tokens=settings.lsm_hot_tokens,
            hot_after_accesses=settings.lsm_hot_after_accesses,
            anchor_min_priority=settings.lsm_anchor_min_priority,
        )

    @property
    def hot_words(self) -> int:
        """Number of words of one chat that may be hot."""
        return int(self.hot_tokens / TOKENS_A_WORD)

    def terms(self, episode: RatedEpisode, at: datetime, relevance: float = 0.0) -> PriorityTerms:
        """Terms of the priority; `relevance` is the similarity to a question, 0 at rest."""
        idle = max(timedelta(0), at - episode.last_accessed)
        return PriorityTerms(
            recency=RECENCY_WEIGHT * float(0.5 ** (idle / self.half_life)),
            frequency=FREQUENCY_WEIGHT * episode.access_count / (episode.access_count + self.half_frequency),
            importance=IMPORTANCE_WEIGHT if episode.is_anchor else 0.0,
            relevance=RELEVANCE_WEIGHT * min(1.0, max(0.0, relevance)),
            floor=self.anchor_min_priority if episode.is_anchor else None,
        )

    def priority(self, episode: RatedEpisode, at: datetime, relevance: float = 0.0) -> float:
        """Priority from 0 to 1, of an anchor at least its floor."""
        terms = self.terms(episode, at, relevance)
        return max(terms.floor or 0.0, terms.recency + terms.frequency + terms.importance + terms.relevance)

    def next_layer(self, episode: RatedEpisode) -> tuple[Layer, datetime] | None:
        """Next layer by age, and the earliest time for it without further access; None where the episode stays."""
        layer = Layer(episode.layer)
        if layer is Layer.COLD or (layer is Layer.WARM and episode.is_anchor):
            return None
        to, after, above = (
            (Layer.WARM, self.warm_after, self.hot_above)
            if layer is Layer.HOT
            else (Layer.COLD, self.cold_after, self.warm_above)
        )
        terms = self.terms(episode, episode.last_accessed)
        recency = above - terms.frequency - terms.importance
        if recency <= 0 or (terms.floor or 0.0) > above:
            return None
        # Time in which the recency term falls to what the threshold leaves for it.
        decay = self.half_life * max(0.0, log2(RECENCY_WEIGHT / recency))
        return to, episode.last_accessed + max(after, decay)

    def due(self, episode: RatedEpisode, at: datetime, *, is_crowded: bool = False) -> tuple[Layer, Trigger] | None:
        """Layer to go down to and its trigger; `is_crowded` where the chat has too many hot words."""
        layer, idle = Layer(episode.layer), at - episode.last_accessed
        if layer is Layer.HOT and self.priority(episode, at) <= self.hot_above:
            if idle >= self.warm_after:
                return Layer.WARM, "age"
            if is_crowded and not episode.is_anchor:
                return Layer.WARM, "tokens"
        if layer is Layer.WARM and not episode.is_anchor and idle >= self.cold_after:
            return (Layer.COLD, "age") if self.priority(episode, at) <= self.warm_above else None
        return None
