"""Decisions of a dialogue and requests to remember, in their own words (spec 002 F3: all that rules find are kept).

A decision is a message's sentences that have the cues of one (`memory.packing.decision_cues`). Those that say little by
themselves («Берём.») have the sentences before them that tell what it is about, of the same message or of the one that
is answered, and every message quoted is cited.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bus_schema.episodes import Decision, RawTurn
from language.words import small_talk_stems, stem_key
from memory.packing.decision_cues import ACCEPTS, APPROVES, BIAS, OWN, PROPOSES, WEIGHTS, cues_of, decides
from memory.packing.sentences import TurnSentence, is_question, is_small_talk, sentences_of, without_filler

# A request, as opposed to «I'll always remember our trip».
_REQUEST = r"(?:^|[.!?;:,\n—-]\s*|\b(?:please|and|must|should|(?:can|could|will|would) you|you to)\s+)"
TO_REMEMBER = re.compile(
    r"\b(?:запомни|запиши|помни|сохрани)(?:те)?\b[^.!?\n]{0,60}\b(?:навсегда|на\s*всю\s*жизнь|навечно)\b"
    r"|\bнавсегда\s+(?:запомни|сохрани)(?:те)?\b"
    r"|\b(?:никогда\s+не\s+забывай|не\s+забывай\s+(?:этого\s+)?никогда)(?:те)?\b"
    rf"|{_REQUEST}(?:remember|keep|memori[sz]e)\b(?!,)[^.!?\n]{{0,60}}\b(?:for\s*ever|for\s+good|permanently)\b"
    rf"|{_REQUEST}(?:remember|keep)\s+(?:this|that|it)\s+always\b"
    rf"|{_REQUEST}(?:always|permanently)\s+remember\b"
    rf"|{_REQUEST}never\s+forget\s+(?:this|that)\b",
    re.IGNORECASE,
)
_MIN_WORDS = 2
# Log odds from which a sentence is a decision.
_LEAST = -1.3
# Shared words of which more make no difference.
_ENOUGH_SHARED = 3
# Sentences at the end of the message before and at the beginning of the next that belong to an exchange.
_BESIDE = 3
# A decision of fewer terms has context; that of more is not lengthened; words that a decision has with it.
_FEW_TERMS, _CONTEXT_TERMS, _MOST_WORDS = 5, 14, 60
_NEAR, _SAME_TERMS = 2, 2
# Between sentences of one decision.
_LITTLE_WORDS = 12
# Of the words of an episode, those for decisions with their context; a warm pack has a third of them.
_SHARE_OF_EPISODE = 0.25
# One that says nothing by itself may have so many words all the same.
_FEWEST_WORDS, _LEAST_WORDS = 14, 35
_CODE = re.compile(r"```(?s:.*?)(?:```|\Z)|^\s*(?://|#|\$ ).*$", re.MULTILINE)
_YOU = re.compile(r"(?<!\w)(?:you|your|ты|вы|ваш\w*|тво\w+|вам|вас|тебе|тебя)(?!\w)", re.IGNORECASE)
_OTHER_SUBJECT = re.compile(r"^\W*(?:also|by the way|meanwhile|кстати|ещ[её]|а ещ[её]|и ещ[её])(?!\w)", re.IGNORECASE)


def decisions_of(turns: Sequence[RawTurn]) -> tuple[Decision, ...]:
    """Decisions and requests to remember that rules find, each with the turns that state it."""
    dialogue = _Dialogue(turns)
    by_key: dict[str, Decision] = {}
    for found in sorted([*dialogue.to_remember(), *dialogue.decisions()], key=lambda each: each.own[0].place):
        decision = Decision(text=found.text, raw_log_ids=found.raw_log_ids)
        known = by_key.setdefault(stem_key(decision.text), decision)
        if known is not decision:
            ids = dict.fromkeys((*known.raw_log_ids, *decision.raw_log_ids))
            by_key[stem_key(decision.text)] = known.model_copy(update={"raw_log_ids": tuple(ids)})
    return tuple(by_key.values())


def is_decision(text: str) -> bool:
    """Whether a sentence by itself states a decision."""
    return not is_question(text) and len(text.split()) >= _MIN_WORDS and _log_odds(cues_of(text)) >= _LEAST


def _log_odds(cues: frozenset[str]) -> float:
    return BIAS + sum(WEIGHTS[cue] for cue in sorted(cues))


@dataclass(frozen=True)
class _Found:
    """Sentences of a decision in the order in which they were said; `own` are those that state it.

    `accepted_by` are turns that agree to it without adding anything.
    """

    sentences: tuple[TurnSentence, ...]
    own: tuple[TurnSentence, ...]
    accepted_by: tuple[str, ...] = ()

    @property
    def words(self) -> int:
        return sum(each.words for each in self.sentences)

    @property
    def text(self) -> str:
        first, *rest = (sentence.text for sentence in self.sentences)
        return " ".join(map(_with_full_stop, (without_filler(first), *rest))) if rest else without_filler(first)

    @property
    def raw_log_ids(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*(sentence.raw_log_id for sentence in self.sentences), *self.accepted_by)))

    def followed_by(self, own: tuple[TurnSentence, ...]) -> "_Found":
        """With sentences of a later turn, or with that turn alone where they add nothing."""
        if _content(own) <= _content(self.sentences) | small_talk_stems():
            return replace(self, accepted_by=(*self.accepted_by, own[0].raw_log_id))
        added = (each for each in own if each not in self.sentences)
        return replace(self, sentences=(*self.sentences, *added), own=(*self.own, *own))


class _Dialogue:
    """Turns with their sentences."""

    def __init__(self, turns: Sequence[RawTurn]) -> None:
        self._turns = turns
        self._of_turn: list[list[TurnSentence]] = [[] for _ in turns]
        for sentence in sentences_of([turn.model_copy(update={"content": _without_code(turn)}) for turn in turns]):
            self._of_turn[sentence.turn].append(sentence)
        self._words = sum(each.words for sentences in self._of_turn for each in sentences)

    def to_remember(self) -> Iterator[_Found]:
        """Sentences of requests to remember, or their neighbours in the turn where they say nothing else."""
        for own in self._of_turn:
            for place, sentence in enumerate(own):
                if not TO_REMEMBER.search(sentence.text) or sentence.is_question:
                    continue
                is_bare = len(TO_REMEMBER.sub(" ", sentence.text).split()) < _MIN_WORDS
                neighbours = [*own[place + 1 : place + 2], *own[max(0, place - 1) : place]] if is_bare else []
                kept = (*neighbours, sentence)[0]
                yield _Found((kept,), (kept,))

    def decisions(self) -> Iterator[_Found]:
        """At most one of a turn; one about what was decided just before belongs to that."""
        last: _Found | None = None
        room = round(_SHARE_OF_EPISODE * self._words)
        for number, sentences in enumerate(self._of_turn):
            own = tuple(each for place, each in enumerate(sentences) if self._is_decided(number, place))
            if not own:
                continue
            own = _without_gap(sentences, own)
            if last and _is_of_one(last, own):
                last = last.followed_by(own)
                continue
            if last:
                yield last
                room -= last.words
            last = self._with_context(own, room)
        if last:
            yield last

    def _is_decided(self, number: int, place: int) -> bool:
        turn, text = self._turns[number], self._of_turn[number][place].text
        if turn.role == "assistant" and turn.speaker is None and not _is_for_both(text):
            return False
        cues = cues_of(text)
        if "question" in cues and not self._is_accepted(number, place):
            return False
        if "lets" in cues and "decides" not in cues and self._is_open(number, place):
            return False
        return _log_odds(cues) + self._log_odds_of_place(number, place, cues) >= _LEAST

    def _log_odds_of_place(self, number: int, place: int, cues: frozenset[str]) -> float:
        """Log odds that the messages before and after, and the place in its own, add to those of a sentence."""
        sentence = self._of_turn[number][place]
        own, text = sentence.content, sentence.text
        # What is said again word for word answers nothing.
        asked = [each for each in (self._of_turn[number - 1] if number else [])[-_BESIDE:] if each.text != text]
        following = self._of_turn[number + 1] if number + 1 < len(self._turns) else []
        answer = [each for each in following[:_BESIDE] if each.text != text]
        is_answer, is_of_user = any(map(_is_proposal, asked)), self._turns[number].role == "user"
        before = _share(own, _content(asked))
        values = {
            "after_proposal": is_answer,
            "accepts_proposal": is_answer and place == 0 and "accepts" in cues,
            "accepted": self._is_accepted(number, place),
            "approved": is_of_user and any(APPROVES.search(each.text) for each in following[:1]),
            "shared_before": before,
            "own_shared_before": before * (not OWN.isdisjoint(cues)),
            "shared_after": _share(own, _content(answer)),
            "last": place == len(self._of_turn[number]) - 1,
        }
        return sum(WEIGHTS[name] * value for name, value in values.items())

    def _is_accepted(self, number: int, place: int) -> bool:
        """Whether a sentence ends a turn as a proposal that the next person accepts."""
        if place < len(self._of_turn[number]) - 2 or number + 1 == len(self._turns):
            return False
        answer, sentence = self._turns[number + 1], self._of_turn[number][place]
        is_of_person = answer.role == "user" or answer.speaker is not None
        return is_of_person and _is_proposal(sentence) and bool(ACCEPTS.match(answer.content))

    def _is_open(self, number: int, place: int) -> bool:
        """Whether a proposal is answered by another person who does not accept it."""
        if number + 1 == len(self._turns) or self._is_accepted(number, place):
            return False
        return place == len(self._of_turn[number]) - 1 and self._turns[number + 1].role == "user"

    def _with_context(self, own: tuple[TurnSentence, ...], room: int) -> _Found:
        """With sentences before and after it in its turn, then with what it answers and what says it again.

        It has `room` for so many words with them, and is not lengthened once it says enough.
        """
        turn = self._of_turn[own[0].turn]
        before, following = turn[: turn.index(own[0])], turn[turn.index(own[-1]) + 1 :]
        if len(_content(own)) >= _FEW_TERMS - 1 and any("decides" in cues_of(each.text) for each in own):
            return _Found((*_reported_change(before), *own), own)
        sentences, room = list(own), min(room, _MOST_WORDS)
        if len(_content(own)) < _FEW_TERMS:
            room = max(room, _FEWEST_WORDS, min(_LEAST_WORDS, round(_SHARE_OF_EPISODE * self._words)))
            if before and len(before[-1].content) < _MIN_WORDS and not before[-1].is_question:
                before.pop()
        while before and _has_room(sentences, before[-1], room) and not _OTHER_SUBJECT.match(sentences[0].text):
            sentences.insert(0, before.pop())
        if following and _has_room(sentences, following[0], room) and not _OTHER_SUBJECT.match(following[0].text):
            sentences.append(following[0])
        answered = None if before else self._answered(sentences)
        if answered and _has_room(sentences, answered, room):
            sentences.insert(0, answered)
        restated = self._restated(sentences)
        if restated and _has_room(sentences, restated, room):
            sentences.append(restated)
        return _Found(tuple(sentences), own)

    def _answered(self, sentences: Sequence[TurnSentence]) -> TurnSentence | None:
        """The sentence of the message before to which these are the answer."""
        number, content = sentences[-1].turn, _content(sentences)
        asked = self._of_turn[number - 1] if number else []
        return _nearest([each for each in asked if each.content & content or _is_proposal(each)], content)

    def _restated(self, sentences: Sequence[TurnSentence]) -> TurnSentence | None:
        """The sentence of the next message that says the same: "Move it." – "New date of the paper: 31 March."."""
        number, content = sentences[-1].turn + 1, _content(sentences)
        answer = self._of_turn[number][:_BESIDE] if number < len(self._of_turn) else []
        said = [each for each in answer if not each.is_question and "asks_for" not in cues_of(each.text)]
        return _nearest([each for each in said if each.content & content], content)


def _nearest(sentences: Sequence[TurnSentence], content: frozenset[str]) -> TurnSentence | None:
    """That with the most of these words, the first of equals."""
    return max(sentences, key=lambda each: len(each.content & content), default=None)


def _reported_change(before: Sequence[TurnSentence]) -> tuple[TurnSentence, ...]:
    """The sentence before a decision that tells why it changes: "The train's off. I caved and booked a flight."."""
    reasons = [each for each in before[-1:] if "changes" in cues_of(each.text) and not each.is_question]
    return tuple(each for each in reasons if each.words <= _MOST_WORDS // 3)


def _without_gap(turn: Sequence[TurnSentence], own: tuple[TurnSentence, ...]) -> tuple[TurnSentence, ...]:
    """With what was said between them, where that is little: "Move it. End of March. I'll tell her."."""
    between = [each for each in turn if own[0].place < each.place < own[-1].place and each not in own]
    is_little = sum(each.words for each in between) <= _LITTLE_WORDS and not any(each.is_question for each in between)
    return tuple(sorted({*own, *between}, key=lambda each: each.place)) if is_little else own


def _content(sentences: Sequence[TurnSentence]) -> frozenset[str]:
    return frozenset(term for sentence in sentences for term in sentence.content)


def _is_for_both(text: str) -> bool:
    """Whether an assistant states what was decided, as opposed to advice, which speaks of the other person."""
    return not _YOU.search(text) and decides(text) and "asks_for" not in cues_of(text)


def _without_code(turn: RawTurn) -> str:
    return _CODE.sub("\n", turn.content)


def _has_room(sentences: Sequence[TurnSentence], sentence: TurnSentence, room: int) -> bool:
    """Whether a sentence adds something to a decision that says too little; a question only of another message."""
    is_own_question = sentence.is_question and sentence.turn == sentences[-1].turn
    if is_own_question or is_small_talk(sentence.text) or len(sentence.content) < _MIN_WORDS:
        return False
    words = sum(each.words for each in sentences) + sentence.words
    return words <= room and len(_content(sentences)) < _CONTEXT_TERMS


def _share(own: frozenset[str], content: frozenset[str]) -> float:
    """Share of the words that another message has, too, 1 from three on or from half of them."""
    shared = len(own & content)
    return min(1.0, shared / _ENOUGH_SHARED, 2 * shared / max(1, len(own)))


def _is_of_one(last: _Found, own: Sequence[TurnSentence]) -> bool:
    """Whether sentences tell of the decision of the turns before: much the same words, or little else right after."""
    distance, content = own[0].turn - last.own[-1].turn, _content(own) - small_talk_stems()
    words = sum(each.words for each in (*last.sentences, *own))
    shared = content & _content(last.sentences)
    is_near = distance == 1 and len(content) < _FEW_TERMS and (not content or bool(shared))
    is_same = distance <= _NEAR and len(shared) >= _SAME_TERMS
    return (is_near or is_same) and words <= 2 * _MOST_WORDS


def _is_proposal(sentence: TurnSentence) -> bool:
    """Whether a sentence asks or proposes, as opposed to asking a favour."""
    return (sentence.is_question or bool(PROPOSES.search(sentence.text))) and "asks_for" not in cues_of(sentence.text)


def _with_full_stop(text: str) -> str:
    return text if text[-1:] in ".!?…" else f"{text}."
