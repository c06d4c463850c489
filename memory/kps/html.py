"""Visible text of HTML, by the parser of the standard library."""

import re
from html.parser import HTMLParser

from memory.kps.document import Composer, Document

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
_SOFT_HYPHEN = "\xad"


def extract_html(text: str) -> Document:
    """Headings, paragraphs, items, rows of tables."""
    page = _Page()
    page.feed(text)
    page.close()
    return page.finished()


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._composer = Composer()
        self._words: list[str] = []
        self._rows: list[str] = []
        self._level = 0
        self._is_item = False
        self._unseen: list[str] = []
        self._preformatted = self._tables = 0
        self._has_heading = False
        self._in_title = False
        self._title = ""

    def finished(self) -> Document:
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
            self._words.append(" | " if self._text() else "")
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

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._title += data
        elif not self._unseen:
            data = data.replace(_SOFT_HYPHEN, "")
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
        text, self._words = self._text(), []
        if text.strip(" |"):
            self._rows.append(text)

    def _flush_rows(self) -> None:
        if not self._tables and self._rows:
            self._entitle()
            self._composer.lines("\n".join(self._rows))
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
