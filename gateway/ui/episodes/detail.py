"""One episode: what was said, what is kept of it, why."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nicegui.element import Element

from bus_schema.episodes import Layer
from bus_schema.lsm_statistics import ExplainedEpisode
from gateway.ui.episodes.listing import layer_tag
from gateway.ui.episodes.marking import Kept
from gateway.ui.episodes.priority import show_priority
from gateway.ui.episodes.sides import show_legend, show_packed, show_raw, when_said
from gateway.ui.icons import icon
from gateway.ui.parts import attributes, box, button, icon_button, identifier, text
from gateway.ui.words import Words

_SHORT = 9
_BELOW = {Layer.HOT: Layer.WARM, Layer.WARM: Layer.COLD}


@dataclass(frozen=True)
class Deeds:
    """What can be done with an episode."""

    close: Callable[[], Any]
    unpack: Callable[[str], Any]
    pack: Callable[[str, Layer], Any]
    anchor: Callable[[str, bool], Any]


class Detail:
    """Beside the list; on a phone, in its place."""

    def __init__(self, words: Words, place: Element, deeds: Deeds) -> None:
        self.words, self._place, self._deeds = words, place, deeds
        self._shown: ExplainedEpisode | None = None
        self.close()

    def close(self) -> None:
        """Nothing is chosen."""
        self._shown = None
        self._place.clear()
        with self._place, box("mb-empty"):
            icon("memory")
            text(self.words("episodes.choose"), "", "p")

    def show(self, explained: ExplainedEpisode) -> None:
        """All of one episode; what is shown already stays, with where somebody has scrolled to."""
        if explained == self._shown:
            return
        self._shown = explained
        words, kept = self.words, Kept.by(explained.episode.content)
        self._place.clear()
        with self._place:
            self._head(explained)
            with box("mb-ep-sides"):
                with attributes(box("mb-ep-side mb-ep-raw", "section"), aria_label=words("episodes.raw")):
                    show_raw(words, explained, kept)
                with attributes(box("mb-ep-side mb-ep-packed", "section"), aria_label=words("episodes.packed")):
                    show_packed(words, explained, kept)
                    show_priority(words, explained)
            show_legend(words, explained)

    def _head(self, explained: ExplainedEpisode) -> None:
        words, episode, deeds = self.words, explained.episode, self._deeds
        with box("mb-head mb-ep-head"):
            icon_button("left", words("close"), deeds.close, "mb-back")
            attributes(text(episode.headline, "mb-ell", "h2"), title=episode.headline)
            layer_tag(words, episode)
            with box("mb-line-x mb-not-phone"):
                identifier(words, episode.id, shown=f"{episode.id[:_SHORT]}…")
                text(when_said(words, explained), "mb-meta mb-num mb-ell")
            box("mb-grow")
            with box("mb-line-x mb-ep-deeds"):
                self._buttons(explained)

    def _buttons(self, explained: ExplainedEpisode) -> None:
        words, episode, deeds = self.words, explained.episode, self._deeds
        said = words("episodes.unanchor" if episode.is_anchor else "episodes.anchor_it")
        button(said, lambda: deeds.anchor(episode.id, not episode.is_anchor), "", "anchor")
        below = _BELOW.get(episode.layer)
        if below is not None and not (below is Layer.COLD and episode.is_anchor):
            button(words(f"episodes.pack_{below.value}"), lambda: deeds.pack(episode.id, below), "", "down")
        if episode.layer is not Layer.HOT:
            button(words("episodes.unpack"), lambda: deeds.unpack(episode.id), "", "replay")
