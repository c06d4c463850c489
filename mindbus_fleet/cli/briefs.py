"""Files that runs start with: briefs, which are texts, and documents for the role `importer`."""

from pathlib import Path

from bus_schema.replies import Code
from memory.kps.formats import CONTENT_TYPES
from mindbus.cli.errors import CommandError
from workers.importer import ImporterWorker

MAX_BYTES = 1024 * 1024
_CONTROL = frozenset(range(32)) - {ord(c) for c in "\t\n\r\f"}


class InvalidBrief(CommandError):
    """Nobody can write from this."""

    def __init__(self, file: Path, trouble: str) -> None:
        super().__init__(f"{file} {trouble}", Code.INVALID)


def content_type_of_brief(file: Path) -> str:
    """By the file's name; of one that says nothing it is text."""
    return CONTENT_TYPES.get(file.suffix.lower(), "text/plain")


def read_brief(file: Path) -> bytes:
    """The text of a Markdown or plain text file, in UTF-8 whatever it was saved in. Raises InvalidBrief."""
    raw = _bytes_of(file, MAX_BYTES)
    text = _decoded(raw, file)
    if not text.strip():
        raise InvalidBrief(file, "is empty: write down what the article is to be about")
    if any(ord(character) in _CONTROL for character in text):
        raise InvalidBrief(file, "is not a text but binary: give a Markdown or plain text file")
    return text.encode()


def read_document(file: Path) -> bytes:
    """A PDF, office document or mail as it is, any other file as a brief. Raises InvalidBrief."""
    is_text = content_type_of_brief(file).startswith("text/")
    return read_brief(file) if is_text else _bytes_of(file, ImporterWorker.largest_input_bytes)


def _bytes_of(file: Path, most_bytes: int) -> bytes:
    try:
        size_bytes = file.stat().st_size
        if size_bytes > most_bytes:
            raise InvalidBrief(file, f"has {size_bytes} bytes; a brief has at most {most_bytes}: shorten it")
        return file.read_bytes()
    except OSError as unreadable:
        raise InvalidBrief(file, f"cannot be read: {unreadable.strerror}") from unreadable


def _decoded(raw: bytes, file: Path) -> str:
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as undecodable:
        raise InvalidBrief(file, "is not text in UTF-8: save it in that encoding, or give a text file") from undecodable
