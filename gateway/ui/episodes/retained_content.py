"""Content that a pack retains of an episode, located in the raw text and listed line by line."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from bus_schema.episodes import ColdContent, Content, Decision, Entity, HotContent, RawLogIds, RawTurn, WarmContent
from bus_schema.lsm_statistics import ExplainedEpisode
from language.sentences import sentence_spans
from language.words import stems

_WORD = re.compile(r"\w+(?:[-'’.]\w+)*")
# So much of a sentence's words makes it what a line of the pack says.
_SAID_AGAIN = 0.5

CharSpan = tuple[int, int]


class MarkedText(NamedTuple):
    text: str
    is_entity: bool = False
    is_decision: bool = False
    is_left_out: bool = False


@dataclass(frozen=True)
class RetainedContent:
    """Entities, decisions and lines of a pack, to be located in the raw turns."""

    entities: tuple[Entity, ...]
    decisions: tuple[Decision, ...]
    lines: tuple[tuple[str, RawLogIds], ...]
    is_whole: bool = False

    @classmethod
    def by(cls, content: Content) -> "RetainedContent":
        """The content of a layer; a cold episode has its tags as entities."""
        if isinstance(content, HotContent):
            return cls(content.entities, content.decisions, (), is_whole=True)
        if isinstance(content, WarmContent):
            points = zip(content.key_points, content.key_point_sources, strict=True)
            return cls(content.entities, content.decisions, ((content.summary, ()), *points))
        tags = tuple(Entity(name=tag, kind="thing", raw_log_ids=()) for tag in content.tags)
        return cls(tags, (), ((content.headline, ()),))

    def mark(self, turn: RawTurn) -> list[MarkedText]:
        text = turn.content
        entities = [entity.name for entity in self.entities if _is_of(entity.raw_log_ids, turn)]
        decisions = [decision.text for decision in self.decisions if _is_of(decision.raw_log_ids, turn)]
        named = [place for name in entities for place in places_of(name, text)]
        decided = [place for decision in decisions for place in _exactly(decision, text)]
        return list(_pieces(text, named, decided, self._omitted_spans(turn, [*named, *decided])))

    def in_line(self, line: str) -> list[MarkedText]:
        """The parts of a packed line with its entities marked."""
        named = [place for entity in self.entities for place in places_of(entity.name, line)]
        return list(_pieces(line, named, [], []))

    def _omitted_spans(self, turn: RawTurn, retained: Sequence[CharSpan]) -> list[CharSpan]:
        if self.is_whole:
            return []
        text = turn.content
        line_stems = [set(stems(line)) for line, sources in self.lines if _is_of(sources, turn)]
        return [
            (start, end)
            for start, end in sentence_spans(text)
            if not any(begin < end and start < stop for begin, stop in retained)
            and not _is_retained(text[start:end], line_stems)
        ]


def places_of(name: str, text: str) -> list[CharSpan]:
    """Spans of a name; of its inflected forms if the name itself does not occur."""
    return _exactly(name, text) or list(_in_any_form(name, text))


def _is_of(sources: RawLogIds, turn: RawTurn) -> bool:
    return not sources or turn.raw_log_id in sources


def _exactly(phrase: str, text: str) -> list[CharSpan]:
    words = phrase.split()
    if not words:
        return []
    pattern = r"(?<!\w)" + r"\s+".join(map(re.escape, words)) + r"(?!\w)"
    return [match.span() for match in re.finditer(pattern, text, re.IGNORECASE)]


def _in_any_form(name: str, text: str) -> Iterator[CharSpan]:
    name_stems = [set(stems(word)) for word in _WORD.findall(name)]
    if not name_stems:
        return
    text_words = [(match.span(), set(stems(match[0]))) for match in _WORD.finditer(text)]
    for place in range(len(text_words) - len(name_stems) + 1):
        window = text_words[place : place + len(name_stems)]
        if all(forms & have for forms, (_, have) in zip(name_stems, window, strict=True)):
            yield window[0][0][0], window[-1][0][1]


def _is_retained(sentence: str, lines: Iterable[Collection[str]]) -> bool:
    own = set(stems(sentence))
    return any(len(own.intersection(line)) >= _SAID_AGAIN * len(own) for line in lines)


def _pieces(
    text: str, named: Sequence[CharSpan], decided: Sequence[CharSpan], left_out: Sequence[CharSpan]
) -> Iterator[MarkedText]:
    edges = {edge for place in (*named, *decided, *left_out) for edge in place}
    cuts = sorted({0, len(text), *edges})
    for start, end in pairwise(cuts):
        looks = (any(begin <= start < stop for begin, stop in places) for places in (named, decided, left_out))
        yield MarkedText(text[start:end], *looks)


LineKind = Literal["headline", "summary", "decision", "point", "entity", "tag", "note"]


@dataclass(frozen=True)
class PackedLine:
    """A line of packed content; `is_put_back` if the model had dropped it and verification restored it."""

    kind: LineKind
    text: str
    sources: tuple[str, ...] = ()
    about: str = ""
    is_put_back: bool = False


def lines_of(explained: ExplainedEpisode) -> list[PackedLine]:
    """Lines in display order; of a hot episode its entities and decisions. Notes stay in every layer."""
    content = explained.episode.content
    notes = [PackedLine("note", note.text, note.raw_log_ids) for note in explained.episode.notes]
    if isinstance(content, ColdContent):
        return [PackedLine("headline", content.headline), *(PackedLine("tag", tag) for tag in content.tags), *notes]
    summary, points = [], []
    if isinstance(content, WarmContent):
        summary = [PackedLine("summary", content.summary)]
        sources = zip(content.key_points, content.key_point_sources, strict=True)
        points = [PackedLine("point", text, raw_log_ids) for text, raw_log_ids in sources]
    decisions = [PackedLine("decision", decision.text, decision.raw_log_ids) for decision in content.decisions]
    entities = [PackedLine("entity", entity.name, entity.raw_log_ids, entity.kind) for entity in content.entities]
    put_back = {_key(line) for line in explained.report.put_back} if explained.report else set()
    lines = [*summary, *decisions, *points, *entities, *notes]
    return [replace(line, is_put_back=_key(line.text) in put_back) for line in lines]


def is_whole(explained: ExplainedEpisode) -> bool:
    """True for a hot episode, which is not packed."""
    return isinstance(explained.episode.content, HotContent)


def _key(text: str) -> str:
    return " ".join(text.casefold().split())
