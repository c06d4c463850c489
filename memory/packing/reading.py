"""What was said, cut into sentences that know their turn."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from bus_schema.episodes import RawTurn, WarmContent
from language.sentences import parts_of_at_most, sentence_spans
from language.words import query_stems
from memory.packing.words import texts_of

_BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,2}[.)]|\[[ xX]?\]|#{1,6}|>)\s+")
_BLOB = re.compile(r"\S{201,}")
# Where nobody ends a sentence, something must.
_LONGEST_WORDS = 60
_ONCE = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Sentence:
    """One sentence of a turn; `turn` counts the turns, `place` the sentences of all."""

    text: str
    raw_log_id: str
    turn: int
    place: int

    @property
    def is_question(self) -> bool:
        return self.text.rstrip("!)» \"'").endswith("?")

    @cached_property
    def words(self) -> int:
        return len(self.text.split())

    @cached_property
    def terms(self) -> frozenset[str]:
        """The stems of what it is about."""
        return meant(self.text)


def sentences_of(turns: Sequence[RawTurn]) -> list[Sentence]:
    """Every sentence of these turns, in order, without the marks of lists."""
    found: list[Sentence] = []
    for number, turn in enumerate(turns):
        for text in cut(turn.content):
            found.append(Sentence(text, turn.raw_log_id, number, len(found)))
    return found


def as_turns(warm: WarmContent) -> tuple[RawTurn, ...]:
    """What a warm episode says, to be read as if somebody had said it."""
    return tuple(
        RawTurn(raw_log_id=f"raw_{number}", role="assistant", content=text, time=_ONCE)
        for number, text in enumerate(texts_of(warm))
    )


def meant(text: str) -> frozenset[str]:
    """The stems of the words that carry meaning; of nothing but small words, those."""
    return frozenset(query_stems(text))


def plain(text: str) -> str:
    """The text without what is no word of it, such as a file in base64."""
    return _BLOB.sub("…", text)


def cut(text: str) -> Iterator[str]:
    """The sentences of a text, none of them endless."""
    for line in plain(text).splitlines():
        bullet = _BULLET.match(line)
        said = line[bullet.end() :] if bullet else line
        for start, end in sentence_spans(said):
            yield from parts_of_at_most(_LONGEST_WORDS, said[start:end])
