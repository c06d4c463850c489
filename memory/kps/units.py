"""Pieces of a document, and the knowledge units (KEM drafts) of them, with reproducible ids."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from pydantic import JsonValue, ValidationError

from bus_schema.envelope import explain
from bus_schema.ids import derived
from bus_schema.kem import Kem, KemDraft, KemRights, KemSource
from bus_schema.kps import Chunking, ProcessRawData
from language.sentences import sentence_spans
from memory.kps.document import Block, Document, MetadataFull

# What stands between two atoms that go together counts as well.
_ROOM = 8
# A piece of many tiny sections is named for the first of them.
_MAX_TITLES = 12
# A piece that long need not swallow the next section, or the beginning of the next paragraph.
_FAIR = 0.5
_MOST_HEADER = 0.25


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters `start` to `end` of the text, with the headings that they stand under, the page they begin on.

    `header` names the columns of a table whose further rows it begins with.
    """

    start: int
    end: int
    section: tuple[str, ...] = ()
    page: int | None = None
    header: str = ""


def cut(document: Document, chunking: Chunking) -> list[Piece]:
    """Pieces of at most `max_chars`, each the text as it is; what one ends with, the next one may begin with."""
    cutter = _Cutter(document.text, chunking)
    for block in document.blocks:
        cutter.take(block)
    cutter.close()
    return cutter.pieces


class Atom(NamedTuple):
    """A sentence or a line, which is cut only where it alone is too long."""

    start: int
    end: int
    page: int | None = None


