"""The critic's paper, which an editor can act on line by line."""

from collections.abc import Iterator, Sequence

from agents.models.extractive.phrases import Phrases, all_phrases, phrases_in
from agents.models.extractive.reading import read_source
from agents.models.extractive.review import Fault, Finding, Review, review
from agents.models.extractive.source import Source
from language.markdown import Block, Kind, parse, quoted, render

_INDENT = "    "


def write_critique(blocks: Sequence[Block], source: Source | None) -> str:
    known = source or read_source([render(blocks)])
    phrases = phrases_in(known.language)
    seen = review(blocks, source)
    title = next((block.text for block in blocks if block.kind is Kind.HEADING), known.title or phrases.untitled)
    parts = [f"# {phrases.critique}: {title}", f"*{_measures(seen, source, phrases)}*", f"## {phrases.findings}"]
    parts += [_finding(at, each, phrases) for at, each in enumerate(seen.findings, start=1)] or [phrases.no_findings]
    holds = list(_holds(seen, source, phrases))
    if holds:
        parts += [f"## {phrases.holds}", "\n".join(f"- {line}" for line in holds)]
    return "\n\n".join(parts) + "\n"


def findings_in(paper: str) -> list[Finding]:
    """What the paper asks to change: the quotes under the labels it uses, in either language."""
    labels = {f"**{label}**": fault for phrases in all_phrases() for fault, label in _labels(phrases).items()}
    found: list[Finding] = []
    blocks = parse(paper)
    for at, block in enumerate(blocks[:-1]):
        fault = next((fault for label, fault in labels.items() if block.text.startswith(label)), None)
        if block.kind is Kind.ITEM and fault and blocks[at + 1].kind is Kind.QUOTE:
            found.append(Finding(fault, blocks[at + 1].text))
    return found


def _labels(phrases: Phrases) -> dict[Fault, str]:
    return {
        Fault.MISSING: phrases.missing,
        Fault.REPEATED: phrases.repeated,
        Fault.LONG: phrases.long,
        Fault.UNSUPPORTED: phrases.unsupported,
        Fault.HEAVY: phrases.heavy,
        Fault.LENGTH: phrases.length,
        Fault.VAGUE: phrases.unclear_quantity,
        Fault.UNEXPLAINED: phrases.unclear_abbreviation,
    }


def _finding(number: int, finding: Finding, phrases: Phrases) -> str:
    lines = [f"{number}. **{_labels(phrases)[finding.fault]}**"]
    if finding.quote:
        lines += ["", *(f"{_INDENT}{line}" for line in quoted(finding.quote).split("\n"))]
    return "\n".join([*lines, "", f"{_INDENT}{phrases.fix}: {_fix(finding, phrases)}"])


def _fix(finding: Finding, phrases: Phrases) -> str:
    fixes = {
        Fault.MISSING: phrases.missing_fix,
        Fault.REPEATED: phrases.repeated_fix,
        Fault.LONG: phrases.long_fix if finding.share > 1 else phrases.long_fix_by_hand,
        Fault.UNSUPPORTED: phrases.unsupported_fix,
        Fault.HEAVY: phrases.heavy_fix,
        Fault.LENGTH: phrases.length_fix,
        Fault.VAGUE: phrases.unclear_quantity_fix,
        Fault.UNEXPLAINED: phrases.unclear_abbreviation_fix,
    }
    return fixes[finding.fault].format(
        section=finding.section or phrases.introduction,
        word=finding.word,
        words=finding.words,
        share=finding.share,
        least=finding.asked[0],
        most=finding.asked[1],
    )


def _measures(seen: Review, source: Source | None, phrases: Phrases) -> str:
    measured = phrases.critique_note.format(
        sentences=seen.sentences, words=seen.words, average=round(seen.words / max(seen.sentences, 1))
    )
    if source is None:
        return measured
    return f"{measured} {phrases.critique_coverage.format(covered=seen.covered, total=len(source.passages))}"


def _holds(seen: Review, source: Source | None, phrases: Phrases) -> Iterator[str]:
    faults = {finding.fault for finding in seen.findings}
    if source and Fault.UNSUPPORTED not in faults:
        yield phrases.all_supported
    if source and Fault.MISSING not in faults:
        yield phrases.all_facts
    if Fault.REPEATED not in faults:
        yield phrases.no_repeats
