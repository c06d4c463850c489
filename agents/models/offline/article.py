"""An article composed of passages of its source: selection, layout, the note on sources."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from agents.models.offline.phrases import phrase
from agents.models.offline.source import Passage, Source, are_alike, heaviest, statement_key
from language.markdown import BlockKind, MarkdownBlock
from language.sentences import sentences

DEFAULT_LENGTH_WORDS = 900
_MOST_SECTIONS = 9
_SHORT_SOURCE_WORDS = 220
# A draft leaves something for the critic to insist on.
_DRAFT_SHARE = 0.75


def statements(blocks: Sequence[MarkdownBlock]) -> Iterator[str]:
    """Statements of a text outside headings and outside the note on sources."""
    for block in body_of(blocks):
        if block.kind is BlockKind.PROSE:
            yield from sentences(block.text)
        elif block.kind not in (BlockKind.HEADING, BlockKind.RULE):
            yield block.text


def body_of(blocks: Sequence[MarkdownBlock]) -> Sequence[MarkdownBlock]:
    """The text without the note on sources: an emphasised paragraph after a rule at the end."""
    last = len(blocks) - 2
    has_note = last >= 0 and blocks[last].kind is BlockKind.RULE and blocks[-1].text[:1] == "*" == blocks[-1].text[-1:]
    return blocks[:last] if has_note else blocks


def quoted_places(blocks: Sequence[MarkdownBlock], source: Source) -> set[int]:
    known = set(map(statement_key, statements(blocks)))
    return {passage.place for passage in source.passages if statement_key(passage.text) in known}


def sections_of(headings: Iterable[str], source: Source) -> tuple[int, ...]:
    """Sections of the source in the order of these headings; without any known heading, the weightiest ones."""
    numbers = {statement_key(heading): at for at, heading in enumerate(source.sections) if heading}
    introduction = [at for at, heading in enumerate(source.sections) if not heading]
    named = [numbers[key] for key in map(statement_key, headings) if key in numbers]
    return tuple(dict.fromkeys([*introduction, *(named or weightiest_sections(source))]))


def weightiest_sections(source: Source) -> list[int]:
    """The sections with most to tell, at most 9, in the order of the source."""
    weights = [sum(passage.weight for passage in source.of_section(at)) for at in range(len(source.sections))]
    return sorted(sorted(range(len(weights)), key=lambda at: (-weights[at], at))[:_MOST_SECTIONS])


def select(source: Source, sections: Sequence[int], length_words: int) -> set[int]:
    """Places of passages for an article of this length: the best of each section, questions, then the best of all."""
    candidates = [each for each in source.passages if each.section in sections and not each.introduces]
    total = sum(passage.length_words for passage in candidates)
    limit = length_words if total <= _SHORT_SOURCE_WORDS else min(length_words, int(total * _DRAFT_SHARE))
    ranked = heaviest(candidates)
    first = [next((each for each in ranked if each.section == section), None) for section in sections]
    questions = [each for each in candidates if each.is_question]
    order = [*filter(None, first), *questions[:3], *ranked]
    return extended(set(), source, order, most_words=limit)


def extended(
    places: set[int], source: Source, by: Iterable[Passage], *, most_words: float, least_words: float = 0
) -> set[int]:
    """The places with those of further passages and what they lean on, as long as these fit and say something new.

    With `least_words` it stops there.
    """
    chosen = set(places)
    length = sum(source.passages[place].length_words for place in chosen)
    kept_terms = [source.passages[place].terms for place in chosen]
    for passage in by:
        if least_words and length >= least_words:
            break
        new = [each for each in source.with_support(passage) if each.place not in chosen]
        cost = sum(each.length_words for each in new)
        is_fit = all(each.is_quotable or each.introduces or each.is_question for each in new)
        if new and is_fit and length + cost <= most_words and not any(are_alike(passage.terms, t) for t in kept_terms):
            chosen.update(each.place for each in new)
            kept_terms += [each.terms for each in new]
            length += cost
    return chosen


def compose(source: Source, sections: Sequence[int], places: set[int]) -> list[MarkdownBlock]:
    """The article: title, sections with their passages, note on sources."""
    blocks = [MarkdownBlock(BlockKind.HEADING, source.title or phrase(source.language, "untitled"), 1)]
    if not source.passages:
        return [*blocks, MarkdownBlock(BlockKind.PROSE, f"*{phrase(source.language, 'no_facts')}*")]
    wanted = {each.place for place in places for each in source.with_support(source.passages[place])}
    chosen = [source.passages[place] for place in sorted(wanted)]
    further = (at for at in range(len(source.sections)) if at not in sections)
    for section in (*sections, *further):
        members = [passage for passage in chosen if passage.section == section]
        if members and source.sections[section]:
            blocks.append(MarkdownBlock(BlockKind.HEADING, source.sections[section], 2))
        blocks += _laid_out(members)
    note = phrase(
        source.language, "note", title=source.title.replace("*", ""), used=len(chosen), total=len(source.passages)
    )
    return [*blocks, MarkdownBlock(BlockKind.RULE, "---"), MarkdownBlock(BlockKind.PROSE, f"*{note}*")]


def without_repeats(blocks: Sequence[MarkdownBlock]) -> list[MarkdownBlock]:
    """The text with every statement once, where it stands first."""
    known: set[str] = set()
    kept: list[MarkdownBlock] = []
    for block in blocks:
        if block.kind in (BlockKind.HEADING, BlockKind.RULE):
            kept.append(block)
            continue
        parts = sentences(block.text) if block.kind is BlockKind.PROSE else [block.text]
        fresh = [part for part in dict.fromkeys(parts) if statement_key(part) not in known]
        known.update(map(statement_key, fresh))
        if fresh:
            kept.append(replace(block, text=" ".join(fresh)) if len(fresh) < len(parts) else block)
    return kept


def _laid_out(passages: Iterable[Passage]) -> list[MarkdownBlock]:
    """Passages as blocks, sentences of one paragraph together."""
    blocks: list[MarkdownBlock] = []
    last: Passage | None = None
    for passage in passages:
        if last and passage.kind is last.kind is BlockKind.PROSE and passage.paragraph == last.paragraph:
            blocks[-1] = replace(blocks[-1], text=f"{blocks[-1].text} {passage.text}")
        else:
            blocks.append(passage)
        last = passage
    return blocks
