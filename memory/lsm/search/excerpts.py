"""Excerpts: the passage of a long turn that a question is about."""

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from language.words import stems

# Longer turns are shown by an excerpt: replies of assistants, whose 500 words would fill a search's budget.
LONGEST_WHOLE_WORDS = 100
EXCERPT_WORDS = 60
_WORD = re.compile(r"\S+")
_ENDS_SENTENCE = re.compile(r"[.!?…:][\"'»”*_)]*$")


def shown_words(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """How many words of each turn a search shows, shape (turns,)."""
    return np.where(words > LONGEST_WHOLE_WORDS, np.uint32(EXCERPT_WORDS), words)


def excerpt(text: str, weights: Mapping[str, float]) -> str:
    """The run of `EXCERPT_WORDS` words with the heaviest stems of the question, from the beginning of a sentence.

    `weights` are the stems' inverse document frequencies. Ellipses mark what is left out; they are no words.
    """
    words = list(_WORD.finditer(text))
    if len(words) <= EXCERPT_WORDS:
        return text
    latest = len(words) - EXCERPT_WORDS
    starts = [at for at in range(latest) if not at or _begins_sentence(text, words[at - 1], words[at])]
    found = [(at, stem) for at, word in enumerate(words) for stem in set(stems(word[0])) if stem in weights]
    # Of equal passages the last one begins with the question's words, so that what follows them is shown, too.
    start = max([*starts, latest], key=lambda at: (_weight(found, at, weights), at)) if found else 0
    begin, end = words[start].start(), words[start + EXCERPT_WORDS - 1].end()
    return ("…" if start else "") + text[begin:end] + ("…" if start < latest else "")


def _begins_sentence(text: str, before: re.Match[str], word: re.Match[str]) -> bool:
    return _ENDS_SENTENCE.search(before[0]) is not None or "\n" in text[before.end() : word.start()]


def _weight(found: list[tuple[int, str]], start: int, weights: Mapping[str, float]) -> float:
    """Weight of the different stems among the words of the passage from `start` on."""
    return sum(weights[stem] for stem in {stem for at, stem in found if start <= at < start + EXCERPT_WORDS})
