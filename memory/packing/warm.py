"""Warm content by rules: the best sentences of an episode beside all its entities and decisions."""

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from bus_schema.episodes import Decision, Entity, RawTurn, WarmContent
from language.words import small_talk_stems, stem_key
from memory.packing.budget import WordBudget, count_words, raw_words, warm_budget
from memory.packing.decisions import decisions_of
from memory.packing.entities import entities_of
from memory.packing.sentences import (
    ScoredSentence,
    clipped,
    score_sentences,
    self_containedness,
    without_blobs,
    without_lead_in,
)

_SUMMARY_SENTENCES = 4
_SUMMARY_SHARE = 0.2
_SUMMARY_WORDS = 70
_SMALL_SUMMARY_WORDS, _MIN_SUMMARY_WORDS = 6, 3
# With less room, the summary is the sentence that is best understood by itself.
_ONE_SENTENCE_WORDS = 8
_FIRST_TURN, _FIRST_QUESTION, _NAME_ALONE = 1.5, 4.0, 0.5
_FIGURES = frozenset({"date", "amount"})
# Share of known terms from which a sentence says nothing new.
_REPETITION = 0.7
# Information of a key point: a name counts as two words; every point costs as much as so many words.
_NAME, _POINT_COST, _QUESTION_FACTOR, _SMALL_TALK_WEIGHT = 2.0, 5.0, 0.3, 0.3


def warm_of(turns: Sequence[RawTurn]) -> WarmContent:
    """Warm content within the budget of spec 002 NF4 if all entities and decisions leave room for it."""
    entities, decisions = entities_of(turns), decisions_of(turns)
    budget = warm_budget(raw_words(turns))
    if _words(entities, decisions) + _SMALL_SUMMARY_WORDS > budget.most:
        entities = _outside_of(decisions, entities)
    sentences = score_sentences(turns, entities, decisions)
    selection = _Selection(_words(entities, decisions), budget)
    summary = selection.summary(sentences) or [clipped(_longest(turns), _MIN_SUMMARY_WORDS)]
    points = selection.points(sentences)
    return WarmContent(
        summary=" ".join(summary),
        key_points=tuple(scored for scored, _ in points),
        key_point_sources=tuple((source,) for _, source in points),
        entities=entities,
        decisions=decisions,
    )


def _outside_of(decisions: Sequence[Decision], entities: Sequence[Entity]) -> tuple[Entity, ...]:
    """Without the figures that a decision has; names are looked for by themselves."""
    decided = [f" {stem_key(decision.text)} " for decision in decisions]

    def is_named(entity: Entity) -> bool:
        return entity.kind in _FIGURES and any(f" {stem_key(entity.name)} " in text for text in decided)

    return tuple(entity for entity in entities if not is_named(entity))


def _words(entities: Sequence[Entity], decisions: Sequence[Decision]) -> int:
    texts = (*(entity.name for entity in entities), *(decision.text for decision in decisions))
    return sum(map(count_words, texts))


def _longest(turns: Sequence[RawTurn]) -> str:
    """The longest turn, for an episode of nothing but decisions, or without words."""
    return " ".join(max((without_blobs(turn.content) for turn in turns), key=len, default="").split())


