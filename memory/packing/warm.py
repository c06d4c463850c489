"""From raw text to what questions can be answered from, without a model: its own sentences, the best of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from bus_schema.episodes import Decision, Entity, RawTurn, WarmContent
from language.words import small_talk_stems, stem_key
from memory.packing.budget import Budget, warm_budget
from memory.packing.decisions import decisions_of
from memory.packing.entities import entities_of
from memory.packing.reading import plain
from memory.packing.standing_alone import understood, without_lead
from memory.packing.weighing import Weighed, clipped, weighed
from memory.packing.words import count, words_said

_SUMMARY_SENTENCES = 4
_SUMMARY_SHARE = 0.2
_SUMMARY_WORDS = 70
_FEWEST_SUMMARY_WORDS, _LEAST_SUMMARY_WORDS = 6, 3
# Where there is less room than this, a summary is the one sentence that can be understood by itself.
_ONE_SENTENCE_WORDS = 8
_OF_THE_FIRST, _OF_THE_FIRST_QUESTION, _OF_A_NAME_ALONE = 1.5, 4.0, 0.5
# Of what is said already, so much makes a sentence say nothing new.
_REPEATED = 0.7
# What tells how much: a name as much as two words; a point has to be worth its being one.
_OF_A_NAME, _OF_A_POINT, _OF_A_QUESTION, _OF_CHATTER = 2.0, 5.0, 0.3, 0.3


def warm_of(turns: Sequence[RawTurn]) -> WarmContent:
    """Summary, key points with their turns, all entities, all decisions; as dense as spec 002 NF4 says if it can be."""
    entities, decisions = entities_of(turns), decisions_of(turns)
    budget = warm_budget(words_said(turns))
    if _words(entities, decisions) + _FEWEST_SUMMARY_WORDS > budget.most:
        entities = apart_from(decisions, entities)
    sentences = weighed(turns, entities, decisions)
    choice = _Choice(_words(entities, decisions), budget)
    summary = choice.summary(sentences) or [clipped(_longest(turns), _LEAST_SUMMARY_WORDS)]
    points = choice.points(sentences)
    return WarmContent(
        summary=" ".join(summary),
        key_points=tuple(point for point, _ in points),
        key_point_sources=tuple((source,) for _, source in points),
        entities=entities,
        decisions=decisions,
    )


def apart_from(decisions: Sequence[Decision], entities: Sequence[Entity]) -> tuple[Entity, ...]:
    """The entities that no decision names: where there is no room to say things twice."""
    decided = [f" {stem_key(decision.text)} " for decision in decisions]
    return tuple(each for each in entities if not any(f" {stem_key(each.name)} " in text for text in decided))


def _words(entities: Sequence[Entity], decisions: Sequence[Decision]) -> int:
    return sum(count(entity.name) for entity in entities) + sum(count(decision.text) for decision in decisions)


def _longest(turns: Sequence[RawTurn]) -> str:
    """For an episode of nothing but decisions, or of no words."""
    return " ".join(max((plain(turn.content) for turn in turns), key=len, default="").split())


@dataclass
class _Choice:
    """What has been chosen so far: its words, its terms, its names."""

    words: int
    budget: Budget

    def __post_init__(self) -> None:
        self._terms: set[str] = set()
        self._names: set[int] = set()
        self._taken: set[int] = set()

    def left(self, of: int) -> int:
        return max(0, of - self.words)

    def summary(self, sentences: Sequence[Weighed]) -> list[str]:
        """The most central sentences, in their order; where there is room for none, the beginning of the first."""
        share = round(self.left(self.budget.wanted) * _SUMMARY_SHARE)
        at_least = min(_FEWEST_SUMMARY_WORDS, max(_LEAST_SUMMARY_WORDS, self.left(self.budget.most)))
        room = max(min(_SUMMARY_WORDS, share), min(at_least, self.budget.most))
        if share < _ONE_SENTENCE_WORDS:
            return self._one_sentence(sentences, room)
        ranked = sorted(sentences, key=_by_worth)
        chosen: list[Weighed] = []
        for each in ranked:
            if len(chosen) < _SUMMARY_SENTENCES and each.worth and count(each.text) <= room and self._is_new(each):
                room -= count(each.text)
                chosen.append(self._take(each, each.text))
        if not chosen and ranked:
            return [self._clipped(ranked[0], room)]
        return [_ended(each.text) for each in sorted(chosen, key=_place)]

    def _one_sentence(self, sentences: Sequence[Weighed], room: int) -> list[str]:
        """Whole, if there is any room for it: of what is said in few words, not much else may be left."""
        ranked = sorted((each for each in sentences if each.worth), key=lambda each: (-_alone(each), _place(each)))
        fitting = (each for each in ranked if count(_bare(each)) <= max(room, self.left(self.budget.most)))
        if best := next(fitting, None):
            return [_bare(self._take(best, _bare(best)))]
        return [self._clipped(each, room) for each in (ranked or sorted(sentences, key=_by_worth))[:1]]

    def points(self, sentences: Sequence[Weighed]) -> list[tuple[str, str]]:
        """What tells most that is new in fewest words, in the order in which it was said.

        If that is too little for an episode of so many words, then anything.
        """
        chosen = list(self._telling([each for each in sentences if each.worth]))
        for each in sorted(sentences, key=_by_worth):
            if self.left(self.budget.least) and each.words <= self.left(self.budget.most) and not self._has(each):
                chosen.append(self._take(each, each.point))
        return [(each.point, each.sentence.raw_log_id) for each in sorted(chosen, key=_place)]

    def _telling(self, sentences: Sequence[Weighed]) -> Iterator[Weighed]:
        """One after the other; what one has told, the next need not tell."""
        waiting = [(-self._news(each), each.sentence.place, each) for each in sentences if not self._has(each)]
        heapify(waiting)
        while waiting:
            _, place, each = heappop(waiting)
            news = self._news(each)
            if news <= 0 or each.words > self.left(self.budget.wanted):
                continue
            if waiting and -waiting[0][0] > news:
                # Another has told some of it meanwhile.
                heappush(waiting, (-news, place, each))
                continue
            yield self._take(each, each.point)

    def _news(self, each: Weighed) -> float:
        """For each of its words, what it tells that has not been told."""
        new = each.sentence.terms - self._terms
        terms = len(new) - (1 - _OF_CHATTER) * len(new & small_talk_stems())
        told = terms + _OF_A_NAME * len(each.names - self._names)
        return told / (each.words + _OF_A_POINT) * (_OF_A_QUESTION if each.sentence.is_question else 1.0)

    def _clipped(self, each: Weighed, words: int) -> str:
        text = clipped(each.text, words)
        if text == each.text:
            self._take(each, text)
        else:
            self.words += count(text)
        return text

    def _has(self, each: Weighed) -> bool:
        return each.sentence.place in self._taken

    def _is_new(self, each: Weighed) -> bool:
        if self._has(each):
            return False
        terms = each.sentence.terms
        return bool(each.names - self._names) or len(terms & self._terms) < _REPEATED * len(terms)

    def _take(self, each: Weighed, text: str) -> Weighed:
        self.words += count(text)
        self._terms |= each.sentence.terms
        self._names |= each.names
        self._taken.add(each.sentence.place)
        return each


def _by_worth(each: Weighed) -> tuple[float, int]:
    return -each.worth, each.sentence.place


def _bare(each: Weighed) -> str:
    return without_lead(each.text)


def _alone(each: Weighed) -> float:
    """Its worth to whoever reads nothing else; what a talk begins with is what it is about, also if it is asked."""
    worth = (each.worth + _OF_A_NAME_ALONE * len(each.names)) * understood(each.text)
    if each.sentence.turn:
        return worth
    return worth * (_OF_THE_FIRST_QUESTION if each.sentence.is_question else _OF_THE_FIRST)


def _place(each: Weighed) -> int:
    return each.sentence.place


def _ended(text: str) -> str:
    return text if text[-1:] in '.!?…»”")' else f"{text}."
