"""What a sentence is worth when not all can be kept."""

import math
import re
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass

from bus_schema.episodes import Decision, Entity, RawTurn
from language.words import stem_key
from memory.packing.cues import without_filler
from memory.packing.reading import Sentence, sentences_of

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
# In fewer words nothing is told; whom they address is kept among the names.
_FEWEST_TERMS = 3
# Short sentences would win on density alone.
_SHORTEST_COUNTED_TERMS = 7
_LONGEST_POINT_WORDS = 32
_OF_A_NAME = 0.5


@dataclass(frozen=True)
class Weighed:
    """A sentence that could be kept: `text` without what leads to it, `names` the entities in it, by number."""

    sentence: Sentence
    text: str
    names: frozenset[int]
    worth: float
    speaker: str | None = None

    @property
    def words(self) -> int:
        """Those of the point."""
        return len(self.point.split())

    @property
    def point(self) -> str:
        """With whoever said it, where that is known: «I» is somebody."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


def weighed(turns: Sequence[RawTurn], entities: Sequence[Entity], decisions: Sequence[Decision]) -> list[Weighed]:
    """Every sentence but the decisions, which are kept anyway; small talk is worth nothing."""
    sentences = sentences_of(turns)
    decided = {stem_key(decision.text) for decision in decisions}
    shared = Counter(term for sentence in sentences for term in sentence.terms)
    speakers = {key for turn in turns for key in stem_key(turn.speaker or "").split()}
    names = _names(speakers, entities)
    found = []
    for sentence in sentences:
        text = shortened(sentence.text)
        key = stem_key(text)
        if key and key not in decided:
            named = frozenset(number for number, name in names.items() if f" {name} " in f" {key} ")
            worth = _worth(sentence, sentence.terms - speakers, len(named), shared)
            found.append(Weighed(sentence, text, named, worth, turns[sentence.turn].speaker))
    return found


def shortened(text: str) -> str:
    """A sentence without the words that lead to it, cut where it is too long to be a point."""
    return clipped(without_filler(text), _LONGEST_POINT_WORDS)


def clipped(text: str, most: int) -> str:
    """The beginning of a text, cut between clauses where that leaves most of it."""
    words = text.split()
    if len(words) <= most:
        return text
    kept = words[: max(1, most)]
    end = next((at for at in range(len(kept), len(kept) // 2, -1) if kept[at - 1][-1] in ",;:—"), len(kept))
    return " ".join(kept[:end]).rstrip(",;:—–-.(") + "…"


def is_small_talk(text: str) -> bool:
    """Whether it is said for the sake of saying something."""
    return bool(_SMALL_TALK.match(text)) and len(text.split()) <= _SMALL_TALK_WORDS


def _names(speakers: Set[str], entities: Sequence[Entity]) -> dict[int, str]:
    """Whoever takes part is named all the time, which tells nothing."""
    keys = {number: stem_key(entity.name) for number, entity in enumerate(entities)}
    return {number: key for number, key in keys.items() if not set(key.split()) <= speakers}


def _worth(sentence: Sentence, terms: Set[str], names: int, shared: Counter[str]) -> float:
    if len(terms) < _FEWEST_TERMS and not (names and sentence.words > _FEWEST_TERMS):
        return 0.0
    if not names and is_small_talk(sentence.text):
        return 0.0
    # fsum: a plain sum over a set depends on the order, which differs from process to process.
    central = math.fsum(math.log1p(shared[term]) for term in terms) / math.sqrt(
        max(len(terms), _SHORTEST_COUNTED_TERMS)
    )
    return (central + _OF_A_NAME * names) * (0.3 if sentence.is_question else 1.0)
