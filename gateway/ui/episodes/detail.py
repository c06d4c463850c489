"""One episode: what was said, what is kept of it, why."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from nicegui.element import Element

from bus_schema.episodes import Layer, RawTurn, WarmContent
from bus_schema.lsm_statistics import ExplainedEpisode
from gateway.ui.components import anchor, attributes, box, button, icon_button, identifier, moment, text
from gateway.ui.episodes.episode_list import layer_tag
from gateway.ui.episodes.retained_content import MarkedText, PackedLine, RetainedContent, is_whole, lines_of
from gateway.ui.i18n import Localizer
from gateway.ui.svg import icon
from memory.lsm.priority import FREQUENCY_WEIGHT, IMPORTANCE_WEIGHT, RECENCY_WEIGHT, RELEVANCE_WEIGHT

_SHORT_ID = 9
_BELOW = {Layer.HOT: Layer.WARM, Layer.WARM: Layer.COLD}


@dataclass(frozen=True)
class EpisodeActions:
    """What can be done with an episode."""

    close: Callable[[], Any]
    unpack: Callable[[str], Any]
    pack: Callable[[str, Layer], Any]
    anchor: Callable[[str, bool], Any]


class EpisodeDetail:
    """Beside the list; on a phone, in its place."""

    def __init__(self, words: Localizer, place: Element, deeds: EpisodeActions) -> None:
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
        words, kept = self.words, RetainedContent.by(explained.episode.content)
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
                identifier(words, episode.id, shown=f"{episode.id[:_SHORT_ID]}…")
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


_TITLES = {"decision": "episodes.decisions", "point": "episodes.points", "entity": "episodes.entities"}


def show_raw(words: Localizer, explained: ExplainedEpisode, kept: RetainedContent) -> None:
    """Word by word; what was left out is grey."""
    with box("mb-ep-side-head"):
        text(words("episodes.raw"), "mb-strong")
        text(words.count("episodes.words", explained.episode.words), "mb-meta mb-num")
        box("mb-grow")
        if (before := explained.episode.continues_from) is not None:
            anchor(f"/episodes?{urlencode({'episode': before})}", words("episodes.before"), "mb-link mb-cap")
    with box("mb-ep-text mb-scroll mb-grow"):
        for turn in explained.turns:
            _turn(words, turn, kept)


def show_packed(words: Localizer, explained: ExplainedEpisode, kept: RetainedContent) -> None:
    """What the layer says; hovering a line lights the turns that it is from."""
    episode = explained.episode
    with box("mb-ep-side-head"):
        text(words("episodes.hot" if is_whole(explained) else "episodes.packed"), "mb-strong")
        if not is_whole(explained):
            times = words.number(episode.words / max(1, explained.kept_words), 1)
            text(f"{words.count('episodes.words', explained.kept_words)} · {times}×", "mb-meta mb-num")
        box("mb-grow")
        _check(words, explained)
    with box("mb-ep-text mb-scroll mb-grow"):
        if is_whole(explained):
            text(words("episodes.nothing_packed"), "mb-meta", "p")
        lines = lines_of(explained)
        for kind in dict.fromkeys(line.kind for line in lines):
            _group(words, kind, [line for line in lines if line.kind == kind], kept)
        if explained.report and explained.report.struck_out:
            _show_struck_out(words, explained.report.struck_out)


def show_legend(words: Localizer, explained: ExplainedEpisode) -> None:
    """What the looks mean, who made the pack."""
    with box("mb-ep-legend"):
        text(words("episodes.legend.entity"), "mb-ep-entity")
        text(words("episodes.legend.decision"), "mb-ep-decision")
        text(words("episodes.legend.left_out"), "mb-ep-left-out")
        text(words("episodes.legend.put_back"), "mb-ep-edge")
        box("mb-grow")
        if explained.report is not None:
            text(words("episodes.made_by", maker=explained.report.maker), "mb-meta mb-ell")


def show_pieces(pieces: Iterable[MarkedText]) -> None:
    """On the screen; text is text, whatever is in it."""
    for piece in pieces:
        looks = {
            "mb-ep-entity": piece.is_entity,
            "mb-ep-decision": piece.is_decision,
            "mb-ep-left-out": piece.is_left_out,
        }
        text(piece.text, " ".join(name for name, is_on in looks.items() if is_on))


def _turn(words: Localizer, turn: RawTurn, kept: RetainedContent) -> None:
    with attributes(box("mb-ep-turn"), data_raw=turn.raw_log_id):
        with box("mb-ep-who"):
            text(turn.speaker or words(f"episodes.{turn.role}"), "mb-ell")
            moment(words, turn.time, words.hour(turn.time))
        with box("mb-ep-said"):
            show_pieces(kept.marked(turn))


def _check(words: Localizer, explained: ExplainedEpisode) -> None:
    report, content = explained.report, explained.episode.content
    if report is None or not report.verified:
        return
    with box("mb-line-x mb-ok mb-ep-check"):
        icon("check", "mb-i14")
        if isinstance(content, WarmContent):
            entities, decisions = words.number(len(content.entities)), words.number(len(content.decisions))
            text(words("episodes.verified_all", entities=entities, decisions=decisions), "mb-meta mb-ok mb-ell")
        else:
            text(words("episodes.verified"), "mb-meta mb-ok")


def _group(words: Localizer, kind: str, lines: list[PackedLine], kept: RetainedContent) -> None:
    if kind in _TITLES:
        text(words(_TITLES[kind]), "mb-label mb-ep-label", "h3")
    is_flowing = kind in ("entity", "tag")
    plain = [line for line in lines if not line.is_put_back]
    if plain:
        with box(f"mb-ep-group {'mb-ep-flow' if is_flowing else ''}"):
            for line in plain:
                _show_line(words, line, kept)
    put_back = [line for line in lines if line.is_put_back]
    if put_back:
        with box("mb-ep-put-back"):
            with box("mb-line-x mb-cap mb-ok"):
                icon("replay", "mb-i14")
                text(words("episodes.put_back"))
            with box(f"mb-ep-group {'mb-ep-flow' if is_flowing else ''}"):
                for line in put_back:
                    _show_line(words, line, kept)


def _show_line(words: Localizer, line: PackedLine, kept: RetainedContent) -> None:
    made = box(f"mb-ep-line mb-ep-{line.kind}-line")
    if line.sources:
        attributes(made, data_sources=" ".join(line.sources), tabindex="0")
    with made:
        if line.kind in ("entity", "tag"):
            text(line.text, "mb-ep-entity")
            if line.about:
                text(words(f"episodes.kind.{line.about}"), "mb-cap mb-t3")
        elif line.kind == "decision":
            with box("mb-ep-decision", "span"):
                show_pieces(kept.in_line(line.text))
        else:
            show_pieces(kept.in_line(line.text))


def _show_struck_out(words: Localizer, invented: Iterable[str]) -> None:
    text(words("episodes.struck_out"), "mb-label mb-ep-label", "h3")
    with box("mb-ep-group"):
        for each in invented:
            text(each, "mb-struck", "del")


def when_said(words: Localizer, explained: ExplainedEpisode) -> str:
    """Its day, how many messages."""
    day = words.date(explained.episode.started_at, datetime.now(UTC))
    return f"{day} · {words.count('chat.messages', explained.episode.turns)}"


_MOST = {
    "recency": RECENCY_WEIGHT,
    "frequency": FREQUENCY_WEIGHT,
    "importance": IMPORTANCE_WEIGHT,
    "relevance": RELEVANCE_WEIGHT,
}


def show_priority(words: Localizer, explained: ExplainedEpisode) -> None:
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


def _next(words: Localizer, explained: ExplainedEpisode) -> str:
    episode, following, now = explained.episode, explained.next, datetime.now(UTC)
    if following is not None:
        name = words(f"episodes.layer.{following.layer.value}")
        if following.at <= now:
            return words("episodes.due", layer=name)
        return words("episodes.next", layer=name, day=words.date(following.at, now))
    if episode.is_anchor:
        return words("episodes.anchor_stays")
    return words("episodes.coldest" if episode.layer is Layer.COLD else "episodes.stays")
