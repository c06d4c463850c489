"""Markdown as a flat list of blocks that can be reordered and written back: CommonMark with tables, by markdown-it-py.

A list item is a block with its depth. As in chats, items also begin with •, – or —, a line in bold is a heading, and
short lines without marks are items.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token


class BlockKind(StrEnum):
    HEADING = "heading"
    PROSE = "prose"
    ITEM = "item"
    TABLE = "table"
    CODE = "code"
    QUOTE = "quote"
    RULE = "rule"


@dataclass(frozen=True)
class MarkdownBlock:
    """A piece of a document; prose, items and headings are one line each, the rest is kept as written."""

    kind: BlockKind
    text: str
    level: int = 0  # of a heading; the depth of an item
    marker: str = ""  # of an item: "-" or its number


# The line after the mark is not empty: a document may begin with a rule.
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?=[ \t]*\S).*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_BOLD_LEVEL = 4
_BOLD_LINE = re.compile(r" *\*\*([^*]{2,80}?):?\*\*:? *")
_ITEM = re.compile(r"( *)([-*+•–—]|\d{1,3}[.)])(?: +(\S.*)| *)")
_QUOTE_MARK = re.compile(r"^ *> ?", re.MULTILINE)
_MARKS_ALONE = re.compile(r"[-*_#>\s]*")
_CLOSING_MARKS = re.compile(r"(?: #+)+$")
_FENCE = re.compile(r"^ *(?:`{3,}|~{3,}).*$", re.MULTILINE)
_TABLE_RULE = re.compile(r"^[ |:-]*-[ |:-]*$", re.MULTILINE)
_CELL_MARK = re.compile(r"(?<!\\)\|")
_LINK = re.compile(r"!?\[([^\[\]]{0,500})\]\([^()\s]{0,2000}\)")
_ENTRY = re.compile(r"[*_«“\"(]*[A-ZА-ЯЁ\d]")
_LONGEST_ENTRY_CHARS = 90


def parse(text: str) -> list[MarkdownBlock]:
    """Blocks of a document, without comments and front matter."""
    unified = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    source = _COMMENT.sub("", _FRONT_MATTER.sub("", unified)).expandtabs(4) + "\n"
    lines = source.split("\n")
    tokens = _READER.parse(source)
    blocks: list[MarkdownBlock] = []
    indents: list[int] = []  # of the items that the next one may belong to
    for token, following in pairwise([*tokens, *tokens[-1:]]):
        if token.level or not token.map:
            continue
        for block in _blocks(token, token.content or following.content, lines[slice(*token.map)]):
            is_item = block.kind is BlockKind.ITEM
            indents = [indent for indent in indents if is_item and indent < block.level]
            blocks.append(replace(block, level=len(indents)) if is_item else block)
            indents += [block.level] * is_item
    return blocks


def render(blocks: Sequence[MarkdownBlock]) -> str:
    """Write a document back: one empty line between blocks, none inside a list; numbered items count up."""
    lines: list[str] = []
    numbers: dict[int, int] = {}
    for at, block in enumerate(blocks):
        if not (at and _continues_list(blocks[at - 1], block)):
            numbers = {}
            lines += [""] * (at > 0)
        lines.append(_written(_numbered(block, numbers)))
    return "\n".join(lines) + "\n" if lines else ""


def plain(text: str) -> str:
    """A line without its Markdown marks."""
    unlinked = _LINK.sub(r"\1", text)
    return " ".join(re.sub(r"\*\*|__|[*`]|(?<!\w)_|_(?!\w)", "", unlinked).split())


def plain_document(text: str) -> str:
    """The words of a document in one line, without its marks."""
    return " ".join(plain(_unmarked(block)) for block in parse(text))


def _unmarked(block: MarkdownBlock) -> str:
    """The text of a block without the marks of its kind; the cells of a table one after the other."""
    match block.kind:
        case BlockKind.CODE:
            return _FENCE.sub("", block.text)
        case BlockKind.TABLE:
            return _CELL_MARK.sub(" ", _TABLE_RULE.sub("", block.text)).replace("\\|", "|")
        case _:
            return block.text


def quoted(text: str) -> str:
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


def _continues_list(before: MarkdownBlock, block: MarkdownBlock) -> bool:
    is_same_sort = bool(block.level or before.level) or before.marker[:1].isdigit() == block.marker[:1].isdigit()
    return before.kind is block.kind is BlockKind.ITEM and is_same_sort


def _numbered(block: MarkdownBlock, numbers: dict[int, int]) -> MarkdownBlock:
    if not block.marker[:1].isdigit():
        return block
    numbers[block.level] = numbers.get(block.level, int(block.marker.rstrip(".)")) - 1) + 1
    for deeper in [level for level in numbers if level > block.level]:
        del numbers[deeper]
    return replace(block, marker=f"{numbers[block.level]}.")


def _written(block: MarkdownBlock) -> str:
    if block.kind is BlockKind.HEADING:
        return f"{'#' * block.level} {block.text}"
    if block.kind is BlockKind.ITEM:
        return f"{'    ' * block.level}{block.marker} {block.text}"
    if block.kind is BlockKind.QUOTE:
        return quoted(block.text)
    return block.text


def _blocks(token: Token, content: str, lines: Sequence[str]) -> Iterator[MarkdownBlock]:
    """Blocks of one token, none if it is empty; the level of an item is its indentation."""
    text = _flat(content)
    match token.type:
        case "fence":
            yield MarkdownBlock(BlockKind.CODE, f"{token.markup}{token.info}\n{token.content}{token.markup}")
        case "blockquote_open":
            yield MarkdownBlock(BlockKind.QUOTE, _QUOTE_MARK.sub("", "\n".join(lines).rstrip()))
        case "table_open":
            yield MarkdownBlock(BlockKind.TABLE, "\n".join(lines))
        case "hr":
            yield MarkdownBlock(BlockKind.RULE, "---")
        case "paragraph_open" if _are_entries(lines):
            yield from (MarkdownBlock(BlockKind.ITEM, _flat(line), 0, "-") for line in lines)
        case _ if _MARKS_ALONE.fullmatch(text):
            return
        case "item":
            yield MarkdownBlock(BlockKind.ITEM, text, token.meta["indent"], token.markup)
        case "paragraph_open" if bold := _BOLD_LINE.fullmatch(text):
            yield MarkdownBlock(BlockKind.HEADING, bold[1].strip(), _BOLD_LEVEL)
        case "paragraph_open":
            yield MarkdownBlock(BlockKind.PROSE, text)
        case _:
            yield MarkdownBlock(BlockKind.HEADING, _CLOSING_MARKS.sub("", text), int(token.tag[1:]))


def _are_entries(lines: Sequence[str]) -> bool:
    """Check whether lines without list marks are entries of their own rather than wrapped prose."""
    flat = [_flat(line) for line in lines]
    return len(flat) > 1 and all(
        len(line) <= _LONGEST_ENTRY_CHARS and _ENTRY.match(line) and (line[-1].isalnum() or line is flat[-1])
        for line in flat
    )


def _flat(text: str) -> str:
    return " ".join(text.split())


def _line(state: StateBlock, number: int) -> str:
    return state.getLines(number, number + 1, 0, False)


def _read_item(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A rule of the reader: an item with the lines that continue it."""
    item = _ITEM.fullmatch(_line(state, start))
    # A wrapped line of prose may begin with a dash or a number.
    if not item or (silent and (not item[3] or item[2] in "–—" or item[2][0] in "023456789")):
        return False
    if silent:
        return True
    others = state.md.block.ruler.getRules("paragraph")
    state.line = start + 1
    while (
        item[3]
        and state.line < end
        and not (
            state.isEmpty(state.line)
            or _ITEM.fullmatch(_line(state, state.line))
            or any(begins(state, state.line, end, True) for begins in others)
        )
    ):
        state.line += 1
    token = state.push("item", "", 0)
    token.map = [start, state.line]
    token.content = state.getLines(start, state.line, 0, False)[item.end(2) :]
    token.markup = item[2] if item[2][0].isdigit() else "-"
    token.meta = {"indent": len(item[1])}
    return True


def _read_bold_line(state: StateBlock, start: int, _end: int, _silent: bool) -> bool:
    """A rule of the reader: a line in bold is a heading."""
    bold = _BOLD_LINE.fullmatch(_line(state, start))
    if bold:
        state.line = start + 1
        token = state.push("bold_line", f"h{_BOLD_LEVEL}", 0)
        token.map = [start, state.line]
        token.content = bold[1]
    return bool(bold)


_READER = MarkdownIt("commonmark").enable("table").disable(["code", "reference", "html_block", "inline"])
_READER.block.ruler.at("list", _read_item, {"alt": ["paragraph", "blockquote"]})
_READER.block.ruler.after("heading", "bold_line", _read_bold_line)
