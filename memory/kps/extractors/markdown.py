"""Markdown, by markdown-it: the text as it is, headings told from the rest."""

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from memory.kps.document import Block, Document, Kind, titled

_FRONT_MATTER = re.compile(r"---[^\S\n]*\n.*?\n(?:---|\.\.\.)[^\S\n]*(?:\n|\Z)", re.DOTALL)
# As the parser counts lines; str.splitlines knows more of them.
_LINE_END = re.compile(r"\r\n?|\n")
_KINDS: dict[str, Kind] = {
    "paragraph_open": "prose",
    "blockquote_open": "prose",
    "bullet_list_open": "lines",
    "ordered_list_open": "lines",
    "table_open": "lines",
    "fence": "lines",
    "code_block": "lines",
    "html_block": "prose",
}


def extract(text: str) -> Document:
    """The markup stays in the text, so that a span of it is one of the artifact."""
    front = _FRONT_MATTER.match(text)
    begin = front.end() if front else 0
    blocks = list(_blocks(text, begin))
    if front:
        blocks.insert(0, Block("lines", 0, len(text[:begin].rstrip())))
    return Document(text, tuple(blocks))


def _blocks(text: str, begin: int) -> Iterator[Block]:
    starts = [begin, *(found.end() for found in _LINE_END.finditer(text, begin))]
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
    return titled("".join(word.content if word.type in ("text", "code_inline") else " " for word in words))
