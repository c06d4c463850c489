"""What a critic can compute about a text beside its material."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from agents.keywords import inverse_document_frequency, weighted_overlap
from agents.models.extractive.demands import words_asked
from agents.models.extractive.doubts import Guess, doubts
from agents.models.extractive.reading import read_source
from agents.models.extractive.selection import DEFAULT_LENGTH_WORDS, alike
from agents.models.extractive.source import Source
from agents.models.extractive.splitting import split
from agents.models.extractive.statements import Statement, Wording, statements
from language.markdown import Block, render

LONG_SENTENCE_WORDS = 38
_MOST_MISSING = 8
_MOST_OF_A_KIND = 6
# An article may outgrow its limit a little for the sake of a fact.
_ROOM = 1.1
_SUPPORTED_SHARE = 0.5
_CARRIED_SHARE = 0.65
_MOST_LIKELY = 5
_HEAVY_SHARE = 0.45
_HEAVY_FROM_WORDS = 150
_SHORTEST_CHECKED_TERMS = 4


class Fault(StrEnum):
    MISSING = "missing"
    REPEATED = "repeated"
    LONG = "long"
    UNSUPPORTED = "unsupported"
    HEAVY = "heavy"
    LENGTH = "length"
    VAGUE = "vague"
    UNEXPLAINED = "unexplained"


_UNCLEAR = {Guess.QUANTITY: Fault.VAGUE, Guess.ABBREVIATION: Fault.UNEXPLAINED}


@dataclass(frozen=True)
class Finding:
    fault: Fault
    quote: str = ""
    section: str = ""
    word: str = ""
    words: int = 0
    share: int = 0
    asked: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Review:
    findings: tuple[Finding, ...]
    sentences: int
    words: int
    covered: int


def review(blocks: Sequence[Block], source: Source | None) -> Review:
    """Look at a text beside its material; one that stands alone must at least leave nothing to guess."""
    said = list(statements(blocks))
    match = _Match(said, source) if source else None
    findings = [*_repeated(said), *_long(said), *_heavy(said)]
    if source and match:
        findings += [*match.missing(), *match.unsupported(), *_length(said, source)]
    else:
        findings += _unclear(blocks)
    return Review(
        findings=tuple(findings),
        sentences=len(said),
        words=sum(each.length_words for each in said),
        covered=match.covered if match else 0,
    )


class _Match:
    """A text beside its material, statement by statement."""

    def __init__(self, said: Sequence[Statement], source: Source) -> None:
        self._said = said
        self._source = source
        self._weights = inverse_document_frequency([passage.text for passage in source.passages])
        in_text = Wording(each.text for each in said)
        self._in_source = Wording([source.title, *(each.text for each in source.passages), *source.demands])
        kin = _Kin(each.terms for each in said)
        self._carried = {
            each.place
            for each in source.passages
            if in_text.has(each.text) or kin.covers(each.terms, _CARRIED_SHARE, self._weights)
        }

    @property
    def covered(self) -> int:
        return len(self._carried)

    def missing(self) -> Iterator[Finding]:
        """The weightiest facts left out, as far as there is room for them."""
        left = [
            passage for passage in self._source.passages if passage.place not in self._carried and passage.may_be_told
        ]
        asked = words_asked(list(self._source.demands))
        most = asked[1] if asked else DEFAULT_LENGTH_WORDS
        room = most * _ROOM - sum(each.length_words for each in self._said)
        for passage in sorted(left, key=lambda each: (-each.weight, each.place))[:_MOST_MISSING]:
            room -= passage.length_words
            if room >= 0:
                yield Finding(Fault.MISSING, passage.text, self._source.themes[passage.theme].heading)

    def unsupported(self) -> Iterator[Finding]:
        told = _Kin(each.terms for each in self._source.passages)
        foreign = [
            each
            for each in self._said
            if len(each.terms) >= _SHORTEST_CHECKED_TERMS
            and not self._in_source.has(each.text)
            and not told.covers(each.terms, _SUPPORTED_SHARE, self._weights)
        ]
        for each in foreign[:_MOST_OF_A_KIND]:
            yield Finding(Fault.UNSUPPORTED, each.text, each.section)


class _Kin:
    """Finds out whether one of many statements covers another, without comparing each with each."""

    def __init__(self, terms: Iterable[frozenset[str]]) -> None:
        self._terms = list(terms)
        self._having = defaultdict[str, list[int]](list)
        for at, each in enumerate(self._terms):
            for term in each:
                self._having[term].append(at)

    def covers(self, terms: frozenset[str], share: float, weights: Mapping[str, float]) -> bool:
        shared = Counter(at for term in terms for at in self._having.get(term, ()))
        likely = sorted(shared, key=lambda at: (-shared[at], at))[:_MOST_LIKELY]
        return any(weighted_overlap(terms, self._terms[at], weights) >= share for at in likely)


def _repeated(said: Sequence[Statement]) -> Iterator[Finding]:
    found = 0
    for at, each in enumerate(said):
        if found < _MOST_OF_A_KIND and any(_same(each, other) for other in said[:at]):
            found += 1
            yield Finding(Fault.REPEATED, each.text, each.section)


def _same(one: Statement, other: Statement) -> bool:
    return one.text == other.text or alike(one.terms, other.terms)


def _long(said: Sequence[Statement]) -> Iterator[Finding]:
    long = [each for each in said if each.length_words > LONG_SENTENCE_WORDS and "\n" not in each.text]
    for each in long[:_MOST_OF_A_KIND]:
        yield Finding(Fault.LONG, each.text, each.section, words=each.length_words, share=len(split(each.text)))


def _unclear(blocks: Sequence[Block]) -> list[Finding]:
    found = [
        Finding(_UNCLEAR[doubt.guess], doubt.text, word=doubt.word)
        for doubt in doubts(read_source([render(blocks)]))
        if doubt.guess in _UNCLEAR
    ]
    return found[:_MOST_OF_A_KIND]


def _heavy(said: Sequence[Statement]) -> Iterator[Finding]:
    sizes = Counter[str]()
    for each in said:
        sizes[each.section] += each.length_words
    total = sum(sizes.values())
    for section, size in sizes.items():
        if section and len(sizes) > 2 and size > max(_HEAVY_SHARE * total, _HEAVY_FROM_WORDS):
            yield Finding(Fault.HEAVY, section=section, share=round(100 * size / total))


def _length(said: Sequence[Statement], source: Source) -> Iterator[Finding]:
    asked = words_asked(list(source.demands))
    total = sum(each.length_words for each in said)
    if asked and not asked[0] * 0.9 <= total <= asked[1] * 1.1:
        yield Finding(Fault.LENGTH, words=total, asked=asked)
