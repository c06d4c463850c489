"""The words that a text comes back to, as it writes them."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from language.word_lists import SMALL_TALK
from language.words import stem_key
from memory.packing.reading import meant

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*(?!['’\w])")
_DONE = re.compile(r"(?:ly|ing|ed|ть|ться|тся|л[аои]|ешь|[ие]шь|[ую]т|[ия]т|[ие]м|ся|но)$")
_SHORTEST_CHARS = 4


def topics_of(texts: Sequence[str], fewest_texts: int = 1) -> list[str]:
    """Words that carry meaning, those of most texts first, of equals the longer; only those of so many texts."""
    counts: Counter[str] = Counter()
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text in texts:
        for word in _WORD.findall(text):
            if len(word) >= _SHORTEST_CHARS and word.lower() not in SMALL_TALK and meant(word) <= meant(text):
                key = stem_key(word)
                counts[key] += 1
                forms[key][word.lower()] += 1
    common = [key for key in counts if counts[key] >= fewest_texts]
    return [
        _common(forms[key]) for key in sorted(common, key=lambda key: (-_weight(key, counts[key], forms[key]), key))
    ]


def _common(forms: Counter[str]) -> str:
    return max(forms, key=lambda form: (forms[form], -len(form), form))


def _weight(key: str, count: int, forms: Counter[str]) -> float:
    """What is done is less of a topic than what it is done to."""
    is_done = all(_DONE.search(form) for form in forms)
    return (count + len(key) / 20) * (0.5 if is_done else 1.0)
