"""When an episode is worth which layer (spec 002 §4.4)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import log2
from typing import Literal, Protocol

from bus_schema.episodes import Layer
from bus_schema.lsm_statistics import PriorityTerms
from mindbus.settings import Settings

RECENCY_WEIGHT = 0.3
FREQUENCY_WEIGHT = 0.2
IMPORTANCE_WEIGHT = 0.3
RELEVANCE_WEIGHT = 0.2
# Of running text in English or Russian, as multilingual models count; measured on dialogues.
TOKENS_A_WORD = 1.35
_DAY = timedelta(days=1)

Trigger = Literal["age", "tokens"]


class Aged(Protocol):
    """What the rules look at."""

    last_accessed: datetime
    access_count: int
    layer: str
    is_anchor: bool


@dataclass(frozen=True, slots=True)
class Rules:
    """The formula with its thresholds. Nothing here knows the time: whoever asks brings it.

    Down: the time trigger of the layer has fired (or hot has more tokens than a chat may have), *and* the priority at
    rest is at or below the threshold; one layer at a time; anchors never beyond warm. Up: by unpacking, by so many
    accesses in the warm layer. A low priority alone moves nothing.
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
    def of(cls, settings: Settings) -> "Rules":
        """Those that the operator has set."""
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
        """How many words of one chat may be hot."""
        return int(self.hot_tokens / TOKENS_A_WORD)

    def terms(self, episode: Aged, at: datetime, relevance: float = 0.0) -> PriorityTerms:
        """What a priority is made of; `relevance` is the likeness to the question at hand, nothing at rest."""
        idle = max(timedelta(0), at - episode.last_accessed)
        return PriorityTerms(
            recency=RECENCY_WEIGHT * float(0.5 ** (idle / self.half_life)),
            frequency=FREQUENCY_WEIGHT * episode.access_count / (episode.access_count + self.half_frequency),
            importance=IMPORTANCE_WEIGHT if episode.is_anchor else 0.0,
            relevance=RELEVANCE_WEIGHT * min(1.0, max(0.0, relevance)),
            floor=self.anchor_min_priority if episode.is_anchor else None,
        )

    def priority(self, episode: Aged, at: datetime, relevance: float = 0.0) -> float:
        """0 to 1; an anchor's never falls below what it has at least."""
        terms = self.terms(episode, at, relevance)
        return max(terms.floor or 0.0, terms.recency + terms.frequency + terms.importance + terms.relevance)

    def next_layer(self, episode: Aged) -> tuple[Layer, datetime] | None:
        """Where age takes it next, not before which time, if nobody asks for it; None where it stays."""
        layer = Layer(episode.layer)
        if layer is Layer.COLD or (layer is Layer.WARM and episode.is_anchor):
            return None
        to, after, above = (
            (Layer.WARM, self.warm_after, self.hot_above)
            if layer is Layer.HOT
            else (Layer.COLD, self.cold_after, self.warm_above)
        )
        lasting = self.terms(episode, episode.last_accessed)
        left = above - lasting.frequency - lasting.importance
        if left <= 0 or (lasting.floor or 0.0) > above:
            return None
        # Recency halves with every half-life, until no more than this is left of it.
        fading = self.half_life * max(0.0, log2(RECENCY_WEIGHT / left))
        return to, episode.last_accessed + max(after, fading)

    def due(self, episode: Aged, at: datetime, *, is_crowded: bool = False) -> tuple[Layer, Trigger] | None:
        """The layer that it is to go down to, with what has triggered it; `is_crowded` where hot has no room for it."""
        layer, idle = Layer(episode.layer), at - episode.last_accessed
        if layer is Layer.HOT and self.priority(episode, at) <= self.hot_above:
            if idle >= self.warm_after:
                return Layer.WARM, "age"
            if is_crowded and not episode.is_anchor:
                return Layer.WARM, "tokens"
        if layer is Layer.WARM and not episode.is_anchor and idle >= self.cold_after:
            return (Layer.COLD, "age") if self.priority(episode, at) <= self.warm_above else None
        return None
