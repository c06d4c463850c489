import json
import zipfile
from collections.abc import Sequence
from datetime import date
from email.message import EmailMessage
from io import BytesIO

import pytest

from memory.kps.document import (
    CorruptDocument,
    DeclaredTypeDiffers,
    Document,
    DocumentProtected,
    ExtractionTooLarge,
    NoTextFound,
    NotText,
    UnknownFormat,
)
from memory.kps.formats import CONTENT_TYPES, DOCX, MAIL, ODT, PPTX, XLSX, extract
from mindbus.errors import Rejected
from tests.documents import (
    a_docx,
    a_pdf,
    a_pptx,
    a_protected_docx,
    a_protected_pdf,
    a_sealed_pdf,
    an_odt,
    an_xlsx,
    zipped,
)

PDF = "application/pdf"
LONG = "В этом абзаце столько слов, сколько помещается на строке, и ещё немного сверх того"


def told(document: Document) -> list[tuple[str, str]]:
    return [(f"h{block.level}" if block.level else block.kind, said(document, block)) for block in document.blocks]


def said(document: Document, block: object) -> str:
    return document.text[block.start : block.end]  # type: ignore[attr-defined]  # a Block


def test_paragraphs_of_plain_text_lie_where_they_are_in_the_artifact() -> None:
    text = "Первый абзац,\r\nв две строки.\r\n\r\n  \r\nSecond one.\n"

    document = extract(text.encode(), "text/plain")

    assert document.text == text
    assert told(document) == [("prose", "Первый абзац,\r\nв две строки."), ("prose", "Second one.")]


@pytest.mark.parametrize("charset", ["windows-1251", "koi8-r", "utf-8"])
def test_text_is_read_in_the_charset_that_it_is_declared_in(charset: str) -> None:
    assert extract("Приём".encode(charset), f"text/plain; charset={charset}").text == "Приём"


@pytest.mark.parametrize("charset", ["windows-1251", "koi8-r", "cp866"])
@pytest.mark.parametrize("media_type", ["text/plain", "text/csv", "text/markdown"])
def test_older_russian_charsets_are_guessed_where_none_is_declared(charset: str, media_type: str) -> None:
    text = "Протокол совещания\n\nРелиз переносим на пятницу: тесты не готовы,\nзаказчик подождёт до конца недели.\n"

    assert extract(text.encode(charset), media_type).text == text


def test_western_quotation_marks_are_read_as_windows_wrote_them() -> None:
    text = "The team’s plan – “ship on Friday” – was accepted, and nobody in the room had anything to say against it."

    assert extract(text.encode("windows-1252"), "text/plain").text == text


def test_a_mail_has_its_subject_its_head_and_its_words() -> None:
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Перенос релиза", "Анна <anna@example.org>", "team@example.org"
    mail.set_content("Переносим на пятницу.\n\nТесты не готовы.\n", charset="koi8-r")
    mail.add_attachment(b"%PDF-1.7", maintype="application", subtype="pdf", filename="plan.pdf")

    assert told(extract(mail.as_bytes(), "message/rfc822")) == [
        ("h1", "Перенос релиза"),
        ("lines", "From: Анна <anna@example.org>\nTo: team@example.org"),
        ("prose", "Переносим на пятницу."),
        ("prose", "Тесты не готовы."),
    ]


@pytest.mark.parametrize("sender", ["a@", "Group: a@b.c; d@e.f,", "undisclosed recipients:;", "=?utf-8?Q?=FF?= <@>"])
def test_a_mail_from_a_malformed_address_is_read_all_the_same(sender: str) -> None:
    mail = f"From: {sender}\nSubject: Перенос\n\nПереносим на пятницу.\n".encode()

    heading, head, words = told(extract(mail, MAIL))

    assert heading == ("h1", "Перенос")
    assert head[1].startswith("From: ")
    assert words == ("prose", "Переносим на пятницу.")


@pytest.mark.parametrize("charset", ["utf-8", "windows-1251", "koi8-r"])
def test_the_charset_of_a_mail_that_declares_none_is_guessed(charset: str) -> None:
    words = f"{LONG}. {LONG}."
    mail = b"From: anna@example.org\nSubject: Plan\n\n" + words.encode(charset)

    assert told(extract(mail, MAIL))[-1] == ("prose", words)


def test_what_is_no_section_of_a_page_is_skipped() -> None:
    page = "<p>Before.</p><![table><p>Words.</p><![if !supportLists]><p>After.</p>"

    assert [words for _, words in told(extract(page.encode(), "text/html"))] == ["Before.", "Words.", "After."]


