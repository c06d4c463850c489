"""How many words each layer keeps, over time."""

import json
from collections.abc import Sequence

from nicegui import ui
from nicegui.element import Element

from bus_schema.episodes import Layer
from bus_schema.lsm_statistics import EpisodeStats, LayerMoment
from gateway.ui.parts import attributes, box, text
from gateway.ui.words import Words

_THOUSAND = 1000


class KeptChart:
    """Layers upon each other, the coldest at the ground; the browser draws it in the colours of its theme."""

    def __init__(self, words: Words, place: Element) -> None:
        self.words = words
        self._said: dict[Layer | None, Element] = {}
        with place:
            with box("mb-head mb-no-line mb-layers-head"):
                text(words("episodes.kept"), "mb-grow mb-ell", "h2")
                with box("mb-line-x mb-wrap mb-layers-legend"):
                    for layer in Layer:
                        self._legend(layer, f"var(--{layer.value})")
                    self._legend(None, "var(--t3)")
            self._chart = attributes(ui.echart({"series": []}).classes("mb-layers-chart"), role="img")

    def show(self, points: Sequence[LayerMoment], stats: EpisodeStats) -> None:
        """As it stands."""
        words = self.words
        raw = sum(layer.raw_words for layer in stats.layers.values())
        counts: dict[Layer | None, int] = {layer: kept.words for layer, kept in stats.layers.items()}
        said = [(layer, self._name(layer), self._short(counts.get(layer, 0) if layer else raw)) for layer in self._said]
        for layer, name, count in said:
            self._said[layer].set_text(f"{name} {count}")  # type: ignore[attr-defined]  # made as a text below
        attributes(self._chart, aria_label=", ".join(f"{name} {count}" for _, name, count in said)).update()
        told = {
            "language": words.language,
            "names": {layer.value: self._name(layer) for layer in Layer},
            "points": [
                [point.at.timestamp() * 1000, *(point.words.get(layer, 0) for layer in reversed(Layer))]
                for point in points
            ],
        }
        ui.run_javascript(f"mbLayers({self._chart.id}, {json.dumps(told)})")

    def _legend(self, layer: Layer | None, colour: str) -> None:
        with box("mb-line-x mb-cap"):
            box("mb-legend-line", "i").style(f"--c: {colour}")
            self._said[layer] = text(self._name(layer), "mb-t2 mb-num")

    def _name(self, layer: Layer | None) -> str:
        return self.words("episodes.raw_words") if layer is None else self.words(f"episodes.layer.{layer.value}")

    def _short(self, count: int) -> str:
        words = self.words
        if count < 10 * _THOUSAND:
            return words.number(count)
        if count < _THOUSAND**2:
            return words("episodes.thousands", n=words.number(count / _THOUSAND))
        return words("episodes.millions", n=words.number(count / _THOUSAND**2, 2))
