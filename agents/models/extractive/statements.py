"""What a text states, sentence by sentence."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from language.markdown import Block, Kind
from language.sentences import sentences
from language.words import terms, words


@dataclass(frozen=True)
class Statement:
    text: str
    block: int
    section: str

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(terms(self.text))

    @property
    def length_words(self) -> int:
        return len(words(self.text))


def statements(blocks: Sequence[Block]) -> Iterator[Statement]:
    """Everything said outside headings; what follows the last rule is a note on the text, no part of it."""
    section = ""
    for at, block in enumerate(blocks[: note_begins(blocks)]):
        if block.kind is Kind.HEADING:
            section = block.text if block.level > 1 else ""
        elif block.kind is Kind.PROSE:
            yield from (Statement(sentence, at, section) for sentence in sentences(block.text))
        elif block.kind is not Kind.RULE:
            yield Statement(block.text, at, section)


def note_begins(blocks: Sequence[Block]) -> int:
    """Where the note on sources begins; the end of the text when there is none."""
    last = len(blocks) - 2
    is_note = last >= 0 and blocks[last].kind is Kind.RULE and blocks[-1].text[:1] == "*" == blocks[-1].text[-1:]
    return last if is_note else len(blocks)


class Wording:
    """The words of a text in order, whatever their punctuation: says whether something is said in them literally."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._line = f" {' '.join(map(wording, texts))} "

    def has(self, text: str) -> bool:
        """Also true of a sentence that an editor has split in two."""
        return f" {wording(text)} " in self._line


def wording(text: str) -> str:
    return " ".join(words(text)).lower().replace("’", "'") or text
