"""An article made of passages: title, lead, sections, a note on where the words come from."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agents.models.extractive.angles import Angle, lead, theme_name
from agents.models.extractive.phrases import phrases_in
from agents.models.extractive.selection import select
from agents.models.extractive.source import Passage, Source
from agents.models.extractive.statements import Wording, note_begins, statements
from language.markdown import Block, Kind

# What the material leaves open, an article on it should not hide.
_MOST_QUESTIONS = 3


def compose(source: Source, angle: Angle | None, length_words: int) -> list[Block]:
    """Write the article along the angle; no statement stands in it twice."""
    phrases = phrases_in(source.language)
    blocks = [Block(Kind.HEADING, source.title or phrases.untitled, 1)]
    if angle is None:
        return [*blocks, Block(Kind.PROSE, f"*{phrases.no_facts}*")]
    moved = [passage for passage in lead(source) if source.themes[passage.theme].heading]
    questions = [each for each in source.passages if each.is_question and each.theme in angle.themes][:_MOST_QUESTIONS]
    asked = {each.place for question in questions for each in source.with_support(question)}
    chosen = select(source, angle.themes, length_words) | asked
    told = [
        each for each in source.passages if each.place in chosen and each not in moved and each not in angle.opening
    ]
    blocks += as_blocks([*moved, *(each for each in told if not source.themes[each.theme].heading)])
    if angle.opening:
        blocks.append(Block(Kind.HEADING, angle.name, 2))
        blocks += [Block(Kind.ITEM, passage.text, 0, "-") for passage in angle.opening]
    for theme in angle.themes:
        members = [each for each in told if each.theme == theme]
        if members and source.themes[theme].heading:
            blocks.append(Block(Kind.HEADING, theme_name(source, theme), 2))
            blocks += as_blocks(members)
    return with_note(blocks, source)


def as_blocks(passages: Iterable[Passage]) -> list[Block]:
    """Passages as Markdown, sentences of one paragraph together."""
    blocks: list[Block] = []
    last: Passage | None = None
    for passage in passages:
        if last and passage.kind is last.kind is Kind.PROSE and passage.paragraph == last.paragraph:
            blocks[-1] = replace(blocks[-1], text=f"{blocks[-1].text} {passage.text}")
        else:
            blocks.append(Block(passage.kind, passage.text, passage.level, passage.marker))
        last = passage
    return blocks


def with_note(blocks: Sequence[Block], source: Source) -> list[Block]:
    """The text with a fresh note that says whose words these are, with honest numbers."""
    body = list(blocks[: note_begins(blocks)])
    phrases = phrases_in(source.language)
    said = Wording(statement.text for statement in statements(body))
    used = [passage for passage in source.passages if said.has(passage.text)]
    kept = {passage.theme for passage in used}
    parts = [phrases.note.format(title=source.title or phrases.untitled, used=len(used), total=len(source.passages))]
    if len(kept) < len(source.themes):
        parts.append(phrases.note_part.format(kept=len(kept), themes=len(source.themes)))
    if any(theme.is_made for theme in source.themes):
        parts.append(phrases.note_made_headings)
    return [*body, Block(Kind.RULE, "---"), Block(Kind.PROSE, f"*{' '.join(parts).replace('*', '')}*")]
