"""Lexical weight of texts and terms: centrality, document frequency, overlap, relevance; closest statements."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from language.sentences import sentences
from language.words import query_stems, stems, terms
from retrieval.bm25 import lexical_scores

ItemT = TypeVar("ItemT")

# Fewer terms count as this many: short sentences would win on density alone.
_SHORTEST_COUNTED_TERMS = 7
_MOST_STATEMENTS = 2
_KNOWN_CHARS = 1024
_WANTS_FIGURE = re.compile(
    r"\b(?:when|how (?:much|many|long)|what time|когда|сколько|во сколько|какого числа)\b", re.IGNORECASE
)
_FIGURE = re.compile(r"\d")


def centrality(texts: Sequence[str]) -> list[float]:
    """Centrality of each text among them: a term counts by the number of texts that share it."""
    stems = [_term_set(text) for text in texts]
    shared = Counter(term for each in stems for term in each)
    # fsum: a plain sum over a set depends on the order, which differs from process to process.
    return [
        math.fsum(math.log1p(shared[term]) for term in each) / math.sqrt(max(len(each), _SHORTEST_COUNTED_TERMS))
        for each in stems
    ]


def inverse_document_frequency(texts: Sequence[str]) -> Mapping[str, float]:
    """Weight of each term by its rarity among the texts: ln((1 + texts) / texts with the term)."""
    shared = Counter(term for text in texts for term in _term_set(text))
    return {term: math.log((1 + len(texts)) / count) for term, count in shared.items()}


def weighted_overlap(of: Iterable[str], by: Iterable[str], weights: Mapping[str, float]) -> float:
    """Weighted share of a set of terms that another set has too, 1 for no terms; a term without weight counts 1."""
    wanted, given = frozenset(of), frozenset(by)
    total = math.fsum(weights.get(term, 1.0) for term in wanted)
    return math.fsum(weights.get(term, 1.0) for term in wanted & given) / total if total else 1.0


def most_relevant(
    items: Sequence[ItemT], text_of: Callable[[ItemT], str], about: str, limit: int
) -> tuple[list[ItemT], list[ItemT]]:
    """At most `limit` items that share words with a text, by BM25, best first; then all others in their order."""
    texts = {str(position): _stemmed(text_of(item)) for position, item in enumerate(items)}
    query = query_stems(about)
    counts = Counter(stem for text in texts.values() for stem in set(text.split()))
    if not any(stem in counts for stem in query):
        return [], list(items)
    scores = lexical_scores(query, texts, len(texts), counts)
    ranked = sorted((key for key in texts if scores[key].score > 0), key=lambda key: -scores[key].score)
    best = [int(key) for key in ranked[:limit]]
    others = set(range(len(items))).difference(best)
    return [items[position] for position in best], [items[position] for position in sorted(others)]


@lru_cache(maxsize=8192)
def _stemmed(text: str) -> str:
    return " ".join(stems(text))


def _known(read: Callable[[str], ItemT]) -> Callable[[str], ItemT]:
    """A reading of texts that is kept of short ones: what was said in a talk is compared with each of its questions."""
    kept = lru_cache(maxsize=8192)(read)
    return lambda text: kept(text) if len(text) <= _KNOWN_CHARS else read(text)


@_known
def _term_set(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def statements_of(texts: Iterable[str]) -> list[str]:
    """Sentences that are no questions, each once, the latest first."""
    return list(dict.fromkeys(each for text in texts for each in _statements(text)))[::-1]


@_known
def _statements(text: str) -> tuple[str, ...]:
    return tuple(each for each in sentences(text) if not each.endswith("?"))


def closest_statements(question: str, statements: Sequence[str], least: float) -> list[str]:
    """The two statements that share most of its terms, a figure first where one is asked for."""
    wanted = terms(question)
    weights = inverse_document_frequency([question, *statements])
    wants_figure = bool(_WANTS_FIGURE.search(question))
    scored = [
        (weighted_overlap(wanted, _term_set(each), weights), wants_figure and bool(_FIGURE.search(each)), -place, each)
        for place, each in enumerate(statements)
    ]
    return [each for score, _, _, each in sorted(scored, reverse=True) if wanted and score >= least][:_MOST_STATEMENTS]
