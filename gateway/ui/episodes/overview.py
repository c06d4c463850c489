"""Chart of stored words by layer over time, and figures of the long-term memory."""

import json
from collections.abc import Sequence

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from bus_schema.episodes import Layer
from bus_schema.lsm_statistics import EpisodeStats, LayerMoment
from gateway.ui.components import attributes, box, text
from gateway.ui.i18n import Localizer

_THOUSAND = 1000


class LayerChart:
    """Stacked areas of stored words, the coldest layer at the bottom; drawn by the browser."""

    def __init__(self, i18n: Localizer, place: Element) -> None:
        self.i18n = i18n
        self._legend_texts: dict[Layer | None, Element] = {}
        with place:
            with box("mb-head mb-no-line mb-layers-head"):
                text(i18n("episodes.kept"), "mb-grow mb-ell", "h2")
                with box("mb-line-x mb-wrap mb-layers-legend"):
                    for layer in Layer:
                        self._legend(layer, f"var(--{layer.value})")
                    self._legend(None, "var(--t3)")
            self._chart = attributes(ui.echart({"series": []}).classes("mb-layers-chart"), role="img")

    def show(self, points: Sequence[LayerMoment], stats: EpisodeStats) -> None:
        i18n = self.i18n
        raw = sum(layer.raw_words for layer in stats.layers.values())
        counts: dict[Layer | None, int] = {layer: kept.words for layer, kept in stats.layers.items()}
        said = [
            (layer, self._name(layer), self._short(counts.get(layer, 0) if layer else raw))
            for layer in self._legend_texts
        ]
        for layer, name, count in said:
            self._legend_texts[layer].set_text(f"{name} {count}")  # type: ignore[attr-defined]  # made as a text below
        attributes(self._chart, aria_label=", ".join(f"{name} {count}" for _, name, count in said)).update()
        told = {
            "language": i18n.language,
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
            self._legend_texts[layer] = text(self._name(layer), "mb-t2 mb-num")

    def _name(self, layer: Layer | None) -> str:
        return self.i18n("episodes.raw_words") if layer is None else self.i18n(f"episodes.layer.{layer.value}")

    def _short(self, count: int) -> str:
        i18n = self.i18n
        if count < 10 * _THOUSAND:
            return i18n.number(count)
        if count < _THOUSAND**2:
            return i18n("episodes.thousands", n=i18n.number(count / _THOUSAND))
        return i18n("episodes.millions", n=i18n.number(count / _THOUSAND**2, 2))


_KEYS = ("count", "to_warm", "to_cold", "verified", "put_back", "struck_out")


class EpisodeFigures:
    """Counts, compression and verification figures."""

    def __init__(self, i18n: Localizer, place: Element) -> None:
        self.i18n = i18n
        self._values: dict[str, TextElement] = {}
        with place:
            for key in _KEYS:
                with box("mb-figure"):
                    self._values[key] = text("–", "mb-figure-value mb-num")
                    text(i18n(f"episodes.figure.{key}"), "mb-meta")

    def show(self, stats: EpisodeStats) -> None:
        i18n = self.i18n
        said = {
            "count": i18n.number(stats.episodes),
            "to_warm": self._times(stats, Layer.WARM),
            "to_cold": self._times(stats, Layer.COLD),
            "verified": i18n.number(stats.verified_packs),
            "put_back": i18n.number(stats.put_back),
            "struck_out": i18n.number(stats.struck_out),
        }
        for key, value in said.items():
            self._values[key].set_text(value)
        self._values["verified"].classes(replace=f"mb-figure-value mb-num {'mb-ok' if stats.verified_packs else ''}")

    def _times(self, stats: EpisodeStats, layer: Layer) -> str:
        kept = stats.layers.get(layer)
        return "–" if kept is None or kept.compression is None else f"{self.i18n.number(kept.compression, 1)}×"
