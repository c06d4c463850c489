"""PDF, by pypdf: pages, paragraphs by their last lines, headings by the outline."""

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from io import BytesIO
from itertools import zip_longest
from typing import Any, NamedTuple

from pypdf import PdfReader
from pypdf.errors import DependencyError, PyPdfError

from memory.kps.document import Composer, CorruptDocument, Document, DocumentProtected

_MAX_PAGES = 20_000
_BULLET = re.compile(r"\s*(?:[•▪●–—*-]|\d{1,3}[.)])\s")
_ENDS = (".", "!", "?", "…", ":", ";", ".»", ".”", '."')
# A last line is shorter than the others, since whoever sets type fills all others.
_SHORT = 0.8
# So few may be all that a page says.
_FEW_LINES = 2
_NUMBER = re.compile(r"\d+")
# Letters that were drawn as one are searched for as two.
_LETTERS = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "\xad": "-"})
_HYPHENATED = re.compile(r"\w-$")


class _Heading(NamedTuple):
    page: int
    title: str


def extract_pdf(content: bytes) -> Document:
    """Lines joined to paragraphs, each with its page."""
    try:
        reader = PdfReader(BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise DocumentProtected
        return _read(reader)
    except DependencyError as encrypted:
        raise DocumentProtected from encrypted
    except PyPdfError as broken:
        raise CorruptDocument(reason=str(broken)) from broken


def _read(reader: PdfReader) -> Document:
    composer, levels = Composer(), _headings(reader)
    texts = (page.extract_text().translate(_LETTERS).strip() for page in reader.pages[:_MAX_PAGES])
    pages = [[" ".join(line.split()) for line in text.splitlines()] for text in texts]
    for number, lines in enumerate(_without_furniture(pages), 1):
        titles = {heading.title for heading in levels if heading.page == number}
        for paragraph in _paragraphs(lines, titles):
            level = levels.get(_Heading(number, _plain(paragraph)))
            if level is None:
                composer.prose(paragraph, number)
            else:
                composer.heading(paragraph, level, number)
    return composer.document()


def _without_furniture(pages: Sequence[list[str]]) -> Iterator[list[str]]:
    """Pages without running heads and feet: lines that most pages share, but for numbers at the foot."""
    heads = _of_most([lines[0] for lines in pages if len(lines) > _FEW_LINES], pages)
    feet = _of_most([_numberless(lines[-1]) for lines in pages if len(lines) > _FEW_LINES], pages)
    for lines in pages:
        is_long = len(lines) > _FEW_LINES
        first = 1 if is_long and lines[0] in heads else 0
        last = len(lines) - 1 if is_long and _numberless(lines[-1]) in feet else len(lines)
        yield lines[first:last]


def _of_most(lines: Sequence[str], pages: Sequence[list[str]]) -> set[str]:
    return {line for line, times in Counter(lines).items() if times >= max(3, len(pages) / 2)}


def _numberless(line: str) -> str:
    """Above a page, a number tells chapters apart; below it, pages."""
    return _NUMBER.sub("0", line)


def _headings(reader: PdfReader) -> dict[_Heading, int]:
    """Levels of the headings to which the outline leads, by page and title."""
    levels: dict[_Heading, int] = {}
    pending: list[tuple[Any, int]] = [(reader.outline, 1)]
    while pending:
        entries, level = pending.pop()
        for entry in entries:
            if isinstance(entry, list):
                pending.append((entry, level + 1))
            else:
                page = reader.get_destination_page_number(entry)
                if page is not None:
                    levels[_Heading(page + 1, _plain(str(entry.title)))] = min(level, 6)
    return levels


def _paragraphs(lines: Sequence[str], titles: Container[str]) -> Iterator[str]:
    usual = sorted(map(len, lines))[len(lines) * 3 // 4] if lines else 0
    paragraph = ""
    for line, following in zip_longest(lines, lines[1:], fillvalue=""):
        paragraph = _join_lines(paragraph, line)
        is_last = line.endswith(_ENDS) and len(line) < usual * _SHORT
        is_title = _plain(paragraph) in titles or _plain(following) in titles
        if is_last or is_title or not line or not following or _begins_anew(line, following, usual):
            if paragraph:
                yield paragraph
            paragraph = ""


def _begins_anew(line: str, following: str, usual: int) -> bool:
    """An item of a list; whatever comes after a heading, which is short, ends without a mark, goes on in a capital."""
    is_like_a_heading = len(line) < usual * _SHORT and line[-1].isalnum() and not following[0].islower()
    return bool(_BULLET.match(following)) or is_like_a_heading


def _join_lines(paragraph: str, line: str) -> str:
    if _HYPHENATED.search(paragraph) and line[:1].islower():
        return paragraph[:-1] + line
    return f"{paragraph} {line}".strip()


def _plain(title: str) -> str:
    return "".join(title.split()).casefold()
