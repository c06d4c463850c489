"""Extraction from plain text, Markdown (by markdown-it), JSON and HTML."""

import json
import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from typing import Any, NoReturn

from markdown_it import MarkdownIt
from markdown_it.token import Token

from memory.kps.document import Block, Composer, CorruptDocument, Document, Kind, title_of

_PARAGRAPH = re.compile(r"\S(?:.*\S)?(?:\r?\n[^\S\n]*\S(?:.*\S)?)*")
_FRONT_MATTER = re.compile(r"---[^\S\n]*\n.*?\n(?:---|\.\.\.)[^\S\n]*(?:\n|\Z)", re.DOTALL)
# As the parser counts lines; str.splitlines knows more of them.
_LINE_END = re.compile(r"\r\n?|\n")
_KINDS: dict[str, Kind] = {
    "paragraph_open": "prose",
    "blockquote_open": "prose",
    "bullet_list_open": "lines",
    "ordered_list_open": "lines",
    "table_open": "table",
    "fence": "lines",
    "code_block": "lines",
    "html_block": "prose",
}
_DEEPEST = 64
# A longer value is a text of its own rather than a field.
_LONG_CHARS = 200


def extract_text(text: str) -> Document:
    """Paragraphs between empty lines; the text stays as it is, so that a span of it is one of the artifact."""
    return Document(text, tuple(Block("prose", *match.span()) for match in _PARAGRAPH.finditer(text)))


def extract_table_text(text: str) -> Document:
    """Rows of CSV or TSV, the first of which names the columns; the text stays as it is."""
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    return Document(text, (Block("table", start, end),) if start < end else ())


def extract_markdown(text: str) -> Document:
    """Headings, prose, lists, tables, code; the markup stays, so that a span of the text is one of the artifact."""
    front = _FRONT_MATTER.match(text)
    begin = front.end() if front else 0
    blocks = list(_markdown_blocks(text, begin))
    if front:
        blocks.insert(0, Block("lines", 0, len(text[:begin].rstrip())))
    return Document(text, tuple(blocks))


def _markdown_blocks(text: str, begin: int) -> Iterator[Block]:
    starts = [begin, *(match.end() for match in _LINE_END.finditer(text, begin))]
    tokens = MarkdownIt("commonmark").enable("table").parse(text[begin:])
    for position, token in enumerate(tokens):
        if token.level or token.map is None:
            continue
        start = starts[token.map[0]]
        end = starts[token.map[1]] if token.map[1] < len(starts) else len(text)
        end = start + len(text[start:end].rstrip())
        if token.type == "heading_open":
            yield Block("heading", start, end, int(token.tag[1:]), _title(tokens, position))
        elif token.type in _KINDS and end > start:
            yield Block(_KINDS[token.type], start, end)


def _title(tokens: Sequence[Token], position: int) -> str:
    words = tokens[position + 1].children or []
    return title_of("".join(word.content if word.type in ("text", "code_inline") else " " for word in words))


def extract_json(text: str) -> Document:
    """One value: names of objects become headings, short values lines."""
    composer = Composer()
    _add_value(composer, _parse(text), 1)
    return composer.document()


def extract_json_lines(text: str) -> Document:
    """JSON lines: a value on each."""
    composer = Composer()
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            _add_value(composer, _parse(line, number), 1)
    return composer.document()


def _parse(text: str, line: int | None = None) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as broken:
        where = f"line {line}: " if line else ""
        raise CorruptDocument(reason=f"not JSON: {where}{broken}") from broken


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _add_value(composer: Composer, value: Any, depth: int) -> None:
    if depth > _DEEPEST:
        raise CorruptDocument(reason=f"nested deeper than {_DEEPEST} levels")
    if isinstance(value, dict):
        _add_object(composer, value, depth)
    elif isinstance(value, list):
        if all(_is_short(member) for member in value):
            composer.lines("\n".join(map(_text_of, value)))
            return
        for member in value:
            _add_value(composer, member, depth + 1)
    else:
        composer.prose(_text_of(value))


def _add_object(composer: Composer, members: dict[str, Any], depth: int) -> None:
    short = {name: value for name, value in members.items() if _is_short(value)}
    composer.lines("\n".join(f"{name}: {_text_of(value)}" for name, value in short.items() if value is not None))
    for name, value in members.items():
        if name not in short and value not in ([], {}):
            composer.heading(name, min(depth, 6))
            _add_value(composer, value, depth + 1)


