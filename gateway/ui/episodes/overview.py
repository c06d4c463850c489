"""Overview of the long-term memory: stored words by layer over time, figures, the list of episodes."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from bus_schema.episodes import EpisodeHead, Layer
from bus_schema.lsm_statistics import EpisodeStats, LayerMoment
from gateway.display_names import DisplayNames
from gateway.ui.components import attributes, box, clickable, figure, moment, score_bar, tag, text, update
from gateway.ui.i18n import Localizer
from gateway.ui.rows import RedrawnRow, Rows
from gateway.ui.svg import icon

_THOUSAND = 1000


class LayerChart:
    """Stacked areas of stored words, the coldest layer at the bottom; drawn by the browser."""

    def __init__(self, i18n: Localizer, place: Element) -> None:
        self.i18n = i18n
        self._legend_texts: dict[Layer | None, TextElement] = {}
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
        counts: dict[Layer | None, int] = {layer: totals.words for layer, totals in stats.layers.items()}
        for layer, legend in self._legend_texts.items():
            legend.set_text(f"{self._name(layer)} {self._short(counts.get(layer, 0) if layer else raw)}")
        update(self._chart, aria_label=", ".join(legend.text for legend in self._legend_texts.values()))
        drawn = {
            "language": i18n.language,
            "names": {layer.value: self._name(layer) for layer in Layer},
            "points": [
                [point.at.timestamp() * 1000, *(point.words.get(layer, 0) for layer in reversed(Layer))]
                for point in points
            ],
        }
        ui.run_javascript(f"mbLayers({self._chart.id}, {json.dumps(drawn)})")

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


class EpisodeFigures:
    """Counts, compression and verification figures."""

    def __init__(self, i18n: Localizer, place: Element) -> None:
        self.i18n = i18n
        keys = ("count", "to_warm", "to_cold", "verified", "put_back", "struck_out")
        with place:
            self._values = {key: figure(i18n(f"episodes.figure.{key}"), "mb-meta") for key in keys}

    def show(self, stats: EpisodeStats) -> None:
        i18n = self.i18n
        figures = {
            "count": i18n.number(stats.episodes),
            "to_warm": self._times(stats, Layer.WARM),
            "to_cold": self._times(stats, Layer.COLD),
            "verified": i18n.number(stats.verified_packs),
            "put_back": i18n.number(stats.put_back),
            "struck_out": i18n.number(stats.struck_out),
        }
        for key, value in figures.items():
            self._values[key].set_text(value)
        self._values["verified"].classes(replace=f"mb-figure-value mb-num {'mb-ok' if stats.verified_packs else ''}")

    def _times(self, stats: EpisodeStats, layer: Layer) -> str:
        totals = stats.layers.get(layer)
        return "–" if totals is None or totals.compression is None else f"{self.i18n.number(totals.compression, 1)}×"


@dataclass(frozen=True)
class EpisodeItem:
    """An episode in the list; its chat is named if there are several."""

    head: EpisodeHead
    is_chosen: bool = False
    names_chat: bool = False


def episode_rows(
    i18n: Localizer, names: DisplayNames, place: Element, choose: Callable[[str], Any]
) -> Rows[EpisodeItem]:
    """Rows of episodes with their layer, sizes and priority."""

    def row(item: EpisodeItem) -> RedrawnRow[EpisodeItem]:
        name = item.head.id
        return RedrawnRow(clickable("mb-hit mb-ep-row", lambda: choose(name), data_row=name, data_episode=name), draw)

    def draw(row: Element, item: EpisodeItem) -> None:
        head = item.head
        update(row, aria_pressed=item.is_chosen)
        with box("mb-line-x"):
            attributes(text(head.headline, "mb-medium mb-ell mb-grow"), title=head.headline)
            layer_tag(i18n, head)
        with box("mb-line-x mb-meta mb-num"):
            moment(i18n, head.started_at, i18n.date(head.started_at, datetime.now(UTC)), "")
            if item.names_chat:
                text(names.of(head.chat_id), "mb-ell")
            text(word_counts(i18n, head), "mb-t2 mb-ep-words")
            box("mb-grow")
            score_bar((head.priority, "acc"), classes="mb-ep-bar")
            text(i18n.number(head.priority, 2), "mb-num mb-t2")

    with place:
        return Rows(box("mb-hits"), row)


def layer_tag(i18n: Localizer, head: EpisodeHead) -> None:
    """The layer, and whether it is an anchor."""
    tag(i18n(f"episodes.layer.{head.layer.value}"), head.layer.value)
    if head.is_anchor:
        with box("mb-tag mb-tint", "span").style("--c: var(--acc)"):
            icon("anchor", "mb-i14")
            text(i18n("episodes.anchor"), "mb-not-narrow")


def word_counts(i18n: Localizer, head: EpisodeHead) -> str:
    """Number of raw words, of stored words, and the ratio."""
    raw_words, stored_words = i18n.number(head.words), head.kept_words
    if stored_words is None or stored_words >= head.words:
        return raw_words
    return f"{raw_words} → {i18n.number(stored_words)}  {i18n.number(head.words / max(1, stored_words), 1)}×"
