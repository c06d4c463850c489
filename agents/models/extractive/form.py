"""The form of a text: what its own writer checks before handing it on."""

from collections.abc import Sequence
from dataclasses import replace

from agents.models.extractive.article import with_note
from agents.models.extractive.demands import words_asked
from agents.models.extractive.editing import insert, without_empty_sections, without_repeats
from agents.models.extractive.phrases import phrases_in
from agents.models.extractive.selection import alike
from agents.models.extractive.source import Passage, Source
from agents.models.extractive.statements import Wording, note_begins, statements, wording
from language.markdown import Block, Kind
from language.sentences import sentences
from language.words import first_words, words

_LONGEST_PARAGRAPH_WORDS = 90


def remarks_on(blocks: Sequence[Block], source: Source) -> list[str]:
    """What is wrong, each of which `mend` puts right: so one revision is enough."""
    phrases = phrases_in(source.language)
    found: list[str] = []
    if not blocks or blocks[0].kind is not Kind.HEADING or blocks[0].level != 1:
        found.append(phrases.no_title)
    if note_begins(blocks) == len(blocks):
        found.append(phrases.no_note)
    found += [phrases.said_twice.format(quote=first_words(text, 12)) for text in _twice(blocks)]
    found += [
        phrases.long_paragraph.format(quote=first_words(block.text, 8))
        for block in blocks[: note_begins(blocks)]
        if _is_long(block)
    ]
    if short := _shortfall(blocks, source):
        found.append(phrases.too_short.format(words=short[0], least=short[1]))
    found += [phrases.thin_section.format(section=heading) for heading, _ in _thin(blocks, source)]
    return found


def mend(blocks: Sequence[Block], source: Source) -> list[Block]:
    mended = list(blocks)
    mended = without_repeats(mended)
    for _, passage in _thin(mended, source):
        mended = insert(mended, passage, source)
    mended = _lengthened(mended, source)
    end = note_begins(mended)
    mended = [*(part for block in mended[:end] for part in _divided(block)), *mended[end:]]
    if not mended or mended[0].kind is not Kind.HEADING or mended[0].level != 1:
        mended.insert(0, Block(Kind.HEADING, source.title or phrases_in(source.language).untitled, 1))
    return with_note(without_empty_sections(mended), source)


def _twice(blocks: Sequence[Block]) -> list[str]:
    seen: set[str] = set()
    repeated: list[str] = []
    for statement in statements(blocks):
        if wording(statement.text) in seen:
            repeated.append(statement.text)
        seen.add(wording(statement.text))
    return repeated


def _is_long(block: Block) -> bool:
    is_long = block.kind is Kind.PROSE and len(words(block.text)) > _LONGEST_PARAGRAPH_WORDS
    return is_long and len(sentences(block.text)) > 1


def _divided(block: Block) -> list[Block]:
    if not _is_long(block):
        return [block]
    total = len(words(block.text))
    share = total / -(-total // _LONGEST_PARAGRAPH_WORDS)
    parts: list[str] = []
    for sentence in sentences(block.text):
        grown = f"{parts[-1]} {sentence}" if parts else sentence
        if parts and len(words(parts[-1])) < share and len(words(grown)) <= _LONGEST_PARAGRAPH_WORDS:
            parts[-1] = grown
        else:
            parts.append(sentence)
    return [replace(block, text=part) for part in parts]


def _thin(blocks: Sequence[Block], source: Source) -> list[tuple[str, Passage]]:
    """Sections with a single statement, each with the weightiest one to add."""
    said = list(statements(blocks))
    unsaid = _unsaid(blocks, source)
    found: list[tuple[str, Passage]] = []
    for theme, described in enumerate(source.themes):
        left = [passage for passage in unsaid if passage.theme == theme]
        if left and described.heading and sum(each.section == described.heading for each in said) == 1:
            found.append((described.heading, left[0]))
    return found


def _shortfall(blocks: Sequence[Block], source: Source) -> tuple[int, int] | None:
    """The length and the least length asked for, when the material could fill the gap."""
    asked = words_asked(list(source.demands))
    length = sum(each.length_words for each in statements(blocks))
    return (length, asked[0]) if asked and length < asked[0] and _unsaid(blocks, source) else None


def _lengthened(blocks: list[Block], source: Source) -> list[Block]:
    while _shortfall(blocks, source):
        blocks = insert(blocks, _unsaid(blocks, source)[0], source)
    return blocks


def _unsaid(blocks: Sequence[Block], source: Source) -> list[Passage]:
    """What the text leaves out, the weightiest first."""
    said = list(statements(blocks))
    whole = Wording(statement.text for statement in said)
    left = [
        passage
        for passage in source.passages
        if passage.may_be_told
        and not whole.has(passage.text)
        and not any(alike(passage.terms, each.terms) for each in said)
    ]
    return sorted(left, key=lambda passage: (-passage.weight, passage.place))