def test_a_mail_without_plain_text_is_read_as_the_page_that_it_is() -> None:
    mail = EmailMessage()
    mail["Subject"] = "News"
    mail.set_content("<h1>Release</h1><p>On Friday.</p><style>p {}</style>", subtype="html")

    told_of = told(extract(mail.as_bytes(), "message/rfc822"))

    assert told_of == [("h1", "News"), ("h2", "Release"), ("prose", "On Friday.")]


@pytest.mark.parametrize(
    "content", [b"no head at all", b"Subject: x\nContent-Type: text/plain; charset=none-such\n\n\xff\xfe words"]
)
def test_a_mail_that_cannot_be_read_says_so(content: bytes) -> None:
    with pytest.raises(CorruptDocument):
        extract(content, "message/rfc822")


@pytest.mark.parametrize("charset", ["utf-16", "utf-8-sig"])
def test_a_byte_order_mark_tells_the_charset(charset: str) -> None:
    assert extract("Приём".encode(charset), "text/plain").text == "Приём"


def test_headings_of_markdown_are_told_without_their_markup() -> None:
    text = "---\ntitle: x\n---\n# Выпуск `2.0`, *наконец*\n\nTo be\nread.\n\n- one\n- two\n\n```sh\n# no heading\n```\n"
    text += "\nSection\n-------\n| a | b |\n|---|---|\n| 1 | 2 |\n"

    document = extract(text.encode(), "text/markdown")

    assert document.text == text
    assert told(document) == [
        ("lines", "---\ntitle: x\n---"),
        ("h1", "# Выпуск `2.0`, *наконец*"),
        ("prose", "To be\nread."),
        ("lines", "- one\n- two"),
        ("lines", "```sh\n# no heading\n```"),
        ("h2", "Section\n-------"),
        ("table", "| a | b |\n|---|---|\n| 1 | 2 |"),
    ]
    assert [block.title for block in document.blocks if block.level] == ["Выпуск 2.0, наконец", "Section"]


def test_of_a_page_only_what_a_reader_sees_is_read() -> None:
    html = (
        "<!doctype html><html><head><title>T</title><style>p{}</style><script>var a = '<p>no</p>';</script></head>"
        "<body><nav><a href=/>Home</a></nav><h1>Приказ&nbsp;№&#160;7</h1><p>Пере&shy;нос <b>слов</b>.<br>New line."
        "<ul><li>one<li><p>two</p></ul><table><tr><th>a<th>b<tr><td>1<td><p>2</p></table><pre>x = 1\n  y</pre>"
        "<h2>End</h2><div>last</div></body></html>"
    )

    document = extract(html.encode(), "text/html; charset=utf-8")

    assert told(document) == [
        ("h1", "Приказ № 7"),
        ("prose", "Перенос слов.\nNew line."),
        ("prose", "- one"),
        ("prose", "- two"),
        ("table", "a | b\n1 | 2"),
        ("lines", "x = 1\n  y"),
        ("h2", "End"),
        ("prose", "last"),
    ]


@pytest.mark.parametrize(
    "html", ['<meta charset="windows-1251"><p>Приём', '<?xml version="1.0" encoding="CP1251"?><p>Приём']
)
def test_a_page_may_say_its_charset_itself(html: str) -> None:
    assert extract(html.encode("cp1251"), "text/html").text == "Приём"


def test_a_page_without_headings_has_its_title_for_one() -> None:
    assert told(extract(b"<title>News</title><p>It rains.", "text/html")) == [("h1", "News"), ("prose", "It rains.")]


@pytest.mark.parametrize("html", ["<table><tr><td>open", "<div>" * 3000 + "open", "</p></table>open<nav>", "<pre>open"])
def test_what_is_not_closed_is_read_all_the_same(html: str) -> None:
    assert "open" in extract(html.encode(), "text/html").text


def test_names_in_json_become_headings_and_values_lines() -> None:
    value = {
        "title": "План",
        "done": False,
        "empty": None,
        "owner": {"name": "Anna"},
        "notes": "a\nb",
        "tags": ["x", 1],
    }

    document = extract(json.dumps(value).encode(), "application/json")

    assert told(document) == [
        ("lines", "title: План\ndone: false"),
        ("h1", "owner"),
        ("lines", "name: Anna"),
        ("h1", "notes"),
        ("prose", "a\nb"),
        ("h1", "tags"),
        ("lines", "x\n1"),
    ]


def test_each_line_of_json_lines_is_read() -> None:
    document = extract(b'{"a": "one"}\n\n{"a": "two"}\n', "application/jsonl")

    assert told(document) == [("lines", "a: one"), ("lines", "a: two")]


