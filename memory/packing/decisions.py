"""What a dialogue decides, in the words in which it was said (spec 002 F3: every one of them is kept)."""

from collections.abc import Sequence

from bus_schema.episodes import Decision, RawTurn
from memory.packing.cues import ACCEPTED, DECIDED, INTENDED, PROPOSED, UNDECIDED, UNSURE, without_filler
from memory.packing.reading import Sentence, key_of, sentences_of

_FEWEST_WORDS = 2


def decisions_of(turns: Sequence[RawTurn]) -> tuple[Decision, ...]:
    """Every decision that these turns tell of; what is said twice is one."""
    sentences = sentences_of(turns)
    found: dict[str, tuple[str, list[str]]] = {}
    for at, sentence in enumerate(sentences):
        if decides(sentence.text) or _is_taken_up(sentence, sentences[at + 1 :]):
            text = without_filler(sentence.text)
            found.setdefault(key_of(text), (text, []))[1].append(sentence.raw_log_id)
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


def _is_taken_up(sentence: Sentence, following: Sequence[Sentence]) -> bool:
    """A proposal that the next to speak accepts."""
    if not PROPOSED.search(sentence.text.replace("’", "'")) or sentence.words < _FEWEST_WORDS + 1:
        return False
    answer = next((each for each in following if each.turn > sentence.turn), None)
    return answer is not None and answer.turn == sentence.turn + 1 and bool(ACCEPTED.match(answer.text))


def _asks(text: str) -> bool:
    return text.rstrip("!)» \"'").endswith("?")
