"""What a dialogue decides, is to remember, in the words in which it was said (spec 002 F3: all of them are kept)."""

from collections.abc import Iterator, Sequence

from bus_schema.episodes import Decision, RawTurn
from language.words import stem_key
from memory.packing.cues import ACCEPTED, DECIDED, INTENDED, PROPOSED, TO_REMEMBER, UNDECIDED, UNSURE, without_filler
from memory.packing.reading import Sentence, sentences_of

_FEWEST_WORDS = 2


def decisions_of(turns: Sequence[RawTurn]) -> tuple[Decision, ...]:
    """Every decision that these turns tell of, all that is to be remembered; what is said twice is one."""
    sentences = sentences_of(turns)
    to_remember = set(_to_be_remembered(sentences))
    found: dict[str, tuple[str, list[str]]] = {}
    for at, sentence in enumerate(sentences):
        if at in to_remember or decides(sentence.text) or _is_taken_up(sentence, sentences[at + 1 :]):
            text = without_filler(sentence.text)
            found.setdefault(stem_key(text), (text, []))[1].append(sentence.raw_log_id)
    return tuple(Decision(text=text, raw_log_ids=tuple(dict.fromkeys(ids))) for text, ids in found.values())


def decides(text: str) -> bool:
    """Whether a sentence by itself tells of a decision."""
    said = text.replace("’", "'")
    if _asks(said) or len(said.split()) < _FEWEST_WORDS:
        return False
    undecided = UNDECIDED.sub(" ", said)
    if DECIDED.search(undecided):
        return len(without_filler(said).split()) > 1
    return bool(INTENDED.search(undecided)) and not UNSURE.search(undecided)


def _to_be_remembered(sentences: Sequence[Sentence]) -> Iterator[int]:
    """What somebody asks to remember for ever; where that sentence says no more than so, the one beside it."""
    for at, sentence in enumerate(sentences):
        if not TO_REMEMBER.search(sentence.text) or _asks(sentence.text):
            continue
        beside = [place for place in (at + 1, at - 1) if 0 <= place < len(sentences)]
        same_turn = [place for place in beside if sentences[place].turn == sentence.turn]
        is_bare = len(TO_REMEMBER.sub(" ", sentence.text).split()) < _FEWEST_WORDS
        yield same_turn[0] if is_bare and same_turn else at


def _is_taken_up(sentence: Sentence, following: Sequence[Sentence]) -> bool:
    """A proposal that the next to speak accepts."""
    if not PROPOSED.search(sentence.text.replace("’", "'")) or sentence.words < _FEWEST_WORDS + 1:
        return False
    answer = next((each for each in following if each.turn > sentence.turn), None)
    return answer is not None and answer.turn == sentence.turn + 1 and bool(ACCEPTED.match(answer.text))


def _asks(text: str) -> bool:
    return text.rstrip("!)» \"'").endswith("?")
