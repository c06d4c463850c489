"""Rich text from the bus: Markdown and JSON as HTML in which nothing runs or is fetched, highlights, differences."""

import html
import json
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from gateway.ui.components import text
from language.words import stems


class _TooLaborious(Exception):
    """The layout of a text takes longer than the gateway can serve nobody else."""


class _Parser(MarkdownIt):
    """CommonMark with tables, strikethrough and line breaks as written; HTML stays text, unsafe links lead nowhere."""

    def __init__(self) -> None:
        super().__init__("js-default", {"html": False, "breaks": True, "linkify": False, "typographer": False})
        self.add_render_rule("image", _as_link)
        # Rules that match nothing, asked before all others: of each line and of each mark in it.
        ends = ["paragraph", "reference", "blockquote", "list"]
        self.block.ruler.before("table", "budget", _count_look, {"alt": ends})
        self.inline.ruler.before("text", "budget", _count_look)

    def layout(self, content: str) -> str:
        """HTML. Raises _TooLaborious; RecursionError where it is nested too deep."""
        return str(self.render(content, {_LOOKS_LEFT: _MOST_LOOKS}))

    def validateLink(self, url: str) -> bool:  # noqa: N802  # the library's hook
        return True

    def normalizeLink(self, url: str) -> str:  # noqa: N802  # the library's hook
        return super().normalizeLink(url) if super().validateLink(url) else "#"


def markdown(content: str, classes: str = "") -> Element:
    """An element that shows Markdown; the browser's own sanitiser has the last word."""
    return ui.html(as_html(content), sanitize=True).classes(f"mb-md {classes}")


@lru_cache(maxsize=500)
def as_html(content: str) -> str:
    """HTML of Markdown; a picture is a link, since showing it would tell its server who reads.

    A text that is long, nested too deep or would take too long to lay out is shown as written.
    """
    is_short = len(content) <= _MOST_CHARS
    if is_short and all(sum(map(content.count, marks)) <= most for marks, most in _MOST_MARKS.items()):
        with suppress(RecursionError, _TooLaborious):
            return _PARSER.layout(content)
    return f'<pre class="mb-plain">{escapeHtml(content)}</pre>'


def _count_look(state: StateBlock | StateInline, *_at: object) -> Any:
    state.env[_LOOKS_LEFT] -= 1
    if state.env[_LOOKS_LEFT] < 0 or len(state.tokens) > _MOST_TOKENS:
        raise _TooLaborious
    return False


def _as_link(_: RendererHTML, tokens: Sequence[Token], at: int, *_args: Any) -> str:
    address = escapeHtml(str(tokens[at].attrs["src"]))
    return f'<a href="{address}">{escapeHtml(tokens[at].content)}</a>'


_PARSER: Final = _Parser()
_LOOKS_LEFT: Final = "looks_left"
# Counted, not timed, so that a text is laid out or not whatever else the machine does. 64,000 characters of our own
# documentation take up to 5,000 looks; no text within these bounds takes 100 ms, while the gateway serves nobody else.
_MOST_LOOKS = 7_000
_MOST_TOKENS = 12_000
_MOST_CHARS = 64_000
# Those that stay open are paired in quadratic time.
_MOST_MARKS = {"*_~": 6_000, "[": 3_000}


def json_view(value: object) -> Element:
    return ui.html(coloured_json(value), tag="pre").classes("mb-json")


def coloured_json(value: object) -> str:
    """Indented JSON as escaped HTML with names, strings and numbers marked."""
    lines = []
    for line in json.dumps(value, ensure_ascii=False, indent=2).splitlines():
        name, colon, content = line.partition('": ')
        if not colon or not name.lstrip().startswith('"'):
            name, content = "", line
        shown = f"<b>{html.escape(name)}&quot;</b>: " if name else ""
        mark = (
            "i" if content.lstrip().startswith('"') else "u" if content.strip(" ,")[:1] in "-0123456789tfn" else "span"
        )
        lines.append(f"{shown}<{mark}>{html.escape(content)}</{mark}>")
    return "\n".join(lines)


Look = Literal["plain", "asked", "added", "struck"]

_WORD = re.compile(r"\w+(?:[-'’.]\w+)*")
_TOKEN = re.compile(r"\S+\s*|\s+")
_BEFORE = 60
_MAX_COMPARED = 4000


class HighlightedText(NamedTuple):
    """A part of a text with its look."""

    text: str
    look: Look = "plain"


def highlight(content: str, query_words: Collection[str]) -> list[HighlightedText]:
    """The text with these words marked in any inflected form."""
    query_stems = {stem for word in query_words for stem in stems(word)}
    pieces: list[HighlightedText] = []
    end = 0
    for match in _WORD.finditer(content) if query_stems else ():
        if query_stems & set(stems(match[0])):
            pieces += [HighlightedText(content[end : match.start()]), HighlightedText(match[0], "asked")]
            end = match.end()
    return [piece for piece in (*pieces, HighlightedText(content[end:])) if piece.text]


def excerpt(content: str, query_words: Collection[str], length: int) -> list[HighlightedText]:
    """One line around the first marked word, at most `length` characters."""
    line = " ".join(content.split())
    at = 0
    for piece in highlight(line, query_words):
        if piece.look == "asked":
            break
        at += len(piece.text)
    start = 0 if at >= len(line) or len(line) <= length else max(0, min(at - _BEFORE, len(line) - length))
    # Not in the middle of a word.
    start = line.find(" ", start) + 1 if start else 0
    shown = line[start : start + length]
    return highlight(("…" if start else "") + shown + ("…" if start + length < len(line) else ""), query_words)


def text_diff(before: str, after: str) -> list[HighlightedText]:
    """Deleted and inserted parts; of a long text only the new version."""
    if max(len(before), len(after)) > _MAX_COMPARED:
        return [HighlightedText(after)]
    return list(_difference(_TOKEN.findall(before), _TOKEN.findall(after)))


def show_text(pieces: Collection[HighlightedText]) -> list[TextElement]:
    return [text(piece.text, _CLASSES[piece.look], _TAGS[piece.look]) for piece in pieces]


def _difference(before: list[str], after: list[str]) -> Iterator[HighlightedText]:
    for kind, start, end, other_start, other_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            yield HighlightedText("".join(before[start:end]))
            continue
        if start < end:
            yield HighlightedText("".join(before[start:end]), "struck")
        if other_start < other_end:
            yield HighlightedText("".join(after[other_start:other_end]), "added")


_CLASSES = {"plain": "", "asked": "mb-asked", "added": "mb-added", "struck": "mb-struck"}
_TAGS = {"plain": "span", "asked": "mark", "added": "ins", "struck": "del"}
