"""Verification of packs: all entities and decisions are kept, nothing is invented (spec 002 F3)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from bus_schema.episodes import ColdContent, Decision, Entity, Note, RawTurn, WarmContent
from language.statements import NEGATION
from language.words import stem_key
from memory.packing.decisions import decisions_of
from memory.packing.entities import entities_of
from memory.packing.sentences import meaningful_stems, sentences_of, split_sentences, without_blobs

# Least share of a claim's stems in the turns that it comes from; a summary of many turns adds words of its own.
POINT_SUPPORT = 0.7
SUMMARY_SUPPORT = 0.6
_FIGURE = re.compile(r"\d+(?:[.,:/]\d+)*")
_CAPITALISED = re.compile(r"(?<![.!?…:;]\s)(?<=[\s(«“\"'/-])[A-ZА-ЯЁ][\w'’.-]*\w|\w*[a-zа-яё][A-ZА-ЯЁ]\w*")


@dataclass(frozen=True)
class VerificationResult:
    """Entities and decisions that a pack lacks, statements that its episode does not support."""

    missing_entities: tuple[Entity, ...] = ()
    missing_decisions: tuple[Decision, ...] = ()
    invented: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return not (self.missing_entities or self.missing_decisions or self.invented)


class SourceText:
    """Turns that claims are checked against; `raw_log_ids` restrict a check to some of them."""

    def __init__(self, turns: Sequence[RawTurn]) -> None:
        self.turns = tuple(turns)
        self._by_id = {turn.raw_log_id: turn for turn in turns}
        self._keys: dict[str, str] = {}

    @cached_property
    def entities(self) -> tuple[Entity, ...]:
        return entities_of(self.turns)

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        return decisions_of(self.turns)

    def has(self, phrase: str, raw_log_ids: Iterable[str] | None = None) -> bool:
        """Whether one of the turns has these words in sequence, compared by stems."""
        key = stem_key(phrase)
        return bool(key) and any(f" {key} " in self._key(turn) for turn in self._of(raw_log_ids))

    def states(self, decision: Decision) -> bool:
        """Whether a decision is one that rules find, or each of its sentences is in one of the turns that it cites."""
        if not self.knows(decision.raw_log_ids):
            return False
        if stem_key(decision.text) in self._decision_keys:
            return True
        sentences = list(split_sentences(decision.text))
        return bool(sentences) and all(self.has(sentence, decision.raw_log_ids) for sentence in sentences)

    @cached_property
    def _decision_keys(self) -> frozenset[str]:
        return frozenset(stem_key(decision.text) for decision in self.decisions)

    def supports(self, claim: str, raw_log_ids: Iterable[str] | None = None, share: float = POINT_SUPPORT) -> bool:
        """Whether the turns have most stems of a claim, all its figures and names, and do not negate it."""
        if self.has(claim, raw_log_ids):
            return True
        return self.mentions(claim, raw_log_ids, share) and not self._negates(claim, self._of(raw_log_ids))

    def mentions(self, claim: str, raw_log_ids: Iterable[str] | None = None, share: float = POINT_SUPPORT) -> bool:
        """Whether the turns have most stems of a claim, all its figures and names."""
        turns = self._of(raw_log_ids)
        stems = {stem for turn in turns for stem in self._key(turn).split()}
        if not turns or not _figures(claim) <= _figures("\n".join(turn.content for turn in turns)):
            return False
        if not all(set(stem_key(name).split()) <= stems for name in _CAPITALISED.findall(claim)):
            return False
        claimed = meaningful_stems(claim)
        return len(claimed & stems) >= share * len(claimed)

    def knows(self, raw_log_ids: Iterable[str]) -> bool:
        return all(raw_log_id in self._by_id for raw_log_id in raw_log_ids)

    def _negates(self, claim: str, turns: Sequence[RawTurn]) -> bool:
        """Whether the sentence most similar to the claim differs from it in being negated."""
        claimed = meaningful_stems(claim)
        nearest = max(
            sentences_of(turns), key=lambda sentence: (len(claimed & sentence.terms), -sentence.words), default=None
        )
        if nearest is None or not claimed or len(claimed & nearest.terms) < POINT_SUPPORT * len(claimed):
            return False
        return bool(NEGATION.search(claim)) != bool(NEGATION.search(nearest.text))

    def _of(self, raw_log_ids: Iterable[str] | None) -> Sequence[RawTurn]:
        if raw_log_ids is None:
            return self.turns
        return [self._by_id[raw_log_id] for raw_log_id in raw_log_ids if raw_log_id in self._by_id]

    def _key(self, turn: RawTurn) -> str:
        if turn.raw_log_id not in self._keys:
            key = stem_key(without_blobs(f"{turn.content} {turn.speaker or ''}"))
            self._keys[turn.raw_log_id] = f" {key} "
        return self._keys[turn.raw_log_id]


def unfounded_notes(notes: Iterable[Note], source: SourceText) -> tuple[Note, ...]:
    """Notes that the turns which they cite do not support."""
    return tuple(
        note
        for note in notes
        if not (note.raw_log_ids and source.knows(note.raw_log_ids) and source.supports(note.text, note.raw_log_ids))
    )


def verify(content: WarmContent | ColdContent, turns: Sequence[RawTurn]) -> VerificationResult:
    source = SourceText(turns)
    if isinstance(content, ColdContent):
        return VerificationResult(invented=tuple(invented_in_cold(content, source)))
    return VerificationResult(
        missing_entities=tuple(missing_entities(content, source)),
        missing_decisions=tuple(missing_decisions(content, source)),
        invented=tuple(_invented_in_warm(content, source)),
    )


def missing_entities(content: WarmContent, source: SourceText) -> Iterable[Entity]:
    """Entities of the source that are neither listed in the pack nor part of a decision."""
    texts = (*(item.name for item in content.entities), *(item.text for item in content.decisions))
    keys = [f" {stem_key(text)} " for text in texts]
    return (entity for entity in source.entities if not any(f" {stem_key(entity.name)} " in key for key in keys))


def missing_decisions(content: WarmContent, source: SourceText) -> Iterable[Decision]:
    """Decisions of the source that are not listed in the pack."""
    keys = [f" {stem_key(decision.text)} " for decision in content.decisions]
    return (decision for decision in source.decisions if not any(f" {stem_key(decision.text)} " in key for key in keys))


def invented_in_cold(content: ColdContent, source: SourceText) -> Iterable[str]:
    """The headline, if the source does not mention it; tags with words that the source lacks."""
    # A headline names a subject rather than claiming anything, so that negation does not matter.
    if not (source.has(content.headline) or source.mentions(content.headline, share=SUMMARY_SUPPORT)):
        yield content.headline
    stems = {stem for turn in source.turns for stem in stem_key(f"{turn.content} {turn.speaker or ''}").split()}
    yield from (tag for tag in content.tags if not set(stem_key(tag).split()) <= stems)


def _invented_in_warm(content: WarmContent, source: SourceText) -> Iterable[str]:
    """Statements of the pack that the turns which they cite do not support."""
    for entity in content.entities:
        if not (source.knows(entity.raw_log_ids) and source.has(entity.name, entity.raw_log_ids)):
            yield entity.name
    for decision in content.decisions:
        if not source.states(decision):
            yield decision.text
    for point, sources in zip(content.key_points, content.key_point_sources, strict=True):
        if not (source.knows(sources) and source.supports(point, sources)):
            yield point
    for sentence in split_sentences(content.summary):
        if not source.supports(sentence, share=SUMMARY_SUPPORT):
            yield sentence


def _figures(text: str) -> set[str]:
    return set(_FIGURE.findall(text))