CROSS = [("", "2024", "2025"), ("Revenue", "10", ""), ("", "12", "13")]


@pytest.mark.parametrize("kind", ["html", "docx"])
def test_cells_of_a_table_stay_below_their_heads_though_the_first_is_empty(kind: str) -> None:
    if kind == "docx":
        document = extract(a_docx("x", table=CROSS), DOCX)
    else:
        rows = "".join("<tr>" + "".join(f"<td><p>{cell}</p></td>" for cell in row) + "</tr>" for row in CROSS)
        document = extract(f"<table>{rows}</table>".encode(), "text/html")

    table = next(words for kind, words in told(document) if kind == "table")
    columns = [[cell.strip() for cell in line.split("|")] for line in table.split("\n")]
    assert [line[:3] for line in columns] == [["", "2024", "2025"], ["Revenue", "10", ""], ["", "12", "13"]]


def test_a_list_and_a_table_in_a_cell_of_an_open_document_are_its_words() -> None:
    def cell(content: str) -> str:
        return f"<table:table-cell>{content}</table:table-cell>"

    items = "".join(f"<text:list-item><text:p>{word}</text:p></text:list-item>" for word in ("Apple", "Banana"))
    inner = f"<table:table><table:table-row>{cell('<text:p>in</text:p>')}</table:table-row></table:table>"
    rows = cell("<text:p>Fruit</text:p>") + cell(f"<text:list>{items}</text:list>") + cell(inner)
    document = extract(an_odt(f"<table:table><table:table-row>{rows}</table:table-row></table:table>"), ODT)

    assert told(document) == [("table", "Fruit | Apple Banana | in")]


def test_a_docx_has_its_headings_paragraphs_and_tables() -> None:
    content = a_docx((1, "Отчёт"), "Первый абзац.", (2, "Numbers"), "Second one.", table=[("a", "b"), ("1", "2")])

    document = extract(content, DOCX)

    assert told(document) == [
        ("h1", "Отчёт"),
        ("prose", "Первый абзац."),
        ("h2", "Numbers"),
        ("prose", "Second one."),
        ("table", "a | b\n1 | 2"),
    ]


def test_a_pdf_has_its_pages_paragraphs_and_what_its_outline_leads_to() -> None:
    first = ["Введение", LONG, "и кончается он здесь.", LONG + ", пере-", "нос и конец."]
    content = a_pdf(first, ["On another page."], outline=[("Введение", 1)])

    document = extract(content, PDF)

    assert told(document) == [
        ("h1", "Введение"),
        ("prose", f"{LONG} и кончается он здесь."),
        ("prose", f"{LONG}, перенос и конец."),
        ("prose", "On another page."),
    ]
    assert [block.page for block in document.blocks] == [1, 1, 1, 2]


def test_what_stands_above_and_below_every_page_is_left_out() -> None:
    pages = [["Annual report", f"What page {number} says.", f"Page {number} of 4"] for number in range(1, 5)]

    document = extract(a_pdf(*pages), PDF)

    assert told(document) == [("prose", f"What page {number} says.") for number in range(1, 5)]


def test_chapters_that_begin_on_pages_of_their_own_are_kept() -> None:
    pages = [[f"Chapter {number}", "It begins", "and ends."] for number in range(1, 5)]

    assert extract(a_pdf(*pages), PDF).text.count("Chapter") == 4


def test_a_pdf_that_everybody_may_read_is_read() -> None:
    assert extract(a_sealed_pdf(), PDF).text == "The code is 4711."


