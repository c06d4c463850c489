"""Text of plain text, Markdown (by markdown-it) and JSON."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from markdown_it import MarkdownIt
from markdown_it.token import Token

from memory.kps.document import Block, Composer, Document, Kind, titled
from memory.kps.errors import CorruptDocument

_PARAGRAPH = re.compile(r"\S(?:.*\S)?(?:\r?\n[^\S\n]*\S(?:.*\S)?)*")
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
_DEEPEST = 64
# A longer value is a text of its own rather than a field.
_LONG_CHARS = 200


def extract_text(text: str) -> Document:
    """Paragraphs between empty lines; the text stays as it is, so that a span of it is one of the artifact."""
    return _paragraphs_of(text, "prose")


def extract_table_text(text: str) -> Document:
    """Rows of CSV or TSV, blocks of them between empty lines; the text stays as it is."""
    return _paragraphs_of(text, "lines")


def _paragraphs_of(text: str, kind: Kind) -> Document:
    return Document(text, tuple(Block(kind, *found.span()) for found in _PARAGRAPH.finditer(text)))


def extract_markdown(text: str) -> Document:
    """Headings, prose, lists, tables, code; the markup stays, so that a span of the text is one of the artifact."""
    front = _FRONT_MATTER.match(text)
    begin = front.end() if front else 0
    blocks = list(_markdown_blocks(text, begin))
    if front:
        blocks.insert(0, Block("lines", 0, len(text[:begin].rstrip())))
    return Document(text, tuple(blocks))


def _markdown_blocks(text: str, begin: int) -> Iterator[Block]:
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


def extract_json(text: str) -> Document:
    """One value: names of objects become headings, short values lines."""
    composer = Composer()
    _add_value(composer, _parsed(text), 1)
    return composer.document()


def extract_json_lines(text: str) -> Document:
    """JSON lines: a value on each."""
    composer = Composer()
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            _add_value(composer, _parsed(line, number), 1)
    return composer.document()


def _parsed(text: str, line: int | None = None) -> Any:
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
