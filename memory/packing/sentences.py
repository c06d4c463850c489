"""Sentences of turns, and the stems by which texts are compared."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from bus_schema.episodes import RawTurn, WarmContent
from language.sentences import parts_of_at_most, sentence_spans
from language.words import query_stems
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
        """Meaningful stems."""
        return meaningful_stems(self.text)


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
        RawTurn(raw_log_id=f"raw_{number}", role="assistant", content=text, time=_EPOCH)
        for number, text in enumerate(content_texts(warm))
    )


def is_question(text: str) -> bool:
    """Whether a sentence ends in a question mark."""
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
