"""Text of DOCX by mammoth, PPTX by python-pptx, XLSX by openpyxl."""

import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, time
from functools import wraps
from io import BytesIO
from typing import TYPE_CHECKING
from xml.parsers.expat import ExpatError

from memory.kps.document import Composer, CorruptDocument, Document, DocumentProtected, ExtractionTooLarge

if TYPE_CHECKING:
    from pptx.shapes.base import BaseShape

# SyntaxError is raised by lxml for malformed XML, NotImplementedError by zipfile for an unknown compression.
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    ExpatError,
    SyntaxError,
    EOFError,
    AttributeError,
    LookupError,
    NotImplementedError,
    TypeError,
    ValueError,
)
_MAX_UNPACKED_BYTES = 256 * 1024**2
_LARGEST_PART_BYTES = 64 * 1024**2
# A sheet can claim a million rows without holding a cell.
_MAX_CELLS = 5_000_000
_ENCRYPTED = 1
_STYLES = """
p[style-name='Title'] => h1:fresh
p[style-name='Subtitle'] => p:fresh
p[style-name='Heading 5'] => h5:fresh
p[style-name='Heading 6'] => h6:fresh
"""

Extractor = Callable[[bytes], Document]


def with_archive_check(extract: Extractor) -> Extractor:
    """Look at the archive before a library does; what a library stumbles over is a corrupt document."""

    @wraps(extract)
    def extract_checked(content: bytes) -> Document:
        try:
            _require_harmless(content)
            return extract(content)
        except _BROKEN as broken:
            raise CorruptDocument(reason=f"{type(broken).__name__}: {broken}") from broken

    return extract_checked


@with_archive_check
def extract_docx(content: bytes) -> Document:
    """Headings by their styles, paragraphs, items, tables; pictures are left out, nothing is fetched."""
    import mammoth

    from memory.kps.text_formats import extract_html

    converted = mammoth.convert_to_html(BytesIO(content), style_map=_STYLES, convert_image=lambda _picture: [])
    return extract_html(converted.value)


@with_archive_check
def extract_pptx(content: bytes) -> Document:
    """A slide is a page: its title a heading, then text, tables and the speaker's notes."""
    from pptx import Presentation
    from pptx.shapes.autoshape import Shape
    from pptx.shapes.graphfrm import GraphicFrame

    composer = Composer()
    for number, slide in enumerate(Presentation(BytesIO(content)).slides, 1):
        title = slide.shapes.title
        if title is not None:
            composer.heading(title.text_frame.text, 1, number)
        for shape in _flat(slide.shapes):
            if isinstance(shape, Shape) and (title is None or shape.shape_id != title.shape_id):
                for paragraph in shape.text_frame.paragraphs:
                    composer.prose(paragraph.text.replace("\v", "\n"), number, is_item=paragraph.level > 0)
            elif isinstance(shape, GraphicFrame) and shape.has_table:
                composer.table(joined_rows([cell.text for cell in row.cells] for row in shape.table.rows), number)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            composer.prose(slide.notes_slide.notes_text_frame.text, number)
    return composer.document()


@with_archive_check
def extract_xlsx(content: bytes) -> Document:
    """A sheet is a heading with its rows as lines; of formulas the values that were saved last."""
    from openpyxl import load_workbook

    composer = Composer()
    workbook = load_workbook(BytesIO(content), read_only=True, data_only=True)
    cells_left = _MAX_CELLS
    for sheet in workbook.worksheets:
        rows: list[list[str]] = []
        for row in sheet.iter_rows(values_only=True):
            cells_left -= max(1, len(row))
            if cells_left < 0:
                raise ExtractionTooLarge(cells=_MAX_CELLS)
            if any(value is not None for value in row):
                rows.append([_cell(value) for value in row])
        if rows:
            composer.heading(sheet.title, 1)
            composer.table(joined_rows(rows))
    return composer.document()


def _flat(shapes: "Iterable[BaseShape]") -> "Iterator[BaseShape]":
    """Shapes in order, those of a group in its place."""
    from pptx.shapes.group import GroupShape

    for shape in shapes:
        if isinstance(shape, GroupShape):
            yield from _flat(shape.shapes)
        else:
            yield shape


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    return " ".join(str(value).split())


def joined_rows(rows: Iterable[list[str]]) -> str:
    """Rows as lines, without the empty cells at their ends."""
    lines = (" | ".join(" ".join(cell.split()) for cell in row).rstrip(" |") for row in rows)
    return "\n".join(line for line in lines if line)


def _require_harmless(content: bytes) -> None:
    """No more is ever unpacked of a part than is written here of its size."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        parts = archive.infolist()
    if any(part.flag_bits & _ENCRYPTED for part in parts):
        raise DocumentProtected
    sizes = [part.file_size for part in parts]
    xml = [part.file_size for part in parts if part.filename.endswith((".xml", ".rels"))]
    if sum(sizes) > _MAX_UNPACKED_BYTES or max(xml, default=0) > _LARGEST_PART_BYTES:
        raise ExtractionTooLarge(unpacked_bytes=sum(sizes), most=_MAX_UNPACKED_BYTES)
