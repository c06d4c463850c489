"""Words of English and Russian texts: language, tokens, Snowball stems, forms of English verbs."""

import re
import threading
import unicodedata
from collections.abc import Iterator
from enum import StrEnum
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise

import Stemmer

from language.word_lists import SEARCH_STOP_WORDS, SMALL_TALK, STOP_WORDS


class Language(StrEnum):
    ENGLISH = "en"
    RUSSIAN = "ru"


_WORD = re.compile(r"[^\W_]+(?:(?:[-'’.]|(?<=\d),(?=\d))[^\W_]+)*")
_INDEXED_WORD = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")
# Where a word may break over two lines; texts that stay as they are have it within words.
SOFT_HYPHEN = "\xad"
_MAY_BREAK = re.compile(rf"{SOFT_HYPHEN}(?:\r?\n)?")
_JOINT = re.compile(r"[-'’.]")
_CYRILLIC = re.compile(r"[\u0400-\u04FF]")
_LATIN = re.compile(r"[A-Za-z]")
# Names and terms inside a Russian text are often Latin, the reverse is rare: Russian wins before it has the majority.
_RUSSIAN_SHARE = 0.3
# Longer tokens are digests and encoded files, which would only fill the index.
_LONGEST_INDEXED_CHARS = 64
# Against Qwen2.5's vocabulary on 206 chat messages that the constants were not fitted to: 5 % too few tokens in
# English, 8 % too many in Russian; 9 of 10 messages between 0.82 and 1.22 of their tokens.
_PIECE = re.compile(r"[^\W\d_]+|\d|[^\w\s]")
_SYMBOL = 0.8
# An English word of up to six letters is one token; the rest of a longer one, a token for every four letters.
_SHORT_WORD, _LETTERS_OF_REST = 6, 4
_CYRILLIC_WORD, _LETTERS_OF_CYRILLIC = 0.7, 3
# Role and separators of a chat message.
MESSAGE_TOKENS = 4
_SIGNS = str.maketrans({"%": " percent ", "$": " dollar ", "€": " euro ", "£": " pound ", "₽": " руб "})


_MINUS = re.compile(r"(?<!\S)[-−](?=\d)")


def with_signs_as_words(text: str) -> str:
    """A text with words for the signs of currencies, per cent and negative numbers, which are none: $20 is not €20."""
    return _MINUS.sub("minus ", text.translate(_SIGNS))


def language_of(text: str) -> Language:
    """Russian where at least 30 % of the letters are Cyrillic, else English."""
    return _known_language(text) if len(text) <= _KNOWN_CHARS else language_by_letters(text)


def language_by_letters(text: str) -> Language:
    """The language of a text, as `language_of` tells it, which is not remembered."""
    cyrillic = len(_CYRILLIC.findall(text))
    latin = len(_LATIN.findall(text))
    is_russian = cyrillic > 0 and cyrillic / (cyrillic + latin) >= _RUSSIAN_SHARE
    return Language.RUSSIAN if is_russian else Language.ENGLISH


def has_cyrillic(text: str) -> bool:
    """Whether a text has a Cyrillic letter."""
    return bool(_CYRILLIC.search(text))


def without_gaps(text: str) -> str:
    """A text with one space, one line break or one empty line in place of longer white space.

    Each place of a long run would be tried by patterns that begin with white space, with all that follow.
    """
    lines = [" ".join(line.split()) for line in text.strip().splitlines()]
    return "\n".join(line for before, line in pairwise(["", *lines]) if before or line)


def words(text: str) -> list[str]:
    """Words and numbers as written; hyphens, apostrophes, decimal points and thousands separators join them."""
    return _WORD.findall(text)


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Snowball stem by the word's own alphabet, in small letters, «ё» as «е»."""
    lowered = word.lower().replace("ё", "е").replace("’", "'")
    stemmer = _stemmers.russian if has_cyrillic(lowered) else _stemmers.english
    return str(stemmer.stemWord(lowered))


def is_meaningful(word: str) -> bool:
    """Whether a word is neither a stop word nor a single letter."""
    lowered = word.lower().replace("’", "'")
    return lowered not in STOP_WORDS and (len(lowered) > 1 or lowered.isdigit())


def terms(text: str) -> list[str]:
    """Stems of the meaningful words, in order."""
    return [stem(word) for word in words(text) if is_meaningful(word)]


def stems(text: str) -> Iterator[str]:
    """Index terms of a text, in order: the stem of every word; of a joined word its parts, then the whole."""
    for word in _indexed_words(text):
        yield from _forms(word)


def query_stems(text: str) -> dict[str, str]:
    """Index terms of a query with the words they come from, without stop words unless it has nothing else."""
    found = list(_indexed_words(text))
    meaningful = [word for word in found if word.lower() not in SEARCH_STOP_WORDS]
    forms: dict[str, str] = {}
    for word in meaningful or found:
        for form in _forms(word):
            forms.setdefault(form, word)
    return forms


