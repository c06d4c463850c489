"""Sentence boundaries in Russian and English prose."""

import re
from collections.abc import Iterator

from language.word_lists import (
    ABBREVIATIONS_BEFORE_NUMBERS,
    CLOSING_ABBREVIATIONS,
    LEANING_OPENINGS,
    OPEN_ABBREVIATIONS,
    POINTERS,
    UNIT_ABBREVIATIONS,
)
from language.words import words

Span = tuple[int, int]

LONGEST_SENTENCE_WORDS = 100

_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]*_`]*+(?=\s)")
_NEXT = re.compile(r"[\s\"'“„‘«(\[*_`—–-]*(\S)")
_LAST_TOKEN = re.compile(r"[^\W_]+(?:[.-][^\W_]+)*$")
_CLAUSE_END = re.compile(
    r"[,;:—–(]|\s(?:and|but|or|until|because|which|who|when|if|that|as|since|while|where|than|"
    r"и|но|а|или|что|чтобы|когда|если|потому|пока|хотя|как)\s"
)
_SPOKEN_BY_PRONOUN = re.compile(r"[»”\"],?\s+(?:[—–-]\s+)?(?:\w+\s+)?(?:she|he|they|он|она|они)\b")
_QUESTION = re.compile(
    r"^\W*(?:(?:а|и|так|and|so|but)\s+)?(?:who|what|when|where|why|how|which|whose|do|does|did|is|are|can|could|should|"
    r"кто|что|когда|где|куда|почему|зачем|как|какой|какая|какие|каком|сколько|чей|чья|напомни)\b",
    re.IGNORECASE,
)
_PAIRS = (("(", ")"), ("[", "]"), ("«", "»"), ("“", "”"))
_TOGGLES = ("**", "*", "`", '"')
_LONGEST_MERGE_CHARS = 600
# A token before a full stop is looked for no farther back than this.
_LONGEST_TOKEN_CHARS = 40
# A sentence that has to be cut without an end keeps at least this many words.
_FEWEST_WORDS = 20


def sentence_spans(text: str, start: int = 0, end: int | None = None) -> Iterator[Span]:
    """Spans of the sentences between two places, without the space between them."""
    stop = len(text) if end is None else end
    begin = _skip_space(text, start, stop)
    for mark in _END.finditer(text, begin, stop):
        if begin < mark.start() and _ends_sentence(text, begin, mark, stop):
            yield begin, mark.end()
            begin = _skip_space(text, mark.end(), stop)
    if begin < stop:
        yield begin, stop


def sentences(text: str) -> list[str]:
    """Sentences of a text, verbatim but for white space; brackets, quotations and emphasis are never cut."""
    flat = " ".join(text.split())
    found: list[str] = []
    pending = ""
    for start, end in sentence_spans(flat):
        pending = f"{pending} {flat[start:end]}" if pending else flat[start:end]
        if _is_balanced(pending) or len(pending) > _LONGEST_MERGE_CHARS:
            found.extend(parts_of_at_most(LONGEST_SENTENCE_WORDS, pending))
            pending = ""
    found.extend(parts_of_at_most(LONGEST_SENTENCE_WORDS, pending))
    return found


def parts_of_at_most(limit: int, sentence: str) -> Iterator[str]:
    """Parts of a sentence of at most `limit` words each, cut behind a comma where there is one."""
    tokens = sentence.split()
    while len(tokens) > limit:
        cut = next((at for at in range(limit, _FEWEST_WORDS, -1) if tokens[at - 1][-1] in ",;:—"), limit)
        yield " ".join(tokens[:cut])
        tokens = tokens[cut:]
    if tokens:
        yield " ".join(tokens)


def is_question(text: str) -> bool:
    """Check whether the last sentence asks something."""
    last = sentences(text)[-1:] or [""]
    return last[0].rstrip(')»" ').endswith("?") or bool(_QUESTION.match(last[0]) and len(words(last[0])) > 1)


def leans_back(sentence: str) -> bool:
    """Whether it needs the one before: it opens by pointing back, or its first clause or its speaker is a pronoun."""
    clause = [word.lower() for word in words(_CLAUSE_END.split(sentence, maxsplit=1)[0])]
    opening = tuple(word.lower() for word in words(sentence[:60])[:4])
    points_back = any(opening[:length] in LEANING_OPENINGS for length in range(1, len(opening) + 1))
    return points_back or not POINTERS.isdisjoint(clause) or bool(_SPOKEN_BY_PRONOUN.search(sentence))


def _ends_sentence(text: str, begin: int, mark: re.Match[str], end: int) -> bool:
    following = _NEXT.match(text, mark.end(), end)
    if following is None:
        return True
    if following[1].islower() or following[1] in ".,;:!?…":
        return False
    return mark[0][0] != "." or mark[0][1:2] == "." or not _is_abbreviation(text, begin, mark.start(), following[1])


def _is_abbreviation(text: str, begin: int, dot: int, following: str) -> bool:
    token = _LAST_TOKEN.search(text, max(begin, dot - _LONGEST_TOKEN_CHARS), dot)
    if token is None:
        return False
    lower, before = token[0].lower(), text[begin : token.start()].rstrip()
    if lower in UNIT_ABBREVIATIONS:  # "в 2019 г. Она…" ends, "г. Москва" does not
        return not before[-1:].isdigit()
    if lower.isdecimal():  # of an item
        return len(lower) < 4 and not before.strip("\"'«“(*_[—–-")
    if lower in CLOSING_ABBREVIATIONS:
        return False
    is_initial = len(lower) == 1 and token[0].isupper()
    is_before_number = lower in ABBREVIATIONS_BEFORE_NUMBERS and following.isdecimal()
    return is_initial or lower in OPEN_ABBREVIATIONS or is_before_number


def _is_balanced(piece: str) -> bool:
    # A cut inside brackets, quotes or emphasis would leave broken Markdown on both sides.
    return all(piece.count(left) <= piece.count(right) for left, right in _PAIRS) and all(
        piece.replace("**", "" if mark == "*" else "**").count(mark) % 2 == 0 for mark in _TOGGLES
    )


def _skip_space(text: str, start: int, end: int) -> int:
    while start < end and text[start].isspace():
        start += 1
    return start
