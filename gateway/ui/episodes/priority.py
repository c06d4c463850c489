"""Why an episode lies where it lies, where it goes from there."""

from datetime import UTC, datetime

from bus_schema.episodes import Layer
from bus_schema.lsm_statistics import ExplainedEpisode
from gateway.ui.parts import attributes, box, text
from gateway.ui.words import Words
from memory.lsm.rules import FREQUENCY_WEIGHT, IMPORTANCE_WEIGHT, RECENCY_WEIGHT, RELEVANCE_WEIGHT

_MOST = {
    "recency": RECENCY_WEIGHT,
    "frequency": FREQUENCY_WEIGHT,
    "importance": IMPORTANCE_WEIGHT,
    "relevance": RELEVANCE_WEIGHT,
}


def show_priority(words: Words, explained: ExplainedEpisode) -> None:
    """Its four terms, when the layer changes next."""
    with attributes(box("mb-ep-priority", "section"), aria_label=words("episodes.priority")):
        with box("mb-line-x mb-wrap"):
            text(words("episodes.priority"), "mb-medium mb-t2", "h3")
            text(words.number(explained.episode.priority, 2), "mb-num mb-strong")
            box("mb-grow")
            text(_next(words, explained), "mb-meta")
        with box("mb-ep-terms"):
            for name, most in _MOST.items():
                value = float(getattr(explained.terms, name))
                with attributes(box("mb-stack"), title=words(f"episodes.term.{name}_hint")):
                    text(words.number(value, 2), "mb-num mb-strong")
                    text(words(f"episodes.term.{name}"), "mb-meta mb-ell")
                    with attributes(box("mb-score"), aria_hidden="true"):
                        box("", "i").style(f"width: {100 * value / most:.0f}%; --c: var(--acc)")


def _next(words: Words, explained: ExplainedEpisode) -> str:
    episode, following, now = explained.episode, explained.next, datetime.now(UTC)
    if following is not None:
        name = words(f"episodes.layer.{following.layer.value}")
        if following.at <= now:
            return words("episodes.due", layer=name)
        return words("episodes.next", layer=name, day=words.date(following.at, now))
    if episode.is_anchor:
        return words("episodes.anchor_stays")
    return words("episodes.coldest" if episode.layer is Layer.COLD else "episodes.stays")
