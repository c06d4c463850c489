"""Changes to a text, statement by statement."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agents.models.extractive.article import as_blocks
from agents.models.extractive.review import Fault, Finding
from agents.models.extractive.source import Passage, Source
from agents.models.extractive.splitting import split
from agents.models.extractive.statements import Wording, note_begins, wording
from language.markdown import Block, Kind
from language.sentences import sentences


def apply(findings: Iterable[Finding], blocks: Sequence[Block], source: Source | None) -> list[Block]:
    """Act on what can be acted on; what asks for judgement is left to a person."""
    edited = list(blocks)
    by_wording = {wording(passage.text): passage for passage in source.passages} if source else {}
    for finding in findings:
        if finding.fault in (Fault.REPEATED, Fault.UNSUPPORTED):
            edited = remove_last(edited, finding.quote)
        elif finding.fault is Fault.LONG:
            edited = _replaced(edited, finding.quote, split(finding.quote))
        elif finding.fault is Fault.MISSING and source and (passage := by_wording.get(wording(finding.quote))):
            edited = insert(edited, passage, source)
    return without_empty_sections(edited)


def insert(blocks: Sequence[Block], passage: Passage, source: Source) -> list[Block]:
    """Put a passage where it stands in the material: after what precedes it there, with what it leans on."""
    edited = list(blocks)
    for each in source.with_support(passage):
        if not Wording(block.text for block in edited).has(each.text):
            edited = _inserted(edited, each, source)
    return edited


def remove_last(blocks: Sequence[Block], statement: str) -> list[Block]:
    """Remove a statement where it stands last, so that its first mention stays."""
    at = next((at for at in range(note_begins(blocks) - 1, -1, -1) if _says(blocks[at], statement)), None)
    if at is None:
        return list(blocks)
    said = sentences(blocks[at].text) if blocks[at].kind is Kind.PROSE else [blocks[at].text]
    last = max(index for index, sentence in enumerate(said) if wording(sentence) == wording(statement))
    left = " ".join(sentence for index, sentence in enumerate(said) if index != last)
    return [*blocks[:at], *([replace(blocks[at], text=left)] if left else []), *blocks[at + 1 :]]


def without_repeats(blocks: Sequence[Block]) -> list[Block]:
    """Say everything once, where it is said first."""
    seen: set[str] = set()
    kept: list[Block] = []
    end = note_begins(blocks)
    for block in blocks[:end]:
        if block.kind in (Kind.HEADING, Kind.RULE):
            kept.append(block)
            continue
        said = sentences(block.text) if block.kind is Kind.PROSE else [block.text]
        fresh = [each for each in dict.fromkeys(said) if wording(each) not in seen]
        seen.update(map(wording, fresh))
        if fresh:
            kept.append(block if len(fresh) == len(said) else replace(block, text=" ".join(fresh)))
    return [*kept, *blocks[end:]]


def without_empty_sections(blocks: Sequence[Block]) -> list[Block]:
    kept: list[Block] = []
    for block in blocks:
        closes = block.kind is Kind.RULE or block.kind is Kind.HEADING
        while closes and kept and _is_emptied(kept[-1], block):
            kept.pop()
        kept.append(block)
    return kept


def _is_emptied(heading: Block, following: Block) -> bool:
    if heading.kind is not Kind.HEADING or heading.level == 1:
        return False
    return following.kind is Kind.RULE or following.level <= heading.level


def _replaced(blocks: Sequence[Block], statement: str, by: Sequence[str]) -> list[Block]:
    edited = list(blocks)
    for at in range(note_begins(blocks)):
        block = blocks[at]
        if _says(block, statement):
            said = sentences(block.text) if block.kind is Kind.PROSE else [block.text]
            parts = [part for each in said for part in (by if wording(each) == wording(statement) else [each])]
            edited[at] = replace(block, text=" ".join(parts))
    return edited


def _says(block: Block, statement: str) -> bool:
    if block.kind is Kind.PROSE:
        return any(wording(sentence) == wording(statement) for sentence in sentences(block.text))
    return block.kind is not Kind.HEADING and wording(block.text) == wording(statement)


def _inserted(blocks: list[Block], passage: Passage, source: Source) -> list[Block]:
    start, end = _section(blocks, source.themes[passage.theme].heading)
    if start is None:
        heading = Block(Kind.HEADING, source.themes[passage.theme].heading, 2)
        later = {theme.heading for theme in source.themes[passage.theme + 1 :]}
        ends = (at for at, block in enumerate(blocks) if block.kind is Kind.HEADING and block.text in later)
        at = next(ends, note_begins(blocks))
        return [*blocks[:at], heading, *as_blocks([passage]), *blocks[at:]]
    before = [each for each in source.of_theme(passage.theme) if each.place < passage.place]
    for neighbour in reversed(before):
        for at in range(start, end):
            if Wording([blocks[at].text]).has(neighbour.text):
                return _after(blocks, at, neighbour, passage)
    return [*blocks[:start], *as_blocks([passage]), *blocks[start:]]


def _after(blocks: list[Block], at: int, neighbour: Passage, passage: Passage) -> list[Block]:
    block = blocks[at]
    if block.kind is passage.kind is Kind.PROSE and neighbour.paragraph == passage.paragraph:
        said = sentences(block.text)
        end = next(index for index in range(len(said)) if Wording(said[: index + 1]).has(neighbour.text))
        said.insert(end + 1, passage.text)
        return [*blocks[:at], replace(block, text=" ".join(said)), *blocks[at + 1 :]]
    return [*blocks[: at + 1], *as_blocks([passage]), *blocks[at + 1 :]]


def _section(blocks: Sequence[Block], heading: str) -> tuple[int | None, int]:
    """Where a section's text begins and ends; what has no heading stands before the first one."""
    limit = note_begins(blocks)
    headings = [at for at in range(limit) if blocks[at].kind is Kind.HEADING and blocks[at].level > 1]
    if not heading:
        begin = 1 if blocks and blocks[0].kind is Kind.HEADING and blocks[0].level == 1 else 0
        return begin, headings[0] if headings else limit
    start = next((at for at in headings if blocks[at].text == heading), None)
    if start is None:
        return None, limit
    return start + 1, next((at for at in headings if at > start), limit)