NOT_READABLE: Sequence[tuple[str, bytes, str, type[Rejected]]] = [
    ("a PDF cut off", a_pdf(["x"])[:200], PDF, CorruptDocument),
    ("a PDF with a password", a_protected_pdf(), PDF, DocumentProtected),
    ("a PDF without words", a_pdf([""]), PDF, NoTextFound),
    ("text as PDF", b"Hello", PDF, DeclaredTypeDiffers),
    ("a DOCX cut off", a_docx("x")[:300], DOCX, CorruptDocument),
    ("a DOCX with a password", a_protected_docx(), DOCX, DocumentProtected),
    (
        "a DOCX of encrypted parts",
        a_docx("x").replace(b"PK\1\2\x14\3\x14\0\0", b"PK\1\2\x14\3\x14\0\1"),
        DOCX,
        DocumentProtected,
    ),
    (
        "a DOCX with a broken part",
        zipped({"word/document.xml": b"<a/>" * 99}).replace(b"\x08\0", b"\x63\0"),
        DOCX,
        CorruptDocument,
    ),
    ("old Word as DOCX", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), DOCX, DeclaredTypeDiffers),
    ("a PDF as DOCX", a_pdf(["x"]), DOCX, DeclaredTypeDiffers),
    ("another archive as DOCX", zipped({"a.txt": b"x"}), DOCX, DeclaredTypeDiffers),
    ("broken XML in a DOCX", zipped({"word/document.xml": b"<w:document"}), DOCX, CorruptDocument),
    ("a DOCX without words", a_docx(""), DOCX, NoTextFound),
    ("a PPTX cut off", a_pptx(("x",))[:300], PPTX, CorruptDocument),
    ("a DOCX as PPTX", a_docx("x"), PPTX, DeclaredTypeDiffers),
    ("a PPTX without words", a_pptx(("",)), PPTX, NoTextFound),
    ("a PPTX of nothing but its main part", zipped({"ppt/presentation.xml": b"<a/>"}), PPTX, CorruptDocument),
    ("an XLSX with a password", a_protected_docx(), XLSX, DocumentProtected),
    ("an XLSX without cells", an_xlsx({"Empty": []}), XLSX, NoTextFound),
    ("broken XML in an XLSX", zipped({"xl/workbook.xml": b"<workbook"}), XLSX, CorruptDocument),
    ("a PDF as text", a_pdf(["x"]), "text/plain", DeclaredTypeDiffers),
    ("a picture as text", b"\x89PNG\r\n\x1a\n\0\0", "text/markdown", DeclaredTypeDiffers),
    ("bytes as text", b"a\0b", "text/plain", DeclaredTypeDiffers),
    ("nothing but space", b" \n\n ", "text/plain", NoTextFound),
    ("nothing at all", b"", "text/html", NoTextFound),
    ("too few letters to guess by", "Приём".encode("koi8-r"), "text/plain", NotText),
    ("a charset that is none", b"x", "text/plain; charset=klingon", NotText),
    ("JSON cut off", b'{"a": ', "application/json", CorruptDocument),
    ("a number that is none", b'{"a": NaN}', "application/json", CorruptDocument),
    ("a JSON depth bomb", b"[" * 100_000, "application/json", CorruptDocument),
    ("deep JSON", b'{"a":' * 70 + b"1" + b"}" * 70, "application/json", CorruptDocument),
    ("a type that nothing reads", b"x", "application/vnd.ms-excel", UnknownFormat),
]


def test_a_presentation_has_a_page_for_each_slide() -> None:
    content = a_pptx(
        ("План", "Первый пункт.", "Second one."), ("Numbers", "Given below."), table=[("a", "b"), ("1", "2")]
    )

    document = extract(content, PPTX)

    assert told(document) == [
        ("h1", "План"),
        ("prose", "Первый пункт."),
        ("prose", "Second one."),
        ("h1", "Numbers"),
        ("prose", "Given below."),
        ("table", "a | b\n1 | 2"),
    ]
    assert [block.page for block in document.blocks] == [1, 1, 1, 2, 2, 2]


def test_a_workbook_has_a_heading_for_each_sheet_that_holds_something() -> None:
    content = an_xlsx(
        {
            "Смета": [("Статья", "Сумма", "Срок"), (), ("Аренда", 1200.5, date(2026, 3, 15)), ("Итого", None, None)],
            "Empty": [],
        }
    )

    document = extract(content, XLSX)

    assert told(document) == [
        ("h1", "Смета"),
        ("table", "Статья | Сумма | Срок\nАренда | 1200.5 | 2026-03-15\nИтого"),
    ]


@pytest.mark.parametrize(
    ("content", "content_type", "kind"), [each[1:] for each in NOT_READABLE], ids=[each[0] for each in NOT_READABLE]
)
def test_what_cannot_be_read_is_refused_with_its_reason(
    content: bytes, content_type: str, kind: type[Rejected]
) -> None:
    with pytest.raises(kind):
        extract(content, content_type)


def test_an_archive_that_unpacks_to_far_more_is_not_unpacked() -> None:
    bomb = zipped({"word/document.xml": bytes(65 * 1024**2)})

    assert len(bomb) < 100_000
    with pytest.raises(ExtractionTooLarge):
        extract(bomb, DOCX)


def test_entities_in_a_docx_do_not_multiply() -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    xml = f'<!DOCTYPE d [<!ENTITY e0 "word ">{entities}]><d>&e11;</d>'

    with pytest.raises((CorruptDocument, NoTextFound)):
        extract(zipped({"word/document.xml": xml.encode(), "_rels/.rels": b"<a/>"}), DOCX)