def _is_short(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONG_CHARS and "\n" not in value
    return not isinstance(value, dict | list)


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)


_SPACE = re.compile(r"[ \t\r\n\f\xa0]+")
_UNSEEN = {"script", "style", "template", "noscript", "nav", "svg", "math", "select", "button", "iframe", "object"}
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
# fmt: off
_BREAKS = {
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog",
    "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "html", "legend",
    "li", "main", "ol", "p", "section", "summary", "table", "ul",
}
# fmt: on


def extract_html(text: str) -> Document:
    page = _Page()
    page.feed(text)
    page.close()
    return page.finish()


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._composer = Composer()
        self._words: list[str] = []
        self._rows: list[str] = []
        self._cells = 0
        self._level = 0
        self._is_item = False
        self._unseen: list[str] = []
        self._preformatted = self._tables = 0
        self._has_heading = False
        self._in_title = False
        self._title = ""

    def finish(self) -> Document:
        if self._tables:
            self._flush_row()
            self._tables = 0
        self._flush()
        self._flush_rows()
        return self._composer.document()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._unseen or tag in _UNSEEN:
            if tag in _UNSEEN:
                self._unseen.append(tag)
            return
        if tag == "title":
            self._in_title = not self._title
        elif tag == "br":
            self._words.append("\n")
        elif tag in _HEADINGS:
            self._flush()
            self._level = 0 if self._tables else _HEADINGS[tag]
        elif tag == "pre":
            self._flush()
            self._preformatted += 1
        elif tag in ("td", "th"):
            self._words.append(" | " if self._cells else "")
            self._cells += 1
        elif tag == "tr":
            self._flush_row()
        elif tag in _BREAKS:
            self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._unseen:
            if tag in self._unseen:
                del self._unseen[self._unseen.index(tag) :]
            return
        if tag == "title":
            self._in_title = False
        elif tag in _HEADINGS:
            self._flush()
        elif tag == "pre":
            self._flush()
            self._preformatted = max(0, self._preformatted - 1)
        elif tag == "tr":
            self._flush_row()
        elif tag == "table":
            self._flush_row()
            self._tables = max(0, self._tables - 1)
            self._flush_rows()
        elif tag in _BREAKS:
            self._flush()

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """Skip `<![…` that is no section, as browsers do."""
        try:
            return super().parse_marked_section(i, report)
        except AssertionError:
            return self.parse_bogus_comment(i)

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._title += data
        elif not self._unseen:
            self._words.append(data if self._preformatted else _SPACE.sub(" ", data))

    def _break(self, tag: str) -> None:
        if tag == "table":
            self._flush()
            self._tables += 1
        elif self._tables:
            self._words.append(" ")
        elif tag == "p" and self._is_item and not self._text():
            # The paragraph is the item's own.
            return
        else:
            self._flush()
            self._is_item = tag == "li"

    def _flush(self) -> None:
        if self._tables:
            self._words.append(" ")
            return
        text, self._words = self._text(), []
        level, self._level = self._level, 0
        is_item, self._is_item = self._is_item, False
        if not text:
            return
        if level:
            self._has_heading = True
            self._composer.heading(text, level)
        elif self._preformatted:
            self._composer.lines(text)
        else:
            self._entitle()
            self._composer.prose(f"- {text}" if is_item else text, is_item=is_item)

    def _flush_row(self) -> None:
        text, self._words, self._cells = self._text(), [], 0
        if text.strip(" |"):
            self._rows.append(text)

    def _flush_rows(self) -> None:
        if not self._tables and self._rows:
            self._entitle()
            self._composer.table("\n".join(self._rows))
            self._rows = []

    def _entitle(self) -> None:
        """A page that begins without a heading has its title for one."""
        if not self._has_heading and self._title.strip():
            self._has_heading = True
            self._composer.heading(_SPACE.sub(" ", self._title), 1)

    def _text(self) -> str:
        text = "".join(self._words)
        if self._preformatted:
            return text.strip("\n")
        return "\n".join(line for part in text.split("\n") if (line := _SPACE.sub(" ", part).strip()))
