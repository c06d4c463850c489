"""DOCX, by mammoth: styles become headings, the rest paragraphs, items, tables."""

import zipfile
import zlib
from io import BytesIO
from xml.parsers.expat import ExpatError

import mammoth

from memory.kps.document import Document
from memory.kps.extractors import hypertext
from memory.kps.refusals import CorruptDocument, Protected, TooMuchToRead

# NotImplementedError is how zipfile says that it does not know a compression.
_BROKEN = (zipfile.BadZipFile, zlib.error, ExpatError, EOFError, KeyError, NotImplementedError, ValueError)
_MOST_UNPACKED_BYTES = 256 * 1024**2
_LARGEST_PART_BYTES = 64 * 1024**2
_ENCRYPTED = 1
_STYLES = """
p[style-name='Title'] => h1:fresh
p[style-name='Subtitle'] => p:fresh
p[style-name='Heading 5'] => h5:fresh
p[style-name='Heading 6'] => h6:fresh
"""


def extract(content: bytes) -> Document:
    """Pictures are left out; nothing outside the file is looked at."""
    try:
        _require_harmless(content)
        converted = mammoth.convert_to_html(BytesIO(content), style_map=_STYLES, convert_image=_without_picture)
    except _BROKEN as broken:
        raise CorruptDocument(reason=str(broken)) from broken
    return hypertext.extract(converted.value)


def _require_harmless(content: bytes) -> None:
    """No more is ever unpacked of a part than is written here of its size."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        parts = archive.infolist()
    if any(part.flag_bits & _ENCRYPTED for part in parts):
        raise Protected
    sizes = [part.file_size for part in parts]
    xml = [part.file_size for part in parts if part.filename.endswith((".xml", ".rels"))]
    if sum(sizes) > _MOST_UNPACKED_BYTES or max(xml, default=0) > _LARGEST_PART_BYTES:
        raise TooMuchToRead(unpacked_bytes=sum(sizes), most=_MOST_UNPACKED_BYTES)


def _without_picture(_picture: object) -> list[object]:
    return []
