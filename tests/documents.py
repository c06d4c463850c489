"""Small real documents, made as they are needed: PDF, DOCX, PPTX, XLSX, ODT, what passes for them."""

import io
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape

from openpyxl import Workbook
from pptx import Presentation
from pypdf import PdfReader, PdfWriter

_WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_CONTENT_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>'
    '<Override PartName="/word/styles.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"/></Types>'
)
_RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="rId1" Target="{target}" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}"/></Relationships>'
)


def a_docx(*paragraphs: str | tuple[int, str], table: Sequence[Sequence[str]] = ()) -> bytes:
    """Paragraphs; with a level before it, a heading, in the style that Word calls it by."""
    body = "".join(map(_paragraph, paragraphs)) + _table(table)
    levels = {each[0] for each in paragraphs if isinstance(each, tuple)}
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{level}"><w:name w:val="heading {level}"/></w:style>'
        for level in sorted(levels)
    )
    parts = {
        "[Content_Types].xml": _CONTENT_TYPES,
        "_rels/.rels": _RELATIONS.format(target="word/document.xml", kind="officeDocument"),
        "word/_rels/document.xml.rels": _RELATIONS.format(target="styles.xml", kind="styles"),
        "word/styles.xml": f"<w:styles {_WORD}>{styles}</w:styles>",
        "word/document.xml": f"<w:document {_WORD}><w:body>{body}</w:body></w:document>",
    }
    return zipped({name: f'<?xml version="1.0" encoding="UTF-8"?>{xml}'.encode() for name, xml in parts.items()})


def a_pptx(*slides: Sequence[str], table: Sequence[Sequence[str]] = ()) -> bytes:
    """Slides of a title with paragraphs; the table is on the last."""
    presentation = Presentation()
    for title, *paragraphs in slides:
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text_frame.text = title
        slide.placeholders[1].text_frame.text = "\n".join(paragraphs)
        if table and (title, *paragraphs) == tuple(slides[-1]):
            rows = slide.shapes.add_table(len(table), len(table[0]), 0, 0, 1000, 1000).table
            for at, row in enumerate(table):
                for place, text in enumerate(row):
                    rows.cell(at, place).text = text
    file = io.BytesIO()
    presentation.save(file)
    return file.getvalue()


def an_xlsx(sheets: Mapping[str, Sequence[Sequence[object]]]) -> bytes:
    """Rows of values by the names of their sheets."""
    workbook = Workbook()
    workbook.remove(workbook.worksheets[0])
    for name, rows in sheets.items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(row)
    file = io.BytesIO()
    workbook.save(file)
    return file.getvalue()


def an_odt(body: str, manifest: str = "") -> bytes:
    """The elements of a text in OpenDocument's XML, with the prefixes `text` and `table`."""
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "table")
    )
    text = f"<office:body><office:text>{body}</office:text></office:body>"
    xml = f"<office:document-content {spaces}>{text}</office:document-content>"
    return zipped(
        {
            "mimetype": b"application/vnd.oasis.opendocument.text",
            "content.xml": xml.encode(),
            "META-INF/manifest.xml": manifest.encode(),
        }
    )


def a_protected_docx() -> bytes:
    """As Word keeps what has a password: a container of another kind, with the encrypted package in it."""
    return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1024) + "EncryptedPackage".encode("utf-16-le") + bytes(512)


