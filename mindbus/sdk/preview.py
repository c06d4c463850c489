"""Preview of an artifact from its first bytes."""

import codecs
import json
from typing import Literal

from pydantic import BaseModel

from bus_schema.artifacts import Manifest
from mindbus.terminal import escape_controls

# JSON is laid out only as a whole.
MOST_BYTES = 256 * 1024
_LONGEST_LINE = 2000
_DUMPED_BYTES = 256
_DUMP_WIDTH = 16
_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Offset, signature, description.
_SIGNATURES = (
    (0, b"\x89PNG\r\n\x1a\n", "PNG image"),
    (0, b"\xff\xd8\xff", "JPEG image"),
    (0, b"GIF8", "GIF image"),
    (8, b"WEBP", "WebP image"),
    (8, b"WAVE", "WAV sound"),
    (0, b"OggS", "Ogg sound or video"),
    (0, b"fLaC", "FLAC sound"),
    (0, b"ID3", "MP3 sound"),
    (4, b"ftyp", "MP4 or another of its family"),
    (0, b"\x1a\x45\xdf\xa3", "Matroska or WebM video"),
    (0, b"%PDF-", "PDF document"),
    (0, b"PK\x03\x04", "ZIP archive, perhaps an office document"),
    (0, b"\x1f\x8b", "gzip data"),
    (0, b"BZh", "bzip2 data"),
    (0, b"\xfd7zXZ\x00", "xz data"),
    (0, b"\x28\xb5\x2f\xfd", "zstd data"),
    (0, b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (257, b"ustar", "tar archive"),
    (0, b"SQLite format 3\x00", "SQLite database"),
    (0, b"PAR1", "Parquet table"),
    (0, b"\x93NUMPY", "NumPy array"),
    (0, b"GGUF", "GGUF model"),
    (0, b"\x7fELF", "ELF program"),
)


class Preview(BaseModel):
    """Text to show; `is_cut` where there is more."""

    kind: Literal["json", "text", "binary", "empty"]
    looks_like: str
    text: str
    is_cut: bool


def preview(manifest: Manifest, head: bytes, lines: int) -> Preview:
    """Preview of the first bytes, safe to print to a terminal."""
    is_cut = len(head) < manifest.size_bytes
    if not head:
        return Preview(kind="empty", looks_like="nothing", text="", is_cut=is_cut)
    text = as_text(head, is_cut=is_cut)
    if text is None:
        dumped = head[:_DUMPED_BYTES]
        return Preview(
            kind="binary", looks_like=_signature(head), text=_dump(dumped), is_cut=len(dumped) < manifest.size_bytes
        )
    laid_out = None if is_cut else _laid_out(manifest.content_type, text)
    shown, is_shortened = _first(laid_out or text, lines)
    kind: Literal["json", "text"] = "text" if laid_out is None else "json"
    looks_like = "JSON" if laid_out else manifest.content_type
    return Preview(kind=kind, looks_like=looks_like, text=escape_controls(shown), is_cut=is_cut or is_shortened)


def as_text(head: bytes, *, is_cut: bool) -> str | None:
    """The text that begins with these bytes, without a partial character at a cut; None where it is not text."""
    encoding = next((name for bom, name in _BOMS.items() if head.startswith(bom)), "utf-8")
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        text = decoder.decode(head, final=not is_cut)
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text


def _laid_out(content_type: str, text: str) -> str | None:
    if not content_type.partition(";")[0].strip().endswith("json"):
        return None
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return None


def _first(text: str, lines: int) -> tuple[str, bool]:
    parts = text.split("\n", lines)
    shown = [line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…" for line in parts[:lines]]
    return "\n".join(shown), (len(parts) > lines and bool(parts[lines])) or shown != parts[:lines]


def _signature(head: bytes) -> str:
    return next((what for start, sign, what in _SIGNATURES if head[start:].startswith(sign)), "no kind known here")


def _dump(content: bytes) -> str:
    return "\n".join(_row(start, content[start : start + _DUMP_WIDTH]) for start in range(0, len(content), _DUMP_WIDTH))


def _row(start: int, row: bytes) -> str:
    shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
    return f"{start:08x}  {row.hex(' '):{_DUMP_WIDTH * 3}} {shown}"
