"""Scores of sentences when not all can be kept."""

import math
import re
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass

from bus_schema.episodes import Decision, Entity, RawTurn
from language.words import stem_key
from memory.packing.self_contained import without_filler
from memory.packing.sentences import TurnSentence, sentences_of

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
        """Number of words of the key point."""
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


def clipped(text: str, most: int) -> str:
    """Beginning of a text, at most so many words; ends with a clause if that keeps more than half."""
    words = text.split()
    if len(words) <= most:
        return text
    kept = words[: max(1, most)]
    end = next((at for at in range(len(kept), len(kept) // 2, -1) if kept[at - 1][-1] in ",;:—"), len(kept))
    return " ".join(kept[:end]).rstrip(",;:—–-.(") + "…"


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