def zipped(parts: dict[str, bytes]) -> bytes:
    """An archive."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def a_pdf(*pages: Sequence[str], outline: Iterable[tuple[str, int]] = ()) -> bytes:
    """Lines of text on pages, in whatever letters; an entry of the outline is a title with its page, from 1 on."""
    objects = _Objects()
    letters = sorted({letter for page in pages for line in page for letter in line})
    font = _font(objects, letters)
    parent = objects.reserve()
    kids = []
    for page in pages:
        contents = objects.stream(_drawn(page))
        resources = f"/Resources << /Font << /F1 {font} 0 R >> >>"
        kids.append(
            objects.add(
                f"<< /Type /Page /Parent {parent} 0 R /MediaBox [0 0 595 842] {resources} /Contents {contents} 0 R >>"
            )
        )
    objects.put(parent, f"<< /Type /Pages /Kids [{_refs(kids)}] /Count {len(kids)} >>")
    entries = _outline(objects, list(outline), kids)
    return objects.file(f"<< /Type /Catalog /Pages {parent} 0 R {entries} >>")


def a_protected_pdf(password: str = "secret") -> bytes:
    """One that asks for a password."""
    return _encrypted(password)


def a_sealed_pdf() -> bytes:
    """One that everybody may read, but not change."""
    return _encrypted("")


class _Objects:
    def __init__(self) -> None:
        self._bodies: list[bytes] = []

    def reserve(self) -> int:
        self._bodies.append(b"")
        return len(self._bodies)

    def put(self, number: int, body: str | bytes) -> None:
        self._bodies[number - 1] = body if isinstance(body, bytes) else body.encode()

    def add(self, body: str | bytes) -> int:
        number = self.reserve()
        self.put(number, body)
        return number

    def stream(self, content: bytes) -> int:
        return self.add(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))

    def file(self, catalog: str) -> bytes:
        root = self.add(catalog)
        file, places = bytearray(b"%PDF-1.7\n"), []
        for number, body in enumerate(self._bodies, 1):
            places.append(len(file))
            file += b"%d 0 obj\n%s\nendobj\n" % (number, body)
        table = len(file)
        file += b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
        for place in places:
            file += b"%010d 00000 n \n" % place
        file += b"trailer\n<< /Size %d /Root %d 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(places) + 1, root, table)
        return bytes(file)


def _font(objects: _Objects, letters: Sequence[str]) -> int:
    """A letter's code is its code point, which a table in the font says."""
    named = "\n".join(f"<{ord(letter):04X}> <{ord(letter):04X}>" for letter in letters)
    table = objects.stream(
        f"/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n1 begincodespacerange <0000> <FFFF> "
        f"endcodespacerange\n{len(letters)} beginbfchar\n{named}\nendbfchar endcmap end end".encode()
    )
    descriptor = objects.add("<< /Type /FontDescriptor /FontName /Plain /Flags 4 >>")
    system = "<< /Registry (Adobe) /Ordering (Identity) /Supplement 0 >>"
    descendant = objects.add(
        f"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Plain /CIDSystemInfo {system} /DW 500 "
        f"/FontDescriptor {descriptor} 0 R >>"
    )
    return objects.add(
        f"<< /Type /Font /Subtype /Type0 /BaseFont /Plain /Encoding /Identity-H "
        f"/DescendantFonts [{descendant} 0 R] /ToUnicode {table} 0 R >>"
    )


def _drawn(lines: Sequence[str]) -> bytes:
    shown = " 0 -14 Td ".join(f"<{line.encode('utf-16-be').hex().upper()}> Tj" for line in lines)
    return f"BT /F1 12 Tf 72 770 Td {shown} ET".encode()


def _outline(objects: _Objects, entries: Sequence[tuple[str, int]], pages: Sequence[int]) -> str:
    if not entries:
        return ""
    root = objects.reserve()
    numbers = [objects.reserve() for _ in entries]
    for position, (title, page) in enumerate(entries):
        following = f"/Next {numbers[position + 1]} 0 R" if position + 1 < len(entries) else ""
        previous = f"/Prev {numbers[position - 1]} 0 R" if position else ""
        name = title.encode("utf-16").hex()
        destination = f"/Dest [{pages[page - 1]} 0 R /Fit]"
        objects.put(numbers[position], f"<< /Title <{name}> /Parent {root} 0 R {destination} {previous} {following} >>")
    objects.put(
        root,
        f"<< /Type /Outlines /First {numbers[0]} 0 R /Last {numbers[-1]} 0 R /Count {len(entries)} >>",
    )
    return f"/Outlines {root} 0 R"


def _refs(numbers: Iterable[int]) -> str:
    return " ".join(f"{number} 0 R" for number in numbers)


def _encrypted(password: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(a_pdf(["The code is 4711."]))))
    writer.encrypt(password, "owner", algorithm="RC4-128")
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


def _paragraph(paragraph: str | tuple[int, str]) -> str:
    level, text = paragraph if isinstance(paragraph, tuple) else (0, paragraph)
    style = f'<w:pPr><w:pStyle w:val="{level}"/></w:pPr>' if level else ""
    return f'<w:p>{style}<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def _table(rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    drawn = "".join("<w:tr>" + "".join(f"<w:tc>{_paragraph(cell)}</w:tc>" for cell in row) + "</w:tr>" for row in rows)
    return f"<w:tbl>{drawn}</w:tbl>"
