"""The team's working papers, made of quotes: research report, ideas, critique."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from agents.models.offline.article import (
    DEFAULT_LENGTH_WORDS,
    quoted_places,
    sections_of,
    statements,
    weightiest_sections,
)
from agents.models.offline.phrases import phrase
from agents.models.offline.source import Passage, Source, are_alike, heaviest, read_source
from language.markdown import BlockKind, MarkdownBlock, parse, quoted, render
from language.words import Language, terms, words

_MOST_FACTS = 8
_MOST_QUESTIONS = 10
_MOST_ANGLES = 3
_QUOTES_OF_ANGLE = 2
_MOST_MISSING = 8
_MOST_OF_A_KIND = 6
_LONG_SENTENCE_WORDS = 38
_CARRIED_SHARE = 0.65
# An article may outgrow its limit a little for the sake of a fact.
_ROOM = 1.1


@dataclass(frozen=True)
class ReviewFinding:
    """A flaw of a text: the key of its label, the passage or statement that it is about, values for its correction."""

    flaw: str
    quote: str = ""
    values: Mapping[str, object] = field(default_factory=dict)


def write_report(source: Source) -> str:
    """Facts by section, demands of the brief, open questions."""
    language, parts = source.language, _opening(source, "report")
    for section in weightiest_sections(source):
        facts = [each for each in source.of_section(section) if not each.is_question]
        strongest = heaviest(facts)[:_MOST_FACTS]
        supported = {each.place: each for fact in strongest for each in source.with_support(fact)}
        if supported:
            heading = source.sections[section] or phrase(language, "introduction")
            parts += [f"## {heading}", _quotes(supported[place] for place in sorted(supported))]
    if source.demands:
        parts += [f"## {phrase(language, 'demands')}", "\n".join(f"- {demand}" for demand in source.demands)]
    if source.passages:
        parts += [f"## {phrase(language, 'open_questions')}", *_open_questions(source)]
    return "\n\n".join(parts) + "\n"


def facts_of(report: str) -> str:
    """The quoted facts of a report as a text again, for a writer who is not given the brief."""
    facts: list[MarkdownBlock] = []
    for block in parse(report):
        if block.kind is BlockKind.HEADING:
            text = block.text.partition(": ")[2] or block.text if block.level == 1 else block.text
            facts.append(replace(block, text=text))
        elif block.kind is BlockKind.QUOTE:
            lines = [line.removeprefix("- ") for line in block.text.split("\n") if line]
            facts.append(MarkdownBlock(BlockKind.PROSE, " ".join(lines)))
    return render(facts)


def write_ideas(source: Source) -> str:
    """Up to three orders of the sections, the first recommended, each with quotes and an outline."""
    language, parts = source.language, _opening(source, "ideas")
    for number, (name, sections) in enumerate(_angles(source), start=1):
        mark = f" ({phrase(language, 'recommended')})" if number == 1 else ""
        parts.append(f"## {phrase(language, 'angle')} {number}: {name}{mark}")
        parts += [quoted(passage.text) for passage in _best_quotes(source, sections)]
        outline = [source.sections[section] or phrase(language, "introduction") for section in sections]
        listed = (f"{at}. {heading}" for at, heading in enumerate(outline, start=1))
        parts += [f"{phrase(language, 'outline')}:", "\n".join(listed)]
    return "\n\n".join(parts) + "\n"


def recommended_outline(ideas: str) -> list[str]:
    """The outline of the recommended angle, as the paper has it."""
    blocks = parse(ideas)
    headings = [at for at, block in enumerate(blocks) if block.kind is BlockKind.HEADING and block.level == 2]
    marks = tuple(f"({phrase(language, 'recommended')})" for language in Language)
    start = next((at for at in headings if blocks[at].text.endswith(marks)), headings[0] if headings else 0)
    end = next((at for at in headings if at > start), len(blocks))
    return [each.text for each in blocks[start:end] if each.kind is BlockKind.ITEM and each.marker[0].isdigit()]


def write_critique(blocks: Sequence[MarkdownBlock], source: Source | None) -> str:
    """Findings on a text, each with its quote and its correction; beside its source, or alone."""
    known = source or read_source([render(blocks)])
    language = known.language
    title = next((block.text for block in blocks if block.kind is BlockKind.HEADING), known.title)
    found = review(blocks, source)
    stated = list(statements(blocks))
    measures = phrase(language, "measures", sentences=len(stated), words=sum(len(words(each)) for each in stated))
    parts = [f"# {phrase(language, 'critique')}: {title or phrase(language, 'untitled')}", f"*{measures}*"]
    parts.append(f"## {phrase(language, 'findings')}")
    parts += [_finding(number, finding, language) for number, finding in enumerate(found, start=1)]
    if not found:
        parts.append(phrase(language, "no_findings"))
    return "\n\n".join(parts) + "\n"


def missing_in(critique: str) -> list[str]:
    """The passages that a critique wants added: the quotes under that label, in either language."""
    labels = tuple(f"**{phrase(language, 'missing')}**" for language in Language)
    blocks = parse(critique)
    return [
        quote.text
        for label, quote in pairwise(blocks)
        if label.kind is BlockKind.ITEM and label.text.startswith(labels) and quote.kind is BlockKind.QUOTE
    ]


def review(blocks: Sequence[MarkdownBlock], source: Source | None) -> list[ReviewFinding]:
    """Flaws that can be computed: of the form, and beside a source of what the text leaves out."""
    stated = list(statements(blocks))
    long = [each for each in stated if len(words(each)) > _LONG_SENTENCE_WORDS and "\n" not in each]
    found = [
        *(ReviewFinding("repeated", each) for each in _repeated(stated)[:_MOST_OF_A_KIND]),
        *(ReviewFinding("long", each, {"words": len(words(each))}) for each in long[:_MOST_OF_A_KIND]),
    ]
    return [*found, *_missing(blocks, stated, source), *_length(stated, source)] if source else found


def _opening(source: Source, paper: str) -> list[str]:
    title = source.title or phrase(source.language, "untitled")
    parts = [f"# {phrase(source.language, paper)}: {title}", f"*{phrase(source.language, f'{paper}_note')}*"]
    return parts if source.passages else [*parts, phrase(source.language, "no_facts")]


def _angles(source: Source) -> Iterator[tuple[str, tuple[int, ...]]]:
    if not source.passages:
        return
    sections = sections_of((), source)
    yield phrase(source.language, "whole_story"), sections
    named = [at for at in sections if source.sections[at]]
    weightiest = sorted(named[1:], key=lambda at: -sum(passage.weight for passage in source.of_section(at)))
    for first in weightiest[: _MOST_ANGLES - 1]:
        name = phrase(source.language, "section_first", heading=source.sections[first])
        yield name, (*(at for at in sections if at not in named), first, *(at for at in named if at != first))


def _best_quotes(source: Source, sections: Sequence[int]) -> list[Passage]:
    named = [at for at in sections if source.sections[at]] or sections
    free = [each for each in source.of_section(named[0]) if each.leans_on is None and each.is_quotable]
    best = heaviest(free)[:_QUOTES_OF_ANGLE]
    return sorted(best, key=lambda passage: passage.place)


def _quotes(passages: Iterable[Passage]) -> str:
    lines: list[str] = []
    for passage in passages:
        lines += ["", passage.text, ""] if passage.kind in (BlockKind.TABLE, BlockKind.CODE) else [f"- {passage.text}"]
    return quoted("\n".join(lines).strip("\n"))


def _open_questions(source: Source) -> Iterator[str]:
    asked = [passage.text for passage in source.passages if passage.is_question][:_MOST_QUESTIONS]
    yield "\n".join(quoted(f"- {question}") for question in asked) or phrase(source.language, "nothing_open")


def _finding(number: int, finding: ReviewFinding, language: Language) -> str:
    lines = [f"{number}. **{phrase(language, finding.flaw)}**"]
    if finding.quote:
        lines += ["", *(f"    {line}" for line in quoted(finding.quote).split("\n"))]
    fix = phrase(language, f"{finding.flaw}_fix", **finding.values)
    return "\n".join([*lines, "", f"    {phrase(language, 'fix')}: {fix}"])


def _repeated(stated: Sequence[str]) -> list[str]:
    known = [frozenset(terms(each)) for each in stated]
    return [
        each
        for at, each in enumerate(stated)
        if each in stated[:at] or any(are_alike(known[at], other) for other in known[:at])
    ]


def _missing(blocks: Sequence[MarkdownBlock], stated: Sequence[str], source: Source) -> Iterator[ReviewFinding]:
    """The weightiest passages that the text leaves out, as far as there is room for them."""
    carried = quoted_places(blocks, source)
    stated_terms = [frozenset(terms(each)) for each in stated]
    known = frozenset[str]().union(*stated_terms)
    asked = source.required_length
    room = (asked[1] if asked else DEFAULT_LENGTH_WORDS) * _ROOM - sum(len(words(each)) for each in stated)
    left = [
        each
        for each in source.passages
        if each.is_quotable
        and each.place not in carried
        and not (_is_covered(each.terms, known) and any(_is_covered(each.terms, other) for other in stated_terms))
    ]
    for passage in heaviest(left)[:_MOST_MISSING]:
        room -= passage.length_words
        if room >= 0:
            section = source.sections[passage.section] or phrase(source.language, "introduction")
            yield ReviewFinding("missing", passage.text, {"section": section})


def _is_covered(wanted: frozenset[str], by: frozenset[str]) -> bool:
    return len(wanted & by) >= _CARRIED_SHARE * len(wanted)


def _length(stated: Sequence[str], source: Source) -> Iterator[ReviewFinding]:
    asked, total = source.required_length, sum(len(words(each)) for each in stated)
    if asked and not asked[0] * 0.9 <= total <= asked[1] * 1.1:
        yield ReviewFinding("length", values={"words": total, "least": asked[0], "most": asked[1]})
