"""Long-term memory in six numbers."""

from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from bus_schema.episodes import Layer
from bus_schema.lsm_statistics import EpisodeStats
from gateway.ui.parts import box, text
from gateway.ui.words import Words

_KEYS = ("count", "to_warm", "to_cold", "verified", "put_back", "struck_out")


class Figures:
    """How much, how dense, how well checked."""

    def __init__(self, words: Words, place: Element) -> None:
        self.words = words
        self._values: dict[str, TextElement] = {}
        with place:
            for key in _KEYS:
                with box("mb-figure"):
                    self._values[key] = text("–", "mb-figure-value mb-num")
                    text(words(f"episodes.figure.{key}"), "mb-meta")

    def show(self, stats: EpisodeStats) -> None:
        """As it stands."""
        words = self.words
        said = {
            "count": words.number(stats.episodes),
            "to_warm": self._times(stats, Layer.WARM),
            "to_cold": self._times(stats, Layer.COLD),
            "verified": words.number(stats.verified_packs),
            "put_back": words.number(stats.put_back),
            "struck_out": words.number(stats.struck_out),
        }
        for key, value in said.items():
            self._values[key].set_text(value)
        self._values["verified"].classes(replace=f"mb-figure-value mb-num {'mb-ok' if stats.verified_packs else ''}")

    def _times(self, stats: EpisodeStats, layer: Layer) -> str:
        kept = stats.layers.get(layer)
        return "–" if kept is None or kept.compression is None else f"{self.words.number(kept.compression, 1)}×"
