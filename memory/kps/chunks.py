"""A document cut into pieces along its structure."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from bus_schema.kps import Chunking
from memory.kps.document import Block, Document
from memory.kps.sentences import sentences

# What stands between two atoms that go together counts as well.
_ROOM = 8
# A piece that long need not swallow the next section, or the beginning of the next paragraph.
_FAIR = 0.5


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters `start` to `end` of the text, with the headings that they stand under, the page they begin on."""

    start: int
    end: int
    section: tuple[str, ...] = ()
    page: int | None = None


def cut(document: Document, chunking: Chunking) -> list[Piece]:
    """Pieces of at most `max_chars`, each the text as it is; what one ends with, the next one may begin with."""
    cutter = _Cutter(document.text, chunking)
    for block in document.blocks:
        cutter.take(block)
    cutter.close()
    return cutter.pieces


@dataclass
class _Cutter:
    text: str
    chunking: Chunking
    pieces: list[Piece] = field(default_factory=list)
    _path: list[Block] = field(default_factory=list)
    _atoms: list[tuple[int, int]] = field(default_factory=list)
    _section: dict[str, None] = field(default_factory=dict)
    _page: int | None = None
    _has_body: bool = False
    # What the next piece may repeat.
    _tail: list[tuple[int, int]] = field(default_factory=list)

    def take(self, block: Block) -> None:
        if block.kind == "heading":
            self._head(block)
        elif self._is_fair and self._length_to(block.end) > self.chunking.max_chars:
            self._cut(block)
        for atom in atoms(self.text, block, (self.chunking.max_chars - _ROOM) // 2):
            if self._atoms and self._length_to(atom[1]) > self.chunking.max_chars:
                self._cut(block, atom)
            self._append(atom, block)
        self._has_body = self._has_body or block.kind != "heading"

    def close(self) -> None:
        if self._atoms:
            self.pieces.append(Piece(self._atoms[0][0], self._atoms[-1][1], tuple(self._section), self._page))
        self._atoms, self._section, self._has_body = [], {}, False

    @property
    def _is_fair(self) -> bool:
        return bool(self._atoms) and self._length_to(self._atoms[-1][1]) >= self.chunking.max_chars * _FAIR

    def _length_to(self, end: int) -> int:
        return end - self._atoms[0][0]

    def _head(self, heading: Block) -> None:
        """A heading goes with what follows it; a short section stays with the one before."""
        while self._path and self._path[-1].level >= heading.level:
            self._path.pop()
        self._path.append(heading)
        if self._has_body and self._is_fair:
            self.close()
        self._tail = []

    def _cut(self, block: Block, upcoming: tuple[int, int] | None = None) -> None:
        """Go on in another piece, which begins with the last words of this one as long as it has room for them."""
        self._tail = [*self._tail, *self._atoms][-64:] if block.kind == "prose" else []
        last = self._atoms[-1][1]
        self.close()
        end = upcoming[1] if upcoming else min(block.end, last + self.chunking.max_chars // 2)
        repeated = [
            atom
            for atom in self._tail
            if last - atom[0] <= self.chunking.overlap_chars and end - atom[0] <= self.chunking.max_chars
        ]
        for atom in repeated:
            self._append(atom, block)
        self._tail = []

    def _append(self, atom: tuple[int, int], block: Block) -> None:
        if not self._atoms:
            self._page = block.page
        self._atoms.append(atom)
        self._section |= dict.fromkeys(heading.title for heading in self._path if heading.title)


def atoms(text: str, block: Block, most: int) -> Iterator[tuple[int, int]]:
    """What is never cut: sentences, lines; of those that are too long, words; of those, characters."""
    spans = _lines(text, block.start, block.end) if block.kind == "lines" else sentences(text, block.start, block.end)
    for start, end in spans:
        yield from _fitting(text, start, end, most)


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        found = text.find("\n", start, end)
        stop = end if found < 0 else found
        if text[start:stop].strip():
            yield start, stop
        start = stop + 1


def _fitting(text: str, start: int, end: int, most: int) -> Iterator[tuple[int, int]]:
    while end - start > most:
        stop = _last_gap(text, start, start + most)
        yield start, stop
        start = stop
        while start < end and text[start].isspace():
            start += 1
    if start < end:
        yield start, end


def _last_gap(text: str, start: int, stop: int) -> int:
    """The end of a line if there is one, else of a word, else right here."""
    for gap in ("\n", " "):
        found = text.rfind(gap, start + 1, stop + 1)
        if found > start:
            return found
    return stop
