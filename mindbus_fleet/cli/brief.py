"""A brief: the text that a process starts from."""

from pathlib import Path

from bus_schema.replies import Code
from mindbus.cli.errors import CommandError

MAX_BYTES = 1024 * 1024
_CONTROL = frozenset(range(32)) - {ord(c) for c in "\t\n\r\f"}


class NotABrief(CommandError):
    """Nobody can write from this."""

    def __init__(self, file: Path, trouble: str) -> None:
        super().__init__(f"{file} {trouble}", Code.INVALID)


def read_brief(file: Path) -> bytes:
    """The text of a Markdown or plain text file, in UTF-8 whatever it was saved in. Raises NotABrief."""
    try:
        size_bytes = file.stat().st_size
        if size_bytes > MAX_BYTES:
            raise NotABrief(file, f"has {size_bytes} bytes; a brief has at most {MAX_BYTES}: shorten it")
        raw = file.read_bytes()
    except OSError as unreadable:
        raise NotABrief(file, f"cannot be read: {unreadable.strerror}") from unreadable
    text = _decoded(raw, file)
    if not text.strip():
        raise NotABrief(file, "is empty: write down what the article is to be about")
    if any(ord(character) in _CONTROL for character in text):
        raise NotABrief(file, "is not a text but binary: give a Markdown or plain text file")
    return text.encode()


def _decoded(raw: bytes, file: Path) -> str:
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as undecodable:
        raise NotABrief(file, "is not text in UTF-8: save it in that encoding, or give a text file") from undecodable