def test_every_suffix_names_a_type_that_is_read() -> None:
    for content_type in set(CONTENT_TYPES.values()) - {PDF, DOCX, PPTX, XLSX, ODT, MAIL}:
        assert extract(b'{"a": "words"}', content_type).text


@pytest.mark.parametrize(("content", "content_type"), [(a_pptx(("x",)), PPTX), (an_xlsx({"x": [("x",)]}), XLSX)])
def test_an_office_document_that_unpacks_to_too_much_is_not_unpacked(content: bytes, content_type: str) -> None:
    with zipfile.ZipFile(BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    main = next(name for name in parts if name.endswith(("presentation.xml", "workbook.xml")))

    with pytest.raises(ExtractionTooLarge):
        extract(zipped({**parts, main: bytes(65 * 1024**2)}), content_type)


def test_entities_in_a_sheet_do_not_multiply_and_fetch_nothing() -> None:
    with zipfile.ZipFile(BytesIO(an_xlsx({"x": [("x",)]}))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    dtd = f'<!DOCTYPE x [<!ENTITY a0 "words">{entities}<!ENTITY f SYSTEM "file:///etc/passwd">]>'
    cell = '<c r="A1" t="inlineStr"><is><t>&a9;&f;</t></is></c>'
    names = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    sheet = f'<worksheet {names}><sheetData><row r="1">{cell}</row></sheetData></worksheet>'
    parts["xl/worksheets/sheet1.xml"] = (dtd + sheet).encode()

    with pytest.raises(Rejected) as refused:
        extract(zipped(parts), XLSX)
    assert isinstance(refused.value, CorruptDocument | NoTextFound)


def test_of_an_open_document_headings_paragraphs_items_tables_and_notes_are_read() -> None:
    row = "<table:table-row>{}</table:table-row>".format
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>".format
    rest = '<table:table-cell table:number-columns-repeated="1020"/>'
    deleted = "<text:changed-region><text:p>struck out</text:p></text:changed-region>"
    note = "<text:note-citation>1</text:note-citation><text:note-body><text:p>1 мая.</text:p></text:note-body>"
    odt = an_odt(
        f"<text:tracked-changes>{deleted}</text:tracked-changes>"
        "<text:table-of-content><text:p>Contents 1</text:p></text:table-of-content>"
        '<text:h text:outline-level="1">Аренда</text:h>'
        '<text:p>Каток <text:span>сдан</text:span> клубу<text:s text:c="2"/>до мая'
        f"<office:annotation><text:p>really?</text:p></office:annotation>.<text:note>{note}</text:note></text:p>"
        "<text:section><text:list><text:list-item><text:p>one</text:p></text:list-item>"
        "<text:list-item><text:p>two</text:p></text:list-item></text:list></text:section>"
        f"<table:table>{row(cell('year') + cell('rent') + rest)}{row(cell('2024') + cell('40,000'))}</table:table>"
    )

    document = extract(odt, ODT)

    assert told(document) == [
        ("h1", "Аренда"),
        ("prose", "Каток сдан клубу  до мая."),
        ("prose", "1 мая."),
        ("prose", "one"),
        ("prose", "two"),
        ("table", "year | rent\n2024 | 40,000"),
    ]


@pytest.mark.parametrize(
    ("odt", "refusal"),
    [
        (an_odt("<text:p>x</text:p>", "<manifest:encryption-data/>"), DocumentProtected),
        (an_odt("<text:p>x"), CorruptDocument),
        (an_odt("<text:p/>"), NoTextFound),
        (a_docx("x"), DeclaredTypeDiffers),
    ],
)
def test_what_is_no_readable_open_document_is_refused(odt: bytes, refusal: type[Rejected]) -> None:
    with pytest.raises(refusal):
        extract(odt, ODT)


def test_entities_in_an_open_document_do_not_multiply_and_fetch_nothing() -> None:
    def odt(entities: str) -> bytes:
        with zipfile.ZipFile(BytesIO(an_odt("<text:p>words &a9; &f;</text:p>"))) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        return zipped({**parts, "content.xml": f"<!DOCTYPE x [{entities}]>".encode() + parts["content.xml"]})

    many = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))

    assert extract(odt('<!ENTITY a9 ""><!ENTITY f SYSTEM "file:///etc/passwd">'), ODT).text == "words"
    with pytest.raises(CorruptDocument):
        extract(odt(f'<!ENTITY a0 "words">{many}<!ENTITY f "">'), ODT)
