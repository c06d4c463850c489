"""Repair of a proposed pack: what it dropped is put back, what it invented is struck out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bus_schema.episodes import ColdContent, Decision, Entity, RawLogIds, RawTurn, WarmContent
from language.words import stem_key
from memory.packing.budget import cold_budget, content_words, count_words, raw_words, warm_budget
from memory.packing.cold import cold_of
from memory.packing.sentences import clipped, meaningful_stems, split_sentences, turns_of_warm
from memory.packing.verification import SUMMARY_SUPPORT, SourceText, invented_in_cold, missing_entities
from memory.packing.warm import warm_of

_SUMMARY_SENTENCES = 4
# Share of common stems at which two wordings are one decision, and at which a point repeats a decision.
_SAME_DECISION = 0.7
_REPETITION = 0.9


@dataclass
class Repairs:
    """Texts that were put back into a pack, and those that were struck out."""

    put_back: list[str] = field(default_factory=list)
    struck_out: list[str] = field(default_factory=list)


def repair_warm(proposed: WarmContent, turns: Sequence[RawTurn]) -> tuple[WarmContent, Repairs]:
    """Entities and decisions by rules, the rest as proposed if it is supported and fits the budget."""
    source, repairs = SourceText(turns), Repairs()
    by_rules, budget = warm_of(turns), warm_budget(raw_words(turns))
    repairs.put_back += (entity.name for entity in missing_entities(proposed, source))
    builder = _WarmBuilder(by_rules, budget.most)
    summary = builder.summary(_supported_sentences(proposed, source, repairs))
    if not summary:
        repairs.put_back.append(by_rules.summary)
    builder.add_decisions(_further_decisions(proposed, source, repairs))
    builder.add_entities(_further_entities(proposed, source, repairs))
    builder.add_points(_supported_points(proposed, source, repairs))
    builder.fill(budget.least)
    return builder.content(summary or by_rules.summary), repairs


def repair_cold(proposed: ColdContent, warm: WarmContent, raw: int) -> tuple[ColdContent, Repairs]:
    """A headline that the warm content mentions, tags of its words, within the budget for so many raw words."""
    repairs, source = Repairs(), SourceText(turns_of_warm(warm))
    by_rules, budget = cold_of(warm, raw), cold_budget(content_words(warm), raw)
    repairs.struck_out += invented_in_cold(proposed, source)
    headline = " ".join(proposed.headline.split())
    if not headline or headline in repairs.struck_out or proposed.headline in repairs.struck_out:
        headline = by_rules.headline
        repairs.put_back.append(headline)
    headline = clipped(headline, max(1, budget.most - 1))
    tags: list[str] = []
    words_left = budget.wanted - count_words(headline)
    for tag in (*(tag for tag in proposed.tags if tag not in repairs.struck_out), *by_rules.tags):
        key = stem_key(tag)
        if key and count_words(tag) <= words_left and key not in map(stem_key, (headline, *tags)):
            tags.append(" ".join(tag.split()))
            words_left -= count_words(tag)
    return ColdContent(headline=headline, tags=tuple(tags)), repairs


class _WarmBuilder:
    """Builds warm content within a number of words, starting from the entities and decisions by rules."""

    def __init__(self, by_rules: WarmContent, max_words: int) -> None:
        self._by_rules, self._most = by_rules, max_words
        self._entities, self._decisions = list(by_rules.entities), list(by_rules.decisions)
        self._points: list[tuple[str, RawLogIds]] = []
        texts = (*(item.name for item in by_rules.entities), *(item.text for item in by_rules.decisions))
        self._words = sum(map(count_words, texts))

    def summary(self, sentences: Iterable[str]) -> str:
        """The sentences that fit; empty if none does."""
        sentences_taken = [sentence for sentence in list(sentences)[:_SUMMARY_SENTENCES] if self._take(sentence)]
        if not sentences_taken:
            self._words += count_words(self._by_rules.summary)
        return " ".join(sentences_taken)

    def add_decisions(self, more: Iterable[Decision]) -> None:
        self._decisions += [decision for decision in more if self._take(decision.text)]

    def add_entities(self, more: Iterable[Entity]) -> None:
        self._entities += [entity for entity in more if self._take(entity.name)]

    def add_points(self, more: Iterable[tuple[str, RawLogIds]]) -> None:
        decided = [meaningful_stems(decision.text) for decision in self._decisions]
        for point, sources in more:
            terms = meaningful_stems(point)
            is_repeated = any(len(terms & others) >= _REPETITION * len(terms) for others in decided)
            if not is_repeated and self._take(point):
                self._points.append((point, sources))

    def fill(self, min_words: int) -> None:
        """Add points by rules until there are at least so many words."""
        existing = {point for point, _ in self._points}
        for point, sources in zip(self._by_rules.key_points, self._by_rules.key_point_sources, strict=True):
            if self._words < min_words and point not in existing and self._take(point):
                self._points.append((point, sources))

    def content(self, summary: str) -> WarmContent:
        return WarmContent(
            summary=summary,
            key_points=tuple(point for point, _ in self._points),
            key_point_sources=tuple(sources for _, sources in self._points),
            entities=tuple(self._entities),
            decisions=tuple(self._decisions),
        )

    def _take(self, text: str) -> bool:
        fits = self._words + count_words(text) <= self._most
        self._words += count_words(text) if fits else 0
        return fits


def _further_entities(proposed: WarmContent, source: SourceText, repairs: Repairs) -> Iterable[Entity]:
    """Proposed entities that the turns name, though the rules do not find them."""
    entity_keys = " | ".join(stem_key(entity.name) for entity in source.entities)
    for entity in proposed.entities:
        if not (source.knows(entity.raw_log_ids) and source.has(entity.name, entity.raw_log_ids)):
            repairs.struck_out.append(entity.name)
        elif f" {stem_key(entity.name)} " not in f" {entity_keys} ":
            entity_keys = f"{entity_keys} | {stem_key(entity.name)}"
            yield entity


def _further_decisions(proposed: WarmContent, source: SourceText, repairs: Repairs) -> Iterable[Decision]:
    """Proposed decisions whose very words are in the turns, though the rules do not find them."""
    wordings = [meaningful_stems(decision.text) for decision in source.decisions]
    proposals = [(decision, meaningful_stems(decision.text)) for decision in proposed.decisions]
    for real, wording in zip(source.decisions, wordings, strict=True):
        if not any(len(wording & terms) >= _SAME_DECISION * len(wording) for _, terms in proposals):
            repairs.put_back.append(real.text)
    decision_keys = [stem_key(decision.text) for decision in source.decisions]
    for decision, terms in proposals:
        key = stem_key(decision.text)
        if any(f" {key} " in f" {decision_key} " for decision_key in decision_keys):
            continue
        if source.states(decision):
            decision_keys.append(key)
            yield decision
        elif not any(len(wording & terms) >= _SAME_DECISION * max(len(wording), len(terms)) for wording in wordings):
            repairs.struck_out.append(decision.text)


def _supported_points(proposed: WarmContent, source: SourceText, repairs: Repairs) -> list[tuple[str, RawLogIds]]:
    supported = []
    for point, sources in zip(proposed.key_points, proposed.key_point_sources, strict=True):
        if source.knows(sources) and source.supports(point, sources):
            supported.append((" ".join(point.split()), sources))
        else:
            repairs.struck_out.append(point)
    return supported


def _supported_sentences(proposed: WarmContent, source: SourceText, repairs: Repairs) -> list[str]:
    supported = []
    for sentence in split_sentences(proposed.summary):
        if source.supports(sentence, share=SUMMARY_SUPPORT):
            supported.append(sentence)
        else:
            repairs.struck_out.append(sentence)
    return supported
