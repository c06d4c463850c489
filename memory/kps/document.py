"""An extracted document: its text with blocks, the composer that builds it, and the errors of extraction."""

from dataclasses import dataclass
from typing import Literal

from bus_schema.replies import Code
from language.words import SOFT_HYPHEN
from mindbus.errors import Rejected


class UnknownFormat(Rejected):
    """Nothing here reads this content type; send text, Markdown, HTML, PDF, JSON, DOCX, PPTX, XLSX or ODT as such."""


class DeclaredTypeDiffers(Rejected):
    """The bytes are not of the declared content type; declare what they are, or send the right file."""


class NotText(Rejected):
    """The text is not in its charset; name the right one, such as text/plain; charset=windows-1251."""


class CorruptDocument(Rejected):
    """The document is damaged, cut off or not well-formed; open it where it was made, then export it anew."""


class DocumentProtected(Rejected):
    """The document is encrypted or asks for a password; save a copy without protection, then send that."""


class NoTextFound(Rejected):
    """There are no words in the document; of scanned pages or pictures make text first, by OCR."""


class DocumentTooLarge(Rejected, code=Code.TOO_LARGE):
    """The document has more bytes than are read; split it, or raise MINDBUS_KPS_MAX_BYTES."""


class ExtractionTooLarge(Rejected, code=Code.TOO_LARGE):
    """Reading the document takes too long, or unpacks far more than is read; split it, or export it more simply."""


class MetadataFull(Rejected):
    """The initial metadata leaves no room for part, page and section; have less of it, the content can say it."""


class SourceDiffers(Rejected, code=Code.CHECKSUM_MISMATCH):
    """The artifact is not the one that the ref describes; take the ref from storage."""


MAX_TEXT_CHARS = 8_000_000
MAX_TITLE_CHARS = 200

Kind = Literal["heading", "prose", "lines", "table"]


@dataclass(frozen=True, slots=True)
class Block:
    """Characters `start` to `end`: a heading of a level, prose, lines that each stand for themselves, a table."""

    kind: Kind
    start: int
    end: int
    level: int = 0
    title: str = ""
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """Extracted text with its blocks, in the order of the text, without overlap."""

    text: str
    blocks: tuple[Block, ...]


def title_of(text: str) -> str:
    """A heading on one line, of at most MAX_TITLE_CHARS."""
    return " ".join(text.split())[:MAX_TITLE_CHARS]


def require_words(document: Document) -> Document:
    """The document itself. Raises NoTextFound, ExtractionTooLarge."""
    if len(document.text) > MAX_TEXT_CHARS:
        raise ExtractionTooLarge(text_chars=len(document.text), most=MAX_TEXT_CHARS)
    if not any(character.isalnum() for character in document.text):
        raise NoTextFound
    return document


class Composer:
    """Builds a document from headings, prose and lines in order; empty ones are left out."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._blocks: list[Block] = []

    def heading(self, text: str, level: int, page: int | None = None) -> None:
        """A heading for all that follows, up to the next of its level."""
        self._add("heading", text, "\n\n", level, page)

    def prose(self, text: str, page: int | None = None, *, is_item: bool = False) -> None:
        """A paragraph, or an item of a list, which stays close to the others."""
        self._add("prose", text, "\n" if is_item else "\n\n", 0, page)

    def lines(self, text: str, page: int | None = None) -> None:
        """Code, records."""
        self._add("lines", text, "\n\n", 0, page)

    def table(self, text: str, page: int | None = None) -> None:
        """Rows, a line each; the first names the columns."""
        self._add("table", text, "\n\n", 0, page)

    def document(self) -> Document:
        return Document("".join(self._parts), tuple(self._blocks))

    def _add(self, kind: Kind, text: str, joint: str, level: int, page: int | None) -> None:
        text = _whole(text).strip()
        if not text:
            return
        if self._parts:
            self._parts.append(joint)
            self._length += len(joint)
        start, end = self._length, self._length + len(text)
        if end > MAX_TEXT_CHARS:
            # The rest need not be read to know.
            raise ExtractionTooLarge(most=MAX_TEXT_CHARS)
        self._parts.append(text)
        self._length = end
        self._blocks.append(Block(kind, start, end, level, title_of(text) if kind == "heading" else "", page))


def _whole(text: str) -> str:
    """Without NUL and halves of characters, which broken documents contain; words whole that may break somewhere."""
    text = text.replace("\0", "").replace(f"{SOFT_HYPHEN}\n", "").replace(SOFT_HYPHEN, "")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
