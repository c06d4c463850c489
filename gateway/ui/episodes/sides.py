"""An episode as it was said, beside what is kept of it."""

from collections.abc import Iterable
from datetime import UTC, datetime
from urllib.parse import urlencode

from bus_schema.episodes import RawTurn, WarmContent
from bus_schema.lsm_statistics import ExplainedEpisode
from gateway.ui.episodes.marking import Kept, Piece
from gateway.ui.episodes.packed_lines import Line, is_whole, lines_of
from gateway.ui.icons import icon
from gateway.ui.parts import anchor, attributes, box, moment, text
from gateway.ui.words import Words

_TITLES = {"decision": "episodes.decisions", "point": "episodes.points", "entity": "episodes.entities"}


def show_raw(words: Words, explained: ExplainedEpisode, kept: Kept) -> None:
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


def show_packed(words: Words, explained: ExplainedEpisode, kept: Kept) -> None:
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
            _struck_out(words, explained.report.struck_out)


def show_legend(words: Words, explained: ExplainedEpisode) -> None:
    """What the looks mean, who made the pack."""
    with box("mb-ep-legend"):
        text(words("episodes.legend.entity"), "mb-ep-entity")
        text(words("episodes.legend.decision"), "mb-ep-decision")
        text(words("episodes.legend.left_out"), "mb-ep-left-out")
        text(words("episodes.legend.put_back"), "mb-ep-edge")
        box("mb-grow")
        if explained.report is not None:
            text(words("episodes.made_by", maker=explained.report.maker), "mb-meta mb-ell")


def show_pieces(pieces: Iterable[Piece]) -> None:
    """On the screen; text is text, whatever is in it."""
    for piece in pieces:
        looks = {
            "mb-ep-entity": piece.is_entity,
            "mb-ep-decision": piece.is_decision,
            "mb-ep-left-out": piece.is_left_out,
        }
        text(piece.text, " ".join(name for name, is_on in looks.items() if is_on))


def _turn(words: Words, turn: RawTurn, kept: Kept) -> None:
    with attributes(box("mb-ep-turn"), data_raw=turn.raw_log_id):
        with box("mb-ep-who"):
            text(turn.speaker or words(f"episodes.{turn.role}"), "mb-ell")
            moment(words, turn.time, words.hour(turn.time))
        with box("mb-ep-said"):
            show_pieces(kept.marked(turn))


def _check(words: Words, explained: ExplainedEpisode) -> None:
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


def _group(words: Words, kind: str, lines: list[Line], kept: Kept) -> None:
    if kind in _TITLES:
        text(words(_TITLES[kind]), "mb-label mb-ep-label", "h3")
    is_flowing = kind in ("entity", "tag")
    plain = [line for line in lines if not line.is_put_back]
    if plain:
        with box(f"mb-ep-group {'mb-ep-flow' if is_flowing else ''}"):
            for line in plain:
                _line(words, line, kept)
    put_back = [line for line in lines if line.is_put_back]
    if put_back:
        with box("mb-ep-put-back"):
            with box("mb-line-x mb-cap mb-ok"):
                icon("replay", "mb-i14")
                text(words("episodes.put_back"))
            with box(f"mb-ep-group {'mb-ep-flow' if is_flowing else ''}"):
                for line in put_back:
                    _line(words, line, kept)


def _line(words: Words, line: Line, kept: Kept) -> None:
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


def _struck_out(words: Words, invented: Iterable[str]) -> None:
    text(words("episodes.struck_out"), "mb-label mb-ep-label", "h3")
    with box("mb-ep-group"):
        for each in invented:
            text(each, "mb-struck", "del")


def when_said(words: Words, explained: ExplainedEpisode) -> str:
    """Its day, how many messages."""
    day = words.date(explained.episode.started_at, datetime.now(UTC))
    return f"{day} · {words.count('chat.messages', explained.episode.turns)}"
