"""Themes of a text: its own sections, or stretches that share their words."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from agents.keywords import inverse_document_frequency, key_terms, weighted_overlap
from language.markdown import Block, Kind, plain
from language.sentences import leans_back, sentences
from language.words import terms


@dataclass(frozen=True)
class Theme:
    heading: str  # empty for what stands before the first section
    is_made: bool = False  # by us, from its key terms


_SENTENCES_PER_THEME = 7
_MOST_THEMES = 6
_MOST_SECTIONS = 9
_MOST_BREATHS = 6
_FEWEST_SENTENCES_PER_THEME = 3
_WINDOW_BLOCKS = 2


def outline(blocks: Sequence[Block]) -> tuple[list[Theme], list[list[Block]]]:
    """The themes in the order of the text, each with its blocks; lesser headings stay among these."""
    if any(block.kind is Kind.HEADING for block in blocks):
        return _by_headings(blocks)
    return _by_words(_cut_up(blocks))


def _by_headings(blocks: Sequence[Block]) -> tuple[list[Theme], list[list[Block]]]:
    level = _theme_level(Counter(block.level for block in blocks if block.kind is Kind.HEADING))
    sections: dict[str, list[Block]] = {"": []}
    heading = ""
    for block in blocks:
        if block.kind is Kind.HEADING and block.level <= level:
            heading = plain(block.text)
            sections.setdefault(heading, [])
        else:
            sections[heading].append(block)
    return [Theme(heading) for heading in sections], list(sections.values())


def _theme_level(levels: Counter[int]) -> int:
    """As deep as the sections stay few, at least as deep as there is more than one."""
    shallowest = next((level for level in sorted(levels) if levels[level] > 1), min(levels))
    few = [level for level in levels if sum(levels[other] for other in levels if other <= level) <= _MOST_SECTIONS]
    return max([shallowest, *few])


def _cut_up(blocks: Sequence[Block]) -> list[Block]:
    """A text in one breath is cut into short stretches, so that it can be divided at all."""
    breaths = [sentences(block.text) for block in blocks]
    if len(blocks) > _MOST_BREATHS or any(block.kind is not Kind.PROSE for block in blocks):
        return list(blocks)
    return [
        Block(Kind.PROSE, " ".join(found[at : at + _FEWEST_SENTENCES_PER_THEME]), marker=str(breath))
        for breath, found in enumerate(breaths)
        for at in range(0, len(found), _FEWEST_SENTENCES_PER_THEME)
    ]


def _joined(blocks: Sequence[Block]) -> list[Block]:
    """What `_cut_up` cut and nobody parted is one paragraph again."""
    joined: list[Block] = []
    for block in blocks:
        if joined and block.marker and joined[-1].marker == block.marker and block.kind is Kind.PROSE:
            joined[-1] = replace(joined[-1], text=f"{joined[-1].text} {block.text}")
        else:
            joined.append(block)
    return [replace(block, marker="") if block.kind is Kind.PROSE else block for block in joined]


def _by_words(blocks: Sequence[Block]) -> tuple[list[Theme], list[list[Block]]]:
    lengths = [len(sentences(block.text)) if block.kind is Kind.PROSE else 1 for block in blocks]
    wanted = min(_MOST_THEMES, sum(lengths) // _SENTENCES_PER_THEME)
    cuts = [0, *_deepest_gaps(blocks, lengths, wanted - 1), len(blocks)]
    members = [_joined(blocks[start:end]) for start, end in pairwise(cuts)]
    if len(members) == 1:
        return [Theme("")], members
    return [Theme(heading, is_made=True) for heading in _made_headings(members)], members


def _deepest_gaps(blocks: Sequence[Block], lengths: Sequence[int], wanted: int) -> list[int]:
    """Where the words before have the least to do with the words after."""
    stems = [set(terms(block.text)) for block in blocks]
    weights = inverse_document_frequency([block.text for block in blocks])
    depths: list[tuple[float, int]] = []
    for at in range(1, len(blocks)):
        before = set[str]().union(*stems[max(0, at - _WINDOW_BLOCKS) : at])
        after = set[str]().union(*stems[at : at + _WINDOW_BLOCKS])
        if _may_part(blocks[at - 1], blocks[at]):
            depths.append((weighted_overlap(before, after, weights), at))
    chosen: list[int] = []
    for _, at in sorted(depths):
        edges = sorted([0, *chosen, at, len(blocks)])
        if len(chosen) < wanted and all(
            sum(lengths[start:end]) >= _FEWEST_SENTENCES_PER_THEME for start, end in pairwise(edges)
        ):
            chosen.append(at)
    return sorted(chosen)


def _may_part(before: Block, after: Block) -> bool:
    if after.kind is Kind.RULE or before.kind is Kind.RULE:
        return before.kind is not Kind.RULE
    if after.kind is not Kind.PROSE:
        return before.kind is Kind.PROSE and before.text[-1] != ":"
    return not leans_back(after.text)


def _made_headings(members: Sequence[Sequence[Block]]) -> list[str]:
    texts = [plain(". ".join(block.text for block in each)) for each in members]
    spread = inverse_document_frequency(texts)
    headings: list[str] = []
    for text in texts:
        ranked = sorted(
            key_terms(text, 8),
            key=lambda term: -term.mentions * max((spread.get(each, 0.0) for each in terms(term.text)), default=0.0),
        )
        fresh = [term.text for term in ranked if not any(term.text in heading.lower() for heading in headings)]
        heading = " · ".join(fresh[:2] or [str(len(headings) + 1)])
        headings.append(heading[:1].upper() + heading[1:])
    return headings
