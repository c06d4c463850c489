"""Sentences, words, stems of a text in English or Russian."""

import re
import threading
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache

import Stemmer

from agents.words import CLOSING_ABBREVIATIONS, LEANING_OPENINGS, OPEN_ABBREVIATIONS, POINTERS, STOP_WORDS


class Language(StrEnum):
    ENGLISH = "en"
    RUSSIAN = "ru"


LONGEST_SENTENCE_WORDS = 100

_WORD = re.compile(r"[^\W_]+(?:(?:[-'’.]|(?<=\d),(?=\d))[^\W_]+)*")
_CYRILLIC = re.compile(r"[\u0400-\u04FF]")
_LATIN = re.compile(r"[A-Za-z]")
# Names and terms inside a Russian text are often Latin, the reverse is rare: Russian wins before it has the majority.
_RUSSIAN_SHARE = 0.3

_BREAK = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]*_`]*+(?=\s)")
_INITIAL = re.compile(r"(?:^|[\s(«“\"])[A-ZА-ЯЁ]\.$")
_NUMBERING = re.compile(r"^\W*\d{1,3}\.$")
_LAST_TOKEN = re.compile(r"[^\s(«“\"]+$")
_CLAUSE_END = re.compile(
    r"[,;:—–(]|\s(?:and|but|or|until|because|which|who|when|if|that|as|since|while|where|than|"
    r"и|но|а|или|что|чтобы|когда|если|потому|пока|хотя|как)\s"
)
_SPOKEN_BY_PRONOUN = re.compile(r"[»”\"],?\s+(?:[—–-]\s+)?(?:\w+\s+)?(?:she|he|they|он|она|они)\b")
_PAIRS = (("(", ")"), ("[", "]"), ("«", "»"), ("“", "”"))
_TOGGLES = ("**", "*", "`", '"')
_LONGEST_MERGE_CHARS = 600


def language_of(text: str) -> Language:
    cyrillic = len(_CYRILLIC.findall(text))
    latin = len(_LATIN.findall(text))
    is_russian = cyrillic > 0 and cyrillic / (cyrillic + latin) >= _RUSSIAN_SHARE
    return Language.RUSSIAN if is_russian else Language.ENGLISH


def words(text: str) -> list[str]:
    return _WORD.findall(text)


def stem(word: str) -> str:
    """The stem by the word's own alphabet, so that mixed texts work."""
    return _stem(word.lower().replace("ё", "е").replace("’", "'"))


def is_meaningful(word: str) -> bool:
    lowered = word.lower().replace("’", "'")
    return lowered not in STOP_WORDS and (len(lowered) > 1 or lowered.isdigit())


def terms(text: str) -> list[str]:
    """The stems of the words that carry meaning, in order."""
    return [stem(word) for word in words(text) if is_meaningful(word)]


def sentences(text: str) -> list[str]:
    """Cut prose into sentences, each verbatim but for white space."""
    found: list[str] = []
    pending = ""
    for piece in _pieces(" ".join(text.split())):
        pending = f"{pending} {piece}" if pending else piece
        if _is_whole(pending) or len(pending) > _LONGEST_MERGE_CHARS:
            found.extend(_bounded(pending))
            pending = ""
    found.extend(_bounded(pending) if pending else ())
    return found


def leans_back(sentence: str) -> bool:
    """Whether it needs the one before: it opens by pointing back, or its first clause or its speaker is a pronoun."""
    clause = [word.lower() for word in words(_CLAUSE_END.split(sentence, maxsplit=1)[0])]
    opening = tuple(word.lower() for word in words(sentence[:60])[:4])
    points_back = any(opening[:length] in LEANING_OPENINGS for length in range(1, len(opening) + 1))
    return points_back or not POINTERS.isdisjoint(clause) or bool(_SPOKEN_BY_PRONOUN.search(sentence))


def first_words(text: str, limit: int) -> str:
    """The beginning of a text, cut between words."""
    kept = text.split()
    return text if len(kept) <= limit else " ".join(kept[:limit]).rstrip(",;:–—-.") + "…"


def _pieces(text: str) -> Iterator[str]:
    start = 0
    for end in _BREAK.finditer(text):
        if _ends_sentence(text, start, end):
            yield text[start : end.end()].strip()
            start = end.end()
    if text[start:].strip():
        yield text[start:].strip()


def _ends_sentence(text: str, start: int, end: re.Match[str]) -> bool:
    following = text[end.end() : end.end() + 8].lstrip("\"'“‘«([*_`—–- ")
    if not following or following[0].islower() or following[0] in ".,;:!?…":
        return False
    before = text[max(start, end.start() - 24) : end.start() + 1]
    if end[0][0] != ".":
        return True
    if _INITIAL.search(before) or _NUMBERING.match(text[start : end.start() + 1].strip()):
        return False
    last = _LAST_TOKEN.search(before[:-1])
    token = last[0].lower().lstrip("*_`") if last else ""
    if token == "г":  # "в 2019 г. Она…" ends, "г. Москва" does not
        return bool(re.search(r"\d\s*г$", before[:-1]))
    return token in CLOSING_ABBREVIATIONS or token not in OPEN_ABBREVIATIONS


def _is_whole(piece: str) -> bool:
    # A cut inside brackets, quotes or emphasis would leave broken Markdown on both sides.
    return all(piece.count(left) <= piece.count(right) for left, right in _PAIRS) and all(
        piece.replace("**", "" if mark == "*" else "**").count(mark) % 2 == 0 for mark in _TOGGLES
    )


def _bounded(sentence: str) -> Iterator[str]:
    tokens = sentence.split(" ")
    while len(tokens) > LONGEST_SENTENCE_WORDS:
        window = tokens[:LONGEST_SENTENCE_WORDS]
        cut = next((at + 1 for at in range(len(window) - 1, 20, -1) if window[at][-1:] in ",;:"), len(window))
        yield " ".join(tokens[:cut])
        tokens = tokens[cut:]
    yield " ".join(tokens)


class _Stemmers(threading.local):
    """A stemmer keeps state between calls, so no two threads may share one."""

    def __init__(self) -> None:
        self.english = Stemmer.Stemmer("english")
        self.russian = Stemmer.Stemmer("russian")


_stemmers = _Stemmers()


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    stemmer = _stemmers.russian if _CYRILLIC.search(word) else _stemmers.english
    return str(stemmer.stemWord(word))
