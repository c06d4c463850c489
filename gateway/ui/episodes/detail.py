"""One episode: raw turns beside the packed content, the pack report, the terms of its priority."""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from nicegui import ui
from nicegui.element import Element

from bus_schema.episodes import EpisodeHead, Layer, RawTurn, WarmContent
from bus_schema.lsm_statistics import (
    FREQUENCY_WEIGHT,
    IMPORTANCE_WEIGHT,
    RECENCY_WEIGHT,
    RELEVANCE_WEIGHT,
    ExplainedEpisode,
)
from gateway.ui.components import (
    anchor,
    attributes,
    box,
    icon_button,
    identifier,
    moment,
    refill,
    score_bar,
    scroller,
    text,
    update,
)
from gateway.ui.episodes.overview import layer_tag
from gateway.ui.episodes.retained_content import MarkedText, PackedLine, RetainedContent, is_whole, lines_of
from gateway.ui.graph import Graph, drawing_of
from gateway.ui.i18n import Localizer
from gateway.ui.svg import icon

_SHORT_ID = 9


ShowFitting = Callable[[EpisodeHead], None]


class EpisodeDetail:
    """Beside the list; on a phone, in its place.

    `draw_buttons` draws all buttons of an episode and returns a function that shows those which fit its state.
    """

    def __init__(
        self, i18n: Localizer, place: Element, on_close: Callable[[], Any], draw_buttons: Callable[[str], ShowFitting]
    ) -> None:
        self.i18n, self._place, self._on_close, self._draw_buttons = i18n, place, on_close, draw_buttons
        self._shown: ExplainedEpisode | None = None
        self._links = Graph((), frozenset())
        self.close()

    def close(self) -> None:
        self._shown = None
        with refill(self._place), box("mb-empty"):
            icon("memory")
            text(self.i18n("episodes.choose"), "", "p")

    def show(self, explained: ExplainedEpisode, links: Graph) -> None:
        """Show an episode with its links; what is unchanged is not redrawn, so that its scroll position stays.

        The buttons stay while the same episode is shown: a click on an element that is replaced meanwhile is lost.
        """
        if (explained, links) == (self._shown, self._links):
            return
        self._links = links
        i18n, before, retained = self.i18n, self._shown, RetainedContent.by(explained.episode.content)
        if before is None or before.episode.id != explained.episode.id:
            before = None
            self._build(explained.episode)
        self._shown = explained
        self._show_head(explained.episode)
        if before is None or _raw_basis(before) != _raw_basis(explained):
            with refill(self._raw):
                show_raw(i18n, explained, retained)
        with refill(self._packed):
            show_packed(i18n, explained, retained)
            show_priority(i18n, explained)
            show_links(i18n, links, explained.episode.id)
        with refill(self._legend):
            show_legend(i18n, explained)

    def _build(self, episode: EpisodeHead) -> None:
        i18n = self.i18n
        with refill(self._place):
            with box("mb-head mb-ep-head"):
                icon_button("left", i18n("close"), self._on_close, "mb-back")
                self._title = text("", "mb-ell", "h2")
                self._layer = box("mb-line-x")
                with box("mb-line-x mb-not-phone"):
                    identifier(i18n, episode.id, shown=f"{episode.id[:_SHORT_ID]}…")
                    self._extent = text("", "mb-meta mb-num mb-ell")
                box("mb-grow")
                with box("mb-line-x mb-ep-deeds"):
                    self._show_fitting = self._draw_buttons(episode.id)
            with box("mb-ep-sides"):
                self._raw = attributes(box("mb-ep-side mb-ep-raw", "section"), aria_label=i18n("episodes.raw"))
                self._packed = attributes(box("mb-ep-side mb-ep-packed", "section"), aria_label=i18n("episodes.packed"))
            self._legend = box("mb-ep-legend")

    def _show_head(self, episode: EpisodeHead) -> None:
        i18n = self.i18n
        self._title.set_text(episode.headline)
        update(self._title, title=episode.headline)
        with refill(self._layer):
            layer_tag(i18n, episode)
        day = i18n.date(episode.started_at, datetime.now(UTC))
        self._extent.set_text(f"{day} · {i18n.count('chat.messages', episode.turns)}")
        self._show_fitting(episode)


