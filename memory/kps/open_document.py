"""Text of ODT, OpenDocument 1.3 as LibreOffice and others write it, by lxml."""

import zipfile
from collections.abc import Iterator
from io import BytesIO

from lxml import etree

from memory.kps.document import Composer, CorruptDocument, Document, DocumentProtected
from memory.kps.office import joined_rows, with_archive_check

_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
# Comments, deleted text, lists of headings that stand in the text themselves, the numbers of notes.
_LEFT_OUT = {
    f"{_OFFICE}annotation",
    f"{_TEXT}tracked-changes",
    f"{_TEXT}table-of-content",
    f"{_TEXT}note-citation",
}
_GAPS = {f"{_TEXT}tab": "\t", f"{_TEXT}line-break": "\n"}
_BLOCKS = {f"{_TEXT}h", f"{_TEXT}p"}
_MAX_REPEATED = 100


@with_archive_check
def extract_odt(content: bytes) -> Document:
    """Headings by their levels, paragraphs with their notes, items, tables; nothing is fetched."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        if "META-INF/manifest.xml" in archive.namelist() and b"encryption-data" in archive.read(
            "META-INF/manifest.xml"
        ):
            raise DocumentProtected
        xml = archive.read("content.xml")
    root = etree.fromstring(xml, etree.XMLParser(resolve_entities=False, no_network=True))
    body = root.find(f"{_OFFICE}body/{_OFFICE}text")
    if body is None:
        raise CorruptDocument(reason="it has no text")
    composer = Composer()
    _compose(body, composer, is_item=False)
    return composer.document()


def _compose(parent: etree._Element, composer: Composer, *, is_item: bool) -> None:
    for element in parent:
        if element.tag in _LEFT_OUT:
            continue
        if element.tag == f"{_TEXT}h":
            composer.heading("".join(_words(element)), int(element.get(f"{_TEXT}outline-level", "1")))
        elif element.tag == f"{_TEXT}p":
            composer.prose("".join(_words(element)), is_item=is_item)
            _compose_notes(element, composer)
        elif element.tag == f"{_TABLE}table":
            composer.table(joined_rows(map(_cells, _rows(element))))
        else:
            _compose(element, composer, is_item=is_item or element.tag == f"{_TEXT}list")


def _compose_notes(paragraph: etree._Element, composer: Composer) -> None:
    for note in paragraph.iter(f"{_TEXT}note-body"):
        composer.prose(" ".join("".join(_words(each)) for each in note))


def _rows(table: etree._Element) -> Iterator[etree._Element]:
    """The rows of a table itself; one in a cell of it is text there."""
    for row in table.iter(f"{_TABLE}table-row"):
        if next(row.iterancestors(f"{_TABLE}table")) is table:
            yield row


def _cells(row: etree._Element) -> list[str]:
    cells: list[str] = []
    for cell in row.iterchildren(f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
        # The empty rest of a row is one cell, repeated a thousand times.
        times = min(int(cell.get(f"{_TABLE}number-columns-repeated", "1")), _MAX_REPEATED)
        cells += [" ".join("".join(_words(each)) for each in cell)] * times
    return cells


def _words(element: etree._Element) -> Iterator[str]:
    """Text of an element and of those in it, without notes and what is left out."""
    yield element.text or ""
    for child in element:
        if child.tag == f"{_TEXT}s":
            yield " " * min(int(child.get(f"{_TEXT}c", "1")), _MAX_REPEATED)
        elif child.tag in _GAPS:
            yield _GAPS[child.tag]
        elif isinstance(child.tag, str) and child.tag not in _LEFT_OUT and child.tag != f"{_TEXT}note":
            # Items of a list, or paragraphs of a frame.
            yield " " if child.tag in _BLOCKS else ""
            yield from _words(child)
        yield child.tail or ""