def stem_key(text: str) -> str:
    """Stems of a text joined by spaces: equal for every grammatical form of the same words; 5 % differs from 5."""
    return " ".join(stems(text.translate(_SIGNS)))


@cache
def small_talk_stems() -> frozenset[str]:
    """Index terms of every conversation, which tell nothing about this one."""
    return frozenset(form for word in SMALL_TALK for form in stems(word))


def first_words(text: str, limit: int) -> str:
    """The beginning of a text, cut between words."""
    kept = text.split()
    return text if len(kept) <= limit else " ".join(kept[:limit]).rstrip(",;:–—-.") + "…"


def estimated_tokens(text: str) -> int:
    """Number of tokens of a text, without a tokenizer; scripts other than Latin and Cyrillic count a token a letter."""
    return _known_tokens(text) if len(text) <= _KNOWN_CHARS else _count_tokens(text)


def _count_tokens(text: str) -> int:
    return round(sum(map(_tokens_of, _PIECE.findall(text))))


def word_count(text: str) -> int:
    """Number of words."""
    return _known_words(text) if len(text) <= _KNOWN_CHARS else _count_words(text)


def _count_words(text: str) -> int:
    return len(words(text))


# The messages of a talk are weighed for each of its answers; the last of them is looked at from many sides.
_KNOWN_CHARS = 4096
_known_tokens = lru_cache(maxsize=4096)(_count_tokens)
_known_words = lru_cache(maxsize=4096)(_count_words)
_known_language = lru_cache(maxsize=256)(language_by_letters)


def _tokens_of(piece: str) -> float:
    if piece.isascii() and piece.isalpha():
        return 1 + max(0, len(piece) - _SHORT_WORD) / _LETTERS_OF_REST
    if "\u0400" <= piece[0] <= "\u04ff":
        return _CYRILLIC_WORD + len(piece) / _LETTERS_OF_CYRILLIC
    if piece.isalpha():
        return float(len(piece))
    return 1.0 if piece.isdigit() else _SYMBOL


def _indexed_words(text: str) -> Iterator[str]:
    if SOFT_HYPHEN in text:
        text = _MAY_BREAK.sub("", text)
    for match in _INDEXED_WORD.finditer(unicodedata.normalize("NFKC", text)):
        yield match[0]


def _forms(word: str) -> Iterator[str]:
    parts = _JOINT.split(word) if _JOINT.search(word) else [word]
    # «e-mail» is «email», too.
    for part in [*parts, "".join(parts)] if len(parts) > 1 else parts:
        if len(part) <= _LONGEST_INDEXED_CHARS:
            yield stem(part)


class _Stemmers(threading.local):
    """A stemmer keeps state between calls, so no two threads may share one."""

    def __init__(self) -> None:
        self.english = Stemmer.Stemmer("english")
        self.russian = Stemmer.Stemmer("russian")


_stemmers = _Stemmers()


# These end like the past of a verb.
_NO_PAST = frozenset(
    ["need", "feed", "speed", "indeed", "exceed", "proceed", "succeed", "weed", "seed", "bleed", "breed"]
)


@cache
def bases() -> dict[str, str]:
    """The base of every form of English verbs; of a regular verb `verbs_en.txt` has the base alone."""
    lines = (resources.files("language") / "data" / "verbs_en.txt").read_text(encoding="utf-8").splitlines()
    verbs = [line.split() for line in lines]
    return {form: base for base, *forms in verbs for form in (base, *(forms or [_past(base)]))}


def is_base(word: str) -> bool:
    """Whether a word may be the base form of one of the verbs."""
    return word in _base_forms()


def is_past(word: str) -> bool:
    """Whether a word is the past or the participle of a verb, known or regular, and no base."""
    is_regular = len(word) > 4 and word.endswith("ed") and word not in _NO_PAST
    return word not in _base_forms() and (word in bases() or is_regular)


def base_of(word: str) -> str:
    """The base of a verb: of a known form, of its participle in -ing, or of its third person."""
    if is_third_person(word):
        return next(base for base in (word[:-1], word[:-2]) if is_base(base))
    if word in bases() or not word.endswith("ing"):
        return bases().get(word, word)
    stem = word.removesuffix("ing")
    doubled = stem[:-1] if len(stem) > 2 and stem[-1] == stem[-2] else stem
    return next((each for each in (stem, f"{stem}e", doubled) if each in _base_forms()), word)


def is_third_person(word: str) -> bool:
    """Whether a word is the third person of one of the verbs: "brings"."""
    return (
        word.endswith("s")
        and not is_base(word)
        and (is_base(word[:-1]) or (word.endswith("es") and is_base(word[:-2])))
    )


@cache
def _base_forms() -> frozenset[str]:
    return frozenset(bases().values())


def _past(base: str) -> str:
    if base.endswith("e"):
        return f"{base}d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return f"{base[:-1]}ied"
    return f"{base}ed"
