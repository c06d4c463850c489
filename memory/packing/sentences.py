"""Sentences of turns: splitting, stems to compare them by, self-containedness and score."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from bus_schema.episodes import Decision, Entity, RawTurn, WarmContent
from language.sentences import parts_of_at_most, sentence_spans
from language.words import query_stems, stem_key, terms
from memory.packing.budget import content_texts

_BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,2}[.)]|\[[ xX]?\]|#{1,6}|>)\s+")
_BLOB = re.compile(r"\S{201,}")
# Longer sentences are split between clauses.
_MAX_WORDS = 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class TurnSentence:
    """A sentence of a turn; `turn` is the index of the turn, `place` that of the sentence among all."""

    text: str
    raw_log_id: str
    turn: int
    place: int

    @property
    def is_question(self) -> bool:
        return is_question(self.text)

    @cached_property
    def words(self) -> int:
        return len(self.text.split())

    @cached_property
    def terms(self) -> frozenset[str]:
        return meaningful_stems(self.text)

    @cached_property
    def content(self) -> frozenset[str]:
        """Stems of the words that have content of their own."""
        return frozenset(terms(self.text))


def sentences_of(turns: Sequence[RawTurn]) -> list[TurnSentence]:
    """All sentences of the turns in order, without list markers."""
    sentences: list[TurnSentence] = []
    for number, turn in enumerate(turns):
        for text in split_sentences(turn.content):
            sentences.append(TurnSentence(text, turn.raw_log_id, number, len(sentences)))
    return sentences


def turns_of_warm(warm: WarmContent) -> tuple[RawTurn, ...]:
    """Texts of a warm pack as turns, to be verified against."""
    return tuple(
        RawTurn(raw_log_id=f"raw_of-pack_{number}", role="assistant", content=text, time=_EPOCH)
        for number, text in enumerate(content_texts(warm))
    )


def is_question(text: str) -> bool:
    return text.rstrip("!)» \"'").endswith("?")


def meaningful_stems(text: str) -> frozenset[str]:
    """Stems of the words other than stop words; of a text of stop words alone, theirs."""
    return frozenset(query_stems(text))


def without_blobs(text: str) -> str:
    """Text with very long words, such as base64, replaced by an ellipsis."""
    return _BLOB.sub("…", text)


def split_sentences(text: str) -> Iterator[str]:
    """Sentences of a text without list markers, of at most 60 words."""
    for line in without_blobs(text).splitlines():
        bullet = _BULLET.match(line)
        content = line[bullet.end() :] if bullet else line
        for start, end in sentence_spans(content):
            yield from parts_of_at_most(_MAX_WORDS, content[start:end])


# Factors for a sentence that begins with a reference, that addresses or refers to somebody, that is long.
_REFERENCE, _ADDRESS, _LONG = 0.5, 0.8, 0.6
_LONG_WORDS = 22
_FILLER = re.compile(
    r"^(?:(?:ok(?:ay)?|well|so|right|great|alright|all right|anyway|good|yes|yeah|sure|then|and|but|also|"
    r"ну|итак|так|ладно|хорошо|окей|ок|отлично|значит|в общем|короче|да|тогда|и|кстати)\b[\s,.!—–-]+)+",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^(?:(?:by the way|actually|honestly|you know(?: what)?|guess what|to be honest|anyways?|besides|"
    r"in fact|of course|also|plus|oh|ah|wow|hey|"
    r"слушай(?:те)?|знаешь|знаете|честно говоря|вообще|представляешь|в принципе|ой|ах|кстати)\b[\s,.!?—–-]+)+",
    re.IGNORECASE,
)
# References to what was said before.
_REFERS = re.compile(
    r"^(?:it|it's|that|that's|this|these|those|they|they're|he|he's|she|she's|there|such|both|either|same|here|"
    r"you|you're|your|"
    r"это|этот|эта|эти|он|она|оно|они|там|туда|такой|такая|такие|тот|та|те|тоже|поэтому|его|её|их|ты|вы)\b",
    re.IGNORECASE,
)
_ADDRESSES = re.compile(
    r"\b(?:it|they|them|he|he'll|him|she|she'll|her|you|you're|your|он|она|они|его|её|их|ему|ей|"
    r"ты|тебя|тебе|твой|твоя|твои|вы|вас|вам)\b",
    re.IGNORECASE,
)


def without_filler(text: str) -> str:
    """Sentence without leading filler words, capitalised."""
    bare = _FILLER.sub("", text)
    is_lower_case = bare[:1].islower() and bare.split()[0][1:] == bare.split()[0][1:].lower()
    return (bare[:1].upper() + bare[1:] if is_lower_case else bare) or text


def without_lead_in(text: str) -> str:
    """Sentence without leading filler and discourse markers, with a full stop."""
    bare = _LEAD.sub("", _FILLER.sub("", text))
    bare = without_filler(bare) if 0 < len(bare) < len(text) else text
    return bare if bare[-1:] in '.!?…»”")' else f"{bare}."


def self_containedness(text: str) -> float:
    """Factor from 0 to 1: the share of a sentence's score that it keeps when it stands alone."""
    factor = _REFERENCE if _REFERS.match(text) else 1.0
    factor *= _ADDRESS if _ADDRESSES.search(text) else 1.0
    return factor * (_LONG if len(text.split()) > _LONG_WORDS else 1.0)


