"""Markdown as a flat list of blocks that can be reordered and written back."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


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


_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_HEADING = re.compile(r"^(#{1,6}) (\S.*?)(?: #+)?$")
_BOLD_LINE = re.compile(r"^\*\*([^*]{2,80}?):?\*\*:?$")
_UNDERLINE = re.compile(r"^(=+|-{3,})$")
_RULE = re.compile(r"^\s*([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_ITEM = re.compile(r"^([ \t]*)([-*+•–—]|\d{1,3}[.)])[ \t]+(?=\S)(.*)$")
_MARKS_ALONE = re.compile(r"^[-*_#>\s]*$")
_LINK = re.compile(r"!?\[([^\[\]]{0,500})\]\([^()\s]{0,2000}\)")
_ENTRY = re.compile(r"[*_«“\"(]*[A-ZА-ЯЁ\d]")
_EMPTY_MARK = re.compile(r"^\s*(?:[-*+•–—]|#{1,6})\s*$")
_EMPTY_NUMBER = re.compile(r"^\s*\d{1,3}[.)]\s*$")
_CLOSING_MARKS = re.compile(r"(?:^| )#+$")
_TABLE_RULE = re.compile(r"^\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")


def parse(text: str) -> list[MarkdownBlock]:
    """Blocks of a document, without comments and front matter."""
    unified = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return list(_Reader(_COMMENT.sub("", _FRONT_MATTER.sub("", unified)).expandtabs(4).split("\n")))


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


def _are_entries(lines: Sequence[str]) -> bool:
    """Check whether lines without list marks are entries of their own rather than wrapped prose."""
    return len(lines) > 1 and all(
        len(line) <= 90 and _ENTRY.match(line) and (line[-1].isalnum() or line is lines[-1]) for line in lines
    )


class _Reader:
    """One pass over the lines; those of an unfinished block wait in `_open` until another one begins."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = list(lines)
        self._at = 0
        self._open: list[str] = []
        self._item: MarkdownBlock | None = None
        self._indents: list[int] = []

    def __iter__(self) -> Iterator[MarkdownBlock]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.strip():
                yield from self._close()
                self._at += 1
            else:
                yield from self._verbatim(line) or self._heading(line) or self._flowing(line)
        yield from self._close()

    def _verbatim(self, line: str) -> list[MarkdownBlock]:
        if fence := _FENCE.match(line):
            return self._leaf(MarkdownBlock(BlockKind.CODE, "\n".join(self._fenced(fence[1]))))
        if line.lstrip().startswith(">"):
            taken = self._while(lambda each: each.lstrip().startswith(">"))
            return self._leaf(MarkdownBlock(BlockKind.QUOTE, "\n".join(re.sub(r"^\s*> ?", "", each) for each in taken)))
        if "|" in line and "|" in self._below() and _TABLE_RULE.match(self._below()):
            return self._leaf(MarkdownBlock(BlockKind.TABLE, "\n".join(self._while(lambda each: "|" in each))))
        return []

    def _below(self) -> str:
        return self._lines[self._at + 1].strip() if self._at + 1 < len(self._lines) else ""

    def _heading(self, line: str) -> list[MarkdownBlock]:
        flat = " ".join(line.split())
        if heading := _HEADING.match(flat):
            self._at += 1
            return self._leaf(MarkdownBlock(BlockKind.HEADING, heading[2], len(heading[1])))
        if (bold := _BOLD_LINE.match(flat)) and not self._open:
            self._at += 1
            return self._leaf(MarkdownBlock(BlockKind.HEADING, bold[1].strip(), 4))
        text = _CLOSING_MARKS.sub("", flat)
        if text and (underline := _UNDERLINE.match(self._below())) and not self._open and not _ITEM.match(line):
            self._at += 2
            return self._leaf(MarkdownBlock(BlockKind.HEADING, text, 1 if underline[1][0] == "=" else 2))
        return []

    def _flowing(self, line: str) -> Iterator[MarkdownBlock]:
        self._at += 1
        if _EMPTY_MARK.match(line) or (not self._open and _EMPTY_NUMBER.match(line)):
            return
        if _RULE.match(line):
            yield from self._leaf(MarkdownBlock(BlockKind.RULE, "---"))
        elif (item := _ITEM.match(line)) and not self._interrupts(item[2]):
            yield from self._close()
            marker = item[2] if item[2][0].isdigit() else "-"
            self._item = MarkdownBlock(BlockKind.ITEM, "", self._depth(len(item[1])), marker)
            self._open = [item[3]]
        else:
            self._open.append(line)

    def _interrupts(self, marker: str) -> bool:
        """A wrapped line of prose may begin with a dash or a number."""
        return bool(self._open) and self._item is None and (marker in "–—" or marker[0] in "023456789")

    def _depth(self, indent: int) -> int:
        while self._indents and self._indents[-1] >= indent + 1:
            self._indents.pop()
        if not self._indents or self._indents[-1] < indent:
            self._indents.append(indent)
        return len(self._indents) - 1

    def _leaf(self, block: MarkdownBlock) -> list[MarkdownBlock]:
        self._indents = []
        return [*self._close(), block]

    def _close(self) -> list[MarkdownBlock]:
        lines = [" ".join(line.split()) for line in self._open]
        item, self._item, self._open = self._item, None, []
        if _MARKS_ALONE.match(" ".join(lines)):
            return []
        if item:
            return [MarkdownBlock(BlockKind.ITEM, " ".join(lines), item.level, item.marker)]
        self._indents = []
        if _are_entries(lines):
            return [MarkdownBlock(BlockKind.ITEM, line, 0, "-") for line in lines]
        return [MarkdownBlock(BlockKind.PROSE, " ".join(lines))]

    def _while(self, holds: Callable[[str], bool]) -> list[str]:
        start = self._at
        while self._at < len(self._lines) and holds(self._lines[self._at]):
            self._at += 1
        return self._lines[start : self._at]

    def _fenced(self, mark: str) -> list[str]:
        start = self._at
        self._at += 1
        while self._at < len(self._lines) and not self._lines[self._at].strip().startswith(mark):
            self._at += 1
        self._at += 1
        taken = self._lines[start : self._at]
        return taken if taken[-1].strip().startswith(mark) and len(taken) > 1 else [*taken, mark]