class _Selection:
    """Greedy selection of sentences: the words, terms and names selected so far."""

    def __init__(self, words: int, budget: WordBudget) -> None:
        self.words, self.budget = words, budget
        self._terms: set[str] = set()
        self._names: set[int] = set()
        self._taken: set[int] = set()

    def summary(self, sentences: Sequence[ScoredSentence]) -> list[str]:
        """The best sentences in their order; the beginning of the best where none fits."""
        share = round(self._words_left(self.budget.wanted) * _SUMMARY_SHARE)
        at_least = min(_SMALL_SUMMARY_WORDS, max(_MIN_SUMMARY_WORDS, self._words_left(self.budget.most)))
        room = max(min(_SUMMARY_WORDS, share), min(at_least, self.budget.most))
        if share < _ONE_SENTENCE_WORDS:
            return self._one_sentence(sentences, room)
        ranked = sorted(sentences, key=_by_score)
        chosen: list[ScoredSentence] = []
        for scored in ranked:
            fits = len(chosen) < _SUMMARY_SENTENCES and scored.score and count_words(scored.text) <= room
            if fits and self._is_new(scored):
                room -= count_words(scored.text)
                chosen.append(self._take(scored, scored.text))
        if not chosen and ranked:
            return [self._clip(ranked[0], room)]
        return [_with_full_stop(scored.text) for scored in sorted(chosen, key=_place)]

    def points(self, sentences: Sequence[ScoredSentence]) -> list[tuple[str, str]]:
        """Key points with their turn ids, in order: the most informative ones, then any up to the least words."""
        chosen = list(self._most_informative([scored for scored in sentences if scored.score]))
        for scored in sorted(sentences, key=_by_score):
            if (
                self._words_left(self.budget.least)
                and scored.words <= self._words_left(self.budget.most)
                and not self._has(scored)
            ):
                chosen.append(self._take(scored, scored.point))
        return [(scored.point, scored.sentence.raw_log_id) for scored in sorted(chosen, key=_place)]

    def _one_sentence(self, sentences: Sequence[ScoredSentence], room: int) -> list[str]:
        """A whole sentence even if little else is left of the budget."""
        ranked = sorted(
            (scored for scored in sentences if scored.score),
            key=lambda scored: (-_score_alone(scored), _place(scored)),
        )
        limit = max(room, self._words_left(self.budget.most))
        for scored in ranked:
            bare = without_lead_in(scored.text)
            if count_words(bare) <= limit:
                self._take(scored, bare)
                return [bare]
        return [self._clip(scored, room) for scored in (ranked or sorted(sentences, key=_by_score))[:1]]

    def _most_informative(self, sentences: Sequence[ScoredSentence]) -> Iterator[ScoredSentence]:
        """Lazy greedy selection: the information of a sentence only falls as others are selected."""
        heap = [
            (-self._information(scored), scored.sentence.place, scored) for scored in sentences if not self._has(scored)
        ]
        heapify(heap)
        while heap:
            _, place, scored = heappop(heap)
            information = self._information(scored)
            if information <= 0 or scored.words > self._words_left(self.budget.wanted):
                continue
            if heap and -heap[0][0] > information:
                heappush(heap, (-information, place, scored))
                continue
            yield self._take(scored, scored.point)

    def _information(self, scored: ScoredSentence) -> float:
        """New terms and names per word."""
        new = scored.sentence.terms - self._terms
        terms = len(new) - (1 - _SMALL_TALK_WEIGHT) * len(new & small_talk_stems())
        information = terms + _NAME * len(scored.names - self._names)
        return information / (scored.words + _POINT_COST) * (_QUESTION_FACTOR if scored.sentence.is_question else 1.0)

    def _clip(self, scored: ScoredSentence, words: int) -> str:
        text = clipped(scored.text, words)
        if text == scored.text:
            self._take(scored, text)
        else:
            self.words += count_words(text)
        return text

    def _words_left(self, of: int) -> int:
        return max(0, of - self.words)

    def _has(self, scored: ScoredSentence) -> bool:
        return scored.sentence.place in self._taken

    def _is_new(self, scored: ScoredSentence) -> bool:
        if self._has(scored):
            return False
        terms = scored.sentence.terms
        return bool(scored.names - self._names) or len(terms & self._terms) < _REPETITION * len(terms)

    def _take(self, scored: ScoredSentence, text: str) -> ScoredSentence:
        self.words += count_words(text)
        self._terms |= scored.sentence.terms
        self._names |= scored.names
        self._taken.add(scored.sentence.place)
        return scored


def _by_score(scored: ScoredSentence) -> tuple[float, int]:
    return -scored.score, scored.sentence.place


def _score_alone(scored: ScoredSentence) -> float:
    """Score as the only sentence; the first turn tells the subject, the more so if it is a question."""
    score = (scored.score + _NAME_ALONE * len(scored.names)) * self_containedness(scored.text)
    if scored.sentence.turn:
        return score
    return score * (_FIRST_QUESTION if scored.sentence.is_question else _FIRST_TURN)


def _place(scored: ScoredSentence) -> int:
    return scored.sentence.place


def _with_full_stop(text: str) -> str:
    return text if text[-1:] in '.!?…»”")' else f"{text}."
