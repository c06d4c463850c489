"""A pack that somebody proposes, made to hold: what it dropped put back, what it invented struck out."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field

from bus_schema.episodes import ColdContent, Decision, Entity, RawLogIds, RawTurn, WarmContent
from language.words import stem_key
from memory.packing.budget import cold_budget, warm_budget
from memory.packing.cold import cold_of
from memory.packing.reading import as_turns, cut, meant
from memory.packing.verifying import SUMMARY_BORNE, Said, invented_in_cold, missing_entities
from memory.packing.warm import warm_of
from memory.packing.weighing import clipped
from memory.packing.words import count, words_of, words_said

_SUMMARY_SENTENCES = 4
# So much of its words makes two wordings one decision.
_SAME_DECISION = 0.7
_NOTHING_NEW = 0.9


@dataclass(frozen=True)
class Mended:
    """A pack with what had to be done to it."""

    content: WarmContent | ColdContent
    put_back: tuple[str, ...] = ()
    struck_out: tuple[str, ...] = ()


@dataclass
class _Repair:
    put_back: list[str] = field(default_factory=list)
    struck_out: list[str] = field(default_factory=list)

    def done(self, content: WarmContent | ColdContent) -> Mended:
        return Mended(content, tuple(self.put_back), tuple(self.struck_out))


def mended_warm(proposed: WarmContent, turns: Sequence[RawTurn]) -> Mended:
    """Entities and decisions as the raw text has them; of the rest, what it bears out and there is room for."""
    said, repair = Said(turns), _Repair()
    offline = warm_of(turns)
    repair.put_back += (each.name for each in missing_entities(proposed, said))
    room = _Room(offline, warm_budget(words_said(turns)).most)
    summary = room.summary(_borne_out(proposed, said, repair))
    if not summary:
        repair.put_back.append(offline.summary)
    room.add_decisions(_more_decisions(proposed, said, repair))
    room.add_entities(_more_entities(proposed, said, repair))
    room.add_points(_points(proposed, said, repair))
    room.fill(warm_budget(words_said(turns)).least)
    return repair.done(room.content(summary or offline.summary))


def mended_cold(proposed: ColdContent, warm: WarmContent, words_said: int) -> Mended:
    """A headline that the warm content bears out, tags that stand in it, as many as there is room for."""
    repair, said = _Repair(), Said(as_turns(warm))
    offline, budget = cold_of(warm, words_said), cold_budget(words_of(warm), words_said)
    repair.struck_out += invented_in_cold(proposed, said)
    headline = " ".join(proposed.headline.split())
    if not headline or headline in repair.struck_out or proposed.headline in repair.struck_out:
        headline = offline.headline
        repair.put_back.append(headline)
    headline = clipped(headline, max(1, budget.most - 1))
    tags: list[str] = []
    left = budget.wanted - count(headline)
    for tag in (*(each for each in proposed.tags if each not in repair.struck_out), *offline.tags):
        key = stem_key(tag)
        if key and count(tag) <= left and key not in map(stem_key, (headline, *tags)):
            tags.append(" ".join(tag.split()))
            left -= count(tag)
    return repair.done(ColdContent(headline=headline, tags=tuple(tags)))


class _Room:
    """What a mended pack is put together from, as long as there is room: first comes what must be kept."""

    def __init__(self, offline: WarmContent, most: int) -> None:
        self._offline, self._most = offline, most
        self._entities, self._decisions = list(offline.entities), list(offline.decisions)
        self._points: list[tuple[str, RawLogIds]] = []
        texts = (*(each.name for each in offline.entities), *(each.text for each in offline.decisions))
        self._words = sum(map(count, texts))

    def summary(self, sentences: Iterable[str]) -> str:
        """As much of it as there is room for; nothing where that is nothing."""
        kept = [each for each in list(sentences)[:_SUMMARY_SENTENCES] if self._take(each)]
        if not kept:
            self._words += count(self._offline.summary)
        return " ".join(kept)

    def add_decisions(self, more: Iterable[Decision]) -> None:
        self._decisions += [each for each in more if self._take(each.text)]

    def add_entities(self, more: Iterable[Entity]) -> None:
        self._entities += [each for each in more if self._take(each.name)]

    def add_points(self, more: Iterable[tuple[str, RawLogIds]]) -> None:
        decided = [meant(each.text) for each in self._decisions]
        new = (each for each in more if not any(_repeats(meant(each[0]), terms) for terms in decided))
        self._points += [each for each in new if self._take(each[0])]

    def fill(self, least: int) -> None:
        """With what would be there without a model, where a model has said too little."""
        said = {point for point, _ in self._points}
        for point, sources in zip(self._offline.key_points, self._offline.key_point_sources, strict=True):
            if self._words < least and point not in said and self._take(point):
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
        is_room = self._words + count(text) <= self._most
        self._words += count(text) if is_room else 0
        return is_room


def _repeats(terms: Set[str], others: Set[str]) -> bool:
    return len(terms & others) >= _NOTHING_NEW * len(terms)


def _more_entities(proposed: WarmContent, said: Said, repair: _Repair) -> Iterable[Entity]:
    """Those that the rules have missed, though the turns name them."""
    known = " | ".join(stem_key(each.name) for each in said.entities)
    for entity in proposed.entities:
        if not (said.knows(entity.raw_log_ids) and said.has(entity.name, entity.raw_log_ids)):
            repair.struck_out.append(entity.name)
        elif f" {stem_key(entity.name)} " not in f" {known} ":
            known = f"{known} | {stem_key(entity.name)}"
            yield entity


def _more_decisions(proposed: WarmContent, said: Said, repair: _Repair) -> Iterable[Decision]:
    """Those that the rules have missed, though somebody said these very words."""
    wordings = [meant(each.text) for each in said.decisions]
    proposals = [(each, meant(each.text)) for each in proposed.decisions]
    for real, wording in zip(said.decisions, wordings, strict=True):
        if not any(len(wording & terms) >= _SAME_DECISION * len(wording) for _, terms in proposals):
            repair.put_back.append(real.text)
    known = [stem_key(each.text) for each in said.decisions]
    for decision, terms in proposals:
        key = stem_key(decision.text)
        if any(f" {key} " in f" {each} " for each in known):
            continue
        if said.knows(decision.raw_log_ids) and said.has(decision.text, decision.raw_log_ids):
            known.append(key)
            yield decision
        elif not any(len(wording & terms) >= _SAME_DECISION * max(len(wording), len(terms)) for wording in wordings):
            repair.struck_out.append(decision.text)


def _points(proposed: WarmContent, said: Said, repair: _Repair) -> list[tuple[str, RawLogIds]]:
    kept = []
    for point, sources in zip(proposed.key_points, proposed.key_point_sources, strict=True):
        if said.knows(sources) and said.bears_out(point, sources):
            kept.append((" ".join(point.split()), sources))
        else:
            repair.struck_out.append(point)
    return kept


def _borne_out(proposed: WarmContent, said: Said, repair: _Repair) -> list[str]:
    """The sentences of its summary that are true."""
    kept = []
    for sentence in cut(proposed.summary):
        if said.bears_out(sentence, share=SUMMARY_BORNE):
            kept.append(sentence)
        else:
            repair.struck_out.append(sentence)
    return kept