_SMALL_TALK = re.compile(
    r"^\W*(?:привет\w*|здравствуй\w*|добр\w+ (?:утро|день|вечер)|спасибо|пожалуйста|пока|до свидания|до связи|ок|окей|"
    r"хорошо|отлично|понятно|ясно|как дела|как ты|ага|угу|ладно|супер|класс|здорово|рад\w* слышать|"
    r"hi|hello|hey|thanks|thank you|good (?:morning|evening|afternoon|to (?:see|hear))|ok|okay|bye|sure|wow|cool|"
    r"great|awesome|nice|sounds|that's (?:great|awesome|cool|nice|so|really|amazing)|how (?:are|have) you|"
    r"talk (?:to you )?soon|(?:totally |i )?agree|way to go|"
    r"congrat\w+|good luck|cheers|keep it up|can't wait|have (?:a|fun)|see you|"
    r"take care|you're welcome|no problem|glad to|happy to)\b",
    re.IGNORECASE,
)
_SMALL_TALK_WORDS = 12
# Sentences with fewer terms say nothing; the name they address is kept as an entity.
_MIN_TERMS = 3
# Lower bound of the length normalisation: short sentences would win by density alone.
_MIN_NORM_TERMS = 7
_MAX_POINT_WORDS = 32
_NAME_BONUS, _QUESTION_FACTOR = 0.5, 0.3


@dataclass(frozen=True)
class ScoredSentence:
    """A candidate: `text` without filler, `names` are the indices of the entities in it."""

    sentence: TurnSentence
    text: str
    names: frozenset[int]
    score: float
    speaker: str | None = None

    @property
    def words(self) -> int:
        return len(self.point.split())

    @property
    def point(self) -> str:
        """Text of the key point, after the speaker's name if known: «I» is somebody."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


def score_sentences(
    turns: Sequence[RawTurn], entities: Sequence[Entity], decisions: Sequence[Decision]
) -> list[ScoredSentence]:
    """All sentences but the decisions, which are kept anyway; small talk scores 0."""
    sentences = sentences_of(turns)
    decided = {stem_key(decision.text) for decision in decisions}
    frequencies = Counter(term for sentence in sentences for term in sentence.terms)
    speakers = {key for turn in turns for key in stem_key(turn.speaker or "").split()}
    names = _names(speakers, entities)
    scored = []
    for sentence in sentences:
        text = clipped(without_filler(sentence.text), _MAX_POINT_WORDS)
        key = stem_key(text)
        if key and key not in decided:
            named = frozenset(number for number, name in names.items() if f" {name} " in f" {key} ")
            score = _score(sentence, sentence.terms - speakers, len(named), frequencies)
            scored.append(ScoredSentence(sentence, text, named, score, turns[sentence.turn].speaker))
    return scored


def clipped(text: str, max_words: int) -> str:
    """Beginning of a text, at most so many words; ends with a clause if that keeps more than half."""
    words = text.split()
    if len(words) <= max_words:
        return text
    words = words[: max(1, max_words)]
    end = next((at for at in range(len(words), len(words) // 2, -1) if words[at - 1][-1] in ",;:—"), len(words))
    return " ".join(words[:end]).rstrip(",;:—–-.(") + "…"


def is_small_talk(text: str) -> bool:
    """Whether a sentence is a greeting, thanks or the like."""
    return bool(_SMALL_TALK.match(text)) and len(text.split()) <= _SMALL_TALK_WORDS


def _names(speakers: Set[str], entities: Sequence[Entity]) -> dict[int, str]:
    """Stems of entities by index, without the speakers, who are named all the time."""
    keys = {number: stem_key(entity.name) for number, entity in enumerate(entities)}
    return {number: key for number, key in keys.items() if not set(key.split()) <= speakers}


def _score(sentence: TurnSentence, terms: Set[str], names: int, frequencies: Counter[str]) -> float:
    if len(terms) < _MIN_TERMS and not (names and sentence.words > _MIN_TERMS):
        return 0.0
    if not names and is_small_talk(sentence.text):
        return 0.0
    # fsum: a plain sum over a set depends on its order, which differs between processes.
    centrality = math.fsum(math.log1p(frequencies[term]) for term in terms) / math.sqrt(
        max(len(terms), _MIN_NORM_TERMS)
    )
    return (centrality + _NAME_BONUS * names) * (_QUESTION_FACTOR if sentence.is_question else 1.0)
