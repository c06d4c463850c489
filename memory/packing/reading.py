"""What was said, cut into sentences that know their turn."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from bus_schema.episodes import RawTurn, WarmContent
from memory.kps.sentences import sentences
from memory.packing.words import texts_of
from memory.stems import questioned, stems

_BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,2}[.)]|\[[ xX]?\]|#{1,6}|>)\s+")
_SIGNS = str.maketrans({"%": " percent ", "$": " dollar ", "€": " euro ", "£": " pound ", "₽": " руб "})
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
    return frozenset(questioned(text))


def key_of(text: str) -> str:
    """What is the same for a text in whatever case its words are; 5 % are not 5."""
    return " ".join(stems(text.translate(_SIGNS)))


def plain(text: str) -> str:
    """The text without what is no word of it, such as a file in base64."""
    return _BLOB.sub("…", text)


def cut(text: str) -> Iterator[str]:
    """The sentences of a text, none of them endless."""
    for line in plain(text).splitlines():
        bullet = _BULLET.match(line)
        said = line[bullet.end() :] if bullet else line
        for start, end in sentences(said, 0, len(said)):
            yield from _bounded(said[start:end].split())


def _bounded(words: list[str]) -> Iterator[str]:
    while len(words) > _LONGEST_WORDS:
        window = words[:_LONGEST_WORDS]
        end = next((at for at in range(len(window), 20, -1) if window[at - 1][-1] in ",;:—"), len(window))
        yield " ".join(words[:end])
        words = words[end:]
    if words:
        yield " ".join(words)
