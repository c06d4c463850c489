"""What a text is about: its key terms, its central sentences."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from language.sentences import sentences
from language.word_lists import CLOSING_ABBREVIATIONS, MEASURES, OPEN_ABBREVIATIONS
from language.words import is_meaningful, stem, terms, words


@dataclass(frozen=True)
class KeyTerm:
    text: str
    mentions: int


_CLAUSE_BREAK = re.compile(r"[,;:()\[\]«»“”\"—–/|*`!?…]+|\.(?=\s|$)|\s-\s")
# Endings that a Russian word has in a sentence and not in a dictionary.
_OBLIQUE = re.compile(r"(?:[уюеиы]|[оеыи]й|[оеи]м|[аяы]м[и]?|[аяы]х|[ое]в|[ое]го|[ое]му)(?: |$)")
_NEVER_TERMS = MEASURES | OPEN_ABBREVIATIONS | CLOSING_ABBREVIATIONS
# Short sentences would win on density alone.
_SHORTEST_COUNTED_TERMS = 7


def centrality(texts: Sequence[str]) -> list[float]:
    """How central each text is among them: a term counts by the number of texts that share it."""
    stems = [set(terms(text)) for text in texts]
    shared = Counter(term for each in stems for term in each)
    # fsum: a plain sum over a set depends on the order, which differs from process to process.
    return [
        math.fsum(math.log1p(shared[term]) for term in each) / math.sqrt(max(len(each), _SHORTEST_COUNTED_TERMS))
        for each in stems
    ]


def inverse_document_frequency(texts: Sequence[str]) -> Mapping[str, float]:
    """How much a term tells one text from the others."""
    shared = Counter(term for text in texts for term in set(terms(text)))
    return {term: math.log((1 + len(texts)) / count) for term, count in shared.items()}


def weighted_overlap(of: Iterable[str], by: Iterable[str], weights: Mapping[str, float]) -> float:
    """The share of a set of terms, weighted, that another set has too."""
    wanted, given = set(of), set(by)
    total = math.fsum(weights.get(term, 1.0) for term in wanted)
    return math.fsum(weights.get(term, 1.0) for term in wanted & given) / total if total else 1.0


def key_terms(text: str, limit: int) -> list[KeyTerm]:
    """The words and pairs of words that the text comes back to, as it writes them."""
    found = _Mentions()
    for sentence in sentences(text):
        for clause in _CLAUSE_BREAK.split(sentence):
            found.add(words(clause))
    return found.best(limit)


class _Mentions:
    def __init__(self) -> None:
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._forms: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)

    def add(self, sentence: Sequence[str]) -> None:
        for at, word in enumerate(sentence):
            if not _may_name(word):
                continue
            self._note((word,))
            if at + 1 < len(sentence) and _may_name(sentence[at + 1]):
                self._note((word, sentence[at + 1]))

    def best(self, limit: int) -> list[KeyTerm]:
        chosen: list[tuple[str, ...]] = []
        for key, _ in sorted(self._counts.items(), key=lambda entry: (-self._score(entry[0]), entry[0])):
            if len(chosen) == limit:
                break
            if not any(set(key) & set(other) for other in chosen):
                chosen.append(key)
        found = [KeyTerm(self._form(key), self._counts[key]) for key in chosen]
        return [term for term in found if term.mentions > 1] or found

    def _note(self, together: tuple[str, ...]) -> None:
        key = tuple(map(stem, together))
        self._counts[key] += 1
        self._forms[key][" ".join(together)] += 1

    def _score(self, key: tuple[str, ...]) -> float:
        count = self._counts[key]
        if len(key) == 1:
            return count if count > 1 else count * 0.5
        # A pair is a term of its own when its words rarely come apart.
        rarer = min(self._counts[(part,)] for part in key)
        return 1.8 * count if count > 1 and count * 2 >= rarer else 0.0

    def _form(self, key: tuple[str, ...]) -> str:
        forms = self._forms[key]
        lowered = Counter[str]()
        for form, count in forms.items():
            lowered[form.lower()] += count
        common = max(lowered, key=lambda form: (not _OBLIQUE.search(form), lowered[form], -len(form), form))
        # A capital that every form has belongs to a name.
        is_name = not any(form == form.lower() for form in forms)
        return next(form for form in sorted(forms) if form.lower() == common) if is_name else common


def _may_name(word: str) -> bool:
    return len(word) > 2 and is_meaningful(word) and not word[0].isdigit() and word.lower() not in _NEVER_TERMS