@dataclass
class _Cutter:
    text: str
    chunking: Chunking
    pieces: list[Piece] = field(default_factory=list)
    _path: list[Block] = field(default_factory=list)
    _atoms: list[Atom] = field(default_factory=list)
    _section: dict[str, None] = field(default_factory=dict)
    _header: str = ""
    _has_body: bool = False

    def take(self, block: Block) -> None:
        """Add a block to the current piece as far as there is room, the rest to further ones."""
        parts = list(atoms(self.text, block, (self.chunking.max_chars - _ROOM) // 2))
        if not parts:
            return
        if block.kind == "heading":
            self._head(block)
        elif self._is_fair and self._is_too_far(block.end):
            self._go_on(block, parts[0])
        for atom in parts:
            if self._atoms and self._is_too_far(atom.end):
                self._go_on(block, atom)
                self._header = self._header_of(block, parts[0]) if atom.start > parts[0].start else ""
            self._append(atom)
        self._has_body = self._has_body or block.kind != "heading"

    def close(self) -> None:
        if self._atoms:
            first, last = self._atoms[0], self._atoms[-1]
            self.pieces.append(Piece(first.start, last.end, tuple(self._section), first.page, self._header))
        self._atoms, self._section, self._header, self._has_body = [], {}, "", False

    @property
    def _is_fair(self) -> bool:
        return bool(self._atoms) and self._is_too_far(self._atoms[-1].end, self.chunking.max_chars * _FAIR)

    def _is_too_far(self, end: int, limit: float | None = None) -> bool:
        room = (self.chunking.max_chars if limit is None else limit) - len(self._header)
        return end - self._atoms[0].start > room

    def _header_of(self, table: Block, first: Atom) -> str:
        """The first row of a table, where it leaves most of a piece to the others; of other blocks nothing."""
        row = self.text[first.start : first.end]
        return row if table.kind == "table" and len(row) <= self.chunking.max_chars * _MOST_HEADER else ""

    def _head(self, heading: Block) -> None:
        """A heading goes with what follows it; a short section stays with the one before."""
        while self._path and self._path[-1].level >= heading.level:
            self._path.pop()
        self._path.append(heading)
        if self._has_body and self._is_fair:
            self.close()

    def _go_on(self, block: Block, upcoming: Atom) -> None:
        """Begin another piece: prose repeats the last words of the one before, unless it were cut because of them."""
        before, limit = self._atoms, self.chunking.max_chars
        self.close()
        is_whole = block.end - upcoming.start <= limit
        end = block.end if is_whole else upcoming.end
        for atom in before if block.kind == "prose" else ():
            is_near = before[-1].end - atom.start <= self.chunking.overlap_chars
            if is_near and end - atom.start <= limit:
                self._append(atom)

    def _append(self, atom: Atom) -> None:
        self._atoms.append(atom)
        if len(self._section) < _MAX_TITLES:
            self._section |= dict.fromkeys(heading.title for heading in self._path if heading.title)


def atoms(text: str, block: Block, limit: int) -> Iterator[Atom]:
    """Sentences, lines; of those that are too long, words; of those, characters."""
    spans = (
        _lines(text, block.start, block.end)
        if block.kind in ("lines", "table")
        else sentence_spans(text, block.start, block.end)
    )
    for start, end in spans:
        for fitting in _fitting(text, start, end, limit):
            yield Atom(*fitting, block.page)


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        newline = text.find("\n", start, end)
        stop = end if newline < 0 else newline
        if text[start:stop].strip():
            yield start, stop
        start = stop + 1


def _fitting(text: str, start: int, end: int, limit: int) -> Iterator[tuple[int, int]]:
    while end - start > limit:
        stop = _last_gap(text, start, start + limit)
        yield start, stop
        start = stop
        while start < end and text[start].isspace():
            start += 1
    if start < end:
        yield start, end


def _last_gap(text: str, start: int, stop: int) -> int:
    """The end of a line if there is one, else of a word, else right here."""
    for gap in ("\n", " "):
        position = text.rfind(gap, start + 1, stop + 1)
        if position > start:
            return position
    return stop


ARTIFACT_KEY = "artifact_id"
_MARKDOWN = ("text/markdown", "text/x-markdown")
_REVISION = "revision"
_COMPARED = ("content_type", "content", "metadata", "source")


@dataclass(frozen=True, slots=True)
class Unit:
    """A draft to store, with the passage to embed: its content under the headings."""

    draft: KemDraft
    passage: str

    @property
    def kem_id(self) -> str:
        """Derived from the source and the number of the piece."""
        return str(self.draft.id)

    def is_known(self, kem: Kem | None) -> bool:
        """Whether memory has the same already, or a newer revision."""
        if kem is None:
            return False
        if _revision(kem.metadata) > _revision(self.draft.metadata):
            return True
        rights = KemRights.model_fields.keys() & self.draft.model_fields_set
        return all(getattr(kem, name) == getattr(self.draft, name) for name in (*_COMPARED, *rights))


def units_of(command: ProcessRawData, owner: str, document: Document, pieces: Sequence[Piece]) -> list[Unit]:
    """One for each piece; the same source, cut the same way for the same owner, has the same ids. Raises MetadataFull.

    What is known beforehand goes before what is found: a page, a section of the caller's own stays.
    """
    identity = _identity(command, owner)
    try:
        return [_unit(command, identity, number, document, piece) for number, piece in enumerate(pieces, 1)]
    except ValidationError as invalid:
        raise MetadataFull(reason=explain(invalid)) from invalid


def _unit(command: ProcessRawData, identity: str, number: int, document: Document, piece: Piece) -> Unit:
    content = "\n".join(filter(None, (piece.header, document.text[piece.start : piece.end])))
    draft = KemDraft(
        id=f"kem_{derived(identity, number).replace('-', '')}",
        content_type="text/markdown" if command.content_type.split(";")[0] in _MARKDOWN else "text/plain",
        content=content,
        metadata=_metadata(command, number, piece),
        source=KemSource(artifact=command.source, start=piece.start, end=piece.end, links=command.links),
        # Without rights that differ from the default, units that exist keep theirs.
        **(command.rights.model_dump() if command.rights != KemRights() else {}),
    )
    return Unit(draft, "\n".join([*(title for title in piece.section if title not in content), content]))


def _metadata(command: ProcessRawData, number: int, piece: Piece) -> dict[str, JsonValue]:
    """With the artifact id, by which all units of a document are found whatever its version."""
    origin: dict[str, JsonValue] = {"part": number, "page": piece.page, "section": [*piece.section] or None}
    artifact_id = None if command.source is None else command.source.artifact_id
    added: dict[str, JsonValue] = {_REVISION: command.revision or None, ARTIFACT_KEY: artifact_id}
    return _without_nulls(origin) | command.initial_metadata | _without_nulls(added)


def _without_nulls(fields: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: value for name, value in fields.items() if value is not None}


def _revision(metadata: Mapping[str, JsonValue]) -> float:
    revision = metadata.get(_REVISION, 0)
    return revision if isinstance(revision, int | float) else 0


def _identity(command: ProcessRawData, owner: str) -> str:
    """Key of a processing: the same source, content type and chunking of one owner have the same."""
    if command.key is not None:
        return "\n".join(("kps", owner, "key", command.key))
    if command.source is not None:
        source = f"{command.source.artifact_id}@{command.source.version}"
    else:
        source = sha256((command.raw_content or "").encode()).hexdigest()
    chunking = command.chunking
    return "\n".join(("kps", owner, source, command.content_type, f"{chunking.max_chars}/{chunking.overlap_chars}"))
