"""Where a long sentence may be split without changing what it says."""

import re

from language.words import words

# What follows these is a clause of its own, and keeps its first word.
_SAFE = re.compile(r";\s+|(?:,|\s[—–])\s+(?=(?:but|yet|но|однако|зато)\s)", re.IGNORECASE)
_FEWEST_WORDS = 6


def split(sentence: str) -> list[str]:
    """The sentence as one or more sentences with the same words."""
    cut = next((at for at in _SAFE.finditer(sentence) if _is_safe(sentence[: at.start()], sentence[at.end() :])), None)
    if cut is None:
        return [sentence]
    left, right = sentence[: cut.start()], sentence[cut.end() :]
    return [f"{left}.", *split(right[:1].upper() + right[1:])]


def _is_safe(left: str, right: str) -> bool:
    return (
        min(len(words(left)), len(words(right))) >= _FEWEST_WORDS
        and all(
            side.count(opening) == side.count(closing)
            for side in (left, right)
            for opening, closing in (("(", ")"), ("«", "»"), ("“", "”"), ("[", "]"))
        )
        and all(side.count(mark) % 2 == 0 for side in (left, right) for mark in ('"', "*", "`"))
    )