def _raw_basis(explained: ExplainedEpisode) -> tuple[object, ...]:
    """All that is shown of the raw turns."""
    episode = explained.episode
    return explained.turns, explained.raw_turns, episode.content, episode.words, episode.continues_from


_TITLES = {
    "decision": "episodes.decisions",
    "point": "episodes.points",
    "entity": "episodes.entities",
    "note": "episodes.notes",
}


def show_raw(i18n: Localizer, explained: ExplainedEpisode, retained: RetainedContent) -> None:
    """Raw turns; omitted parts are grey."""
    with box("mb-ep-side-head"):
        text(i18n("episodes.raw"), "mb-strong")
        text(i18n.count("episodes.words", explained.episode.words), "mb-meta mb-num")
        box("mb-grow")
        if (before := explained.episode.continues_from) is not None:
            anchor(f"/episodes?{urlencode({'episode': before})}", i18n("episodes.before"), "mb-link mb-cap")
    with scroller("mb-ep-text mb-grow"):
        if explained.raw_turns == "gone":
            text(i18n("episodes.raw_gone"), "mb-meta", "p")
        for turn in explained.turns:
            _turn(i18n, turn, retained)


def show_packed(i18n: Localizer, explained: ExplainedEpisode, retained: RetainedContent) -> None:
    """Packed content; hovering a line highlights its source turns."""
    episode = explained.episode
    with box("mb-ep-side-head"):
        text(i18n("episodes.hot" if is_whole(explained) else "episodes.packed"), "mb-strong")
        if not is_whole(explained):
            times = i18n.number(episode.words / max(1, explained.kept_words), 1)
            text(f"{i18n.count('episodes.words', explained.kept_words)} · {times}×", "mb-meta mb-num")
        box("mb-grow")
        _check(i18n, explained)
    with scroller("mb-ep-text mb-grow"):
        if is_whole(explained):
            text(i18n("episodes.nothing_packed"), "mb-meta", "p")
        lines = lines_of(explained)
        for kind in dict.fromkeys(line.kind for line in lines):
            _group(i18n, kind, [line for line in lines if line.kind == kind], retained)
        if explained.report and explained.report.struck_out:
            text(i18n("episodes.struck_out"), "mb-label mb-ep-label", "h3")
            with box("mb-ep-group"):
                for invented in explained.report.struck_out:
                    text(invented, "mb-struck", "del")


def show_legend(i18n: Localizer, explained: ExplainedEpisode) -> None:
    """Legend of the highlights, and the maker of the pack."""
    text(i18n("episodes.legend.entity"), "mb-ep-entity")
    text(i18n("episodes.legend.decision"), "mb-ep-decision")
    text(i18n("episodes.legend.left_out"), "mb-ep-left-out")
    text(i18n("episodes.legend.put_back"), "mb-ep-edge")
    box("mb-grow")
    if explained.report is not None:
        text(i18n("episodes.made_by", maker=explained.report.maker), "mb-meta mb-ell")


def show_pieces(pieces: Iterable[MarkedText]) -> None:
    for piece in pieces:
        looks = {
            "mb-ep-entity": piece.is_entity,
            "mb-ep-decision": piece.is_decision,
            "mb-ep-left-out": piece.is_left_out,
        }
        text(piece.text, " ".join(name for name, is_on in looks.items() if is_on))


def _turn(i18n: Localizer, turn: RawTurn, retained: RetainedContent) -> None:
    with attributes(box("mb-ep-turn"), data_raw=turn.raw_log_id):
        with box("mb-ep-who"):
            text(turn.speaker or i18n(f"episodes.{turn.role}"), "mb-ell")
            moment(i18n, turn.time, i18n.hour(turn.time))
        with box("mb-ep-said"):
            show_pieces(retained.mark(turn))


def _check(i18n: Localizer, explained: ExplainedEpisode) -> None:
    report, content = explained.report, explained.episode.content
    if report is None or not report.verified:
        return
    with box("mb-line-x mb-ok mb-ep-check"):
        icon("check", "mb-i14")
        if isinstance(content, WarmContent):
            entities, decisions = i18n.number(len(content.entities)), i18n.number(len(content.decisions))
            text(i18n("episodes.verified_all", entities=entities, decisions=decisions), "mb-meta mb-ok mb-ell")
        else:
            text(i18n("episodes.verified"), "mb-meta mb-ok")


def _group(i18n: Localizer, kind: str, lines: list[PackedLine], retained: RetainedContent) -> None:
    if kind in _TITLES:
        text(i18n(_TITLES[kind]), "mb-label mb-ep-label", "h3")
    _lines(i18n, [line for line in lines if not line.is_put_back], retained)
    put_back = [line for line in lines if line.is_put_back]
    if put_back:
        with box("mb-ep-put-back"):
            with box("mb-line-x mb-cap mb-ok"):
                icon("replay", "mb-i14")
                text(i18n("episodes.put_back"))
            _lines(i18n, put_back, retained)


def _lines(i18n: Localizer, lines: list[PackedLine], retained: RetainedContent) -> None:
    if lines:
        with box(f"mb-ep-group {'mb-ep-flow' if lines[0].kind in ('entity', 'tag') else ''}"):
            for line in lines:
                _show_line(i18n, line, retained)


def _show_line(i18n: Localizer, line: PackedLine, retained: RetainedContent) -> None:
    element = box(f"mb-ep-line mb-ep-{line.kind}-line")
    if line.sources:
        attributes(element, data_sources=" ".join(line.sources), tabindex="0")
    with element:
        if line.kind in ("entity", "tag"):
            text(line.text, "mb-ep-entity")
            if line.about:
                text(i18n(f"episodes.kind.{line.about}"), "mb-cap mb-t3")
        else:
            with box("mb-ep-decision", "span") if line.kind == "decision" else nullcontext():
                show_pieces(retained.in_line(line.text))


_MAX_SCORES = {
    "recency": RECENCY_WEIGHT,
    "frequency": FREQUENCY_WEIGHT,
    "importance": IMPORTANCE_WEIGHT,
    "relevance": RELEVANCE_WEIGHT,
}


def show_priority(i18n: Localizer, explained: ExplainedEpisode) -> None:
    """The four terms of the priority, and the next change of the layer."""
    with attributes(box("mb-ep-priority", "section"), aria_label=i18n("episodes.priority")):
        with box("mb-line-x mb-wrap"):
            text(i18n("episodes.priority"), "mb-medium mb-t2", "h3")
            text(i18n.number(explained.episode.priority, 2), "mb-num mb-strong")
            box("mb-grow")
            text(_next(i18n, explained), "mb-meta")
        with box("mb-ep-terms"):
            for name, maximum in _MAX_SCORES.items():
                value = float(getattr(explained.terms, name))
                with attributes(box("mb-stack"), title=i18n(f"episodes.term.{name}_hint")):
                    text(i18n.number(value, 2), "mb-num mb-strong")
                    text(i18n(f"episodes.term.{name}"), "mb-meta mb-ell")
                    score_bar((value / maximum, "acc"))


def show_links(i18n: Localizer, links: Graph, chosen: str) -> None:
    """Graph of what the episode continues and of what has the same subject; nothing where there is neither."""
    if not links.edges:
        return
    label = i18n("episodes.links")
    with attributes(box("mb-ep-links", "section"), aria_label=label):
        with box("mb-line-x mb-wrap"):
            text(label, "mb-medium mb-t2", "h3")
            box("mb-grow")
            text(i18n("episodes.link_continues"), "mb-meta mb-ep-link-key")
            if links.weak:
                text(i18n("episodes.link_related"), "mb-meta mb-ep-link-key mb-weak")
        graph = ui.html(drawing_of(links, chosen, label), sanitize=False).classes("mb-scroll")
        attributes(graph, tabindex="0")


def _next(i18n: Localizer, explained: ExplainedEpisode) -> str:
    episode, following, now = explained.episode, explained.next, datetime.now(UTC)
    if following is not None:
        name = i18n(f"episodes.layer.{following.layer.value}")
        if following.at <= now:
            return i18n("episodes.due", layer=name)
        return i18n("episodes.next", layer=name, day=i18n.date(following.at, now))
    if episode.is_anchor:
        return i18n("episodes.anchor_stays")
    return i18n("episodes.coldest" if episode.layer is Layer.COLD else "episodes.stays")
