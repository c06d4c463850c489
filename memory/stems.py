"""Words of a text as a search knows them, in English or Russian."""

import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

import Stemmer


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WORD = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")
_JOINT = re.compile(r"[-'’.]")
_CYRILLIC = re.compile(r"[\u0400-\u04FF]")
# What is longer is no word: a digest, a blob. Long ones would only fill the index.
_LONGEST = 64
# Every text has these; a question that has others is not about them.
_STOP_WORDS = _listed(
    """
    a about all am an and any are as at be been but by can could did do does for from had has have he her him his how
    i if in into is it its me my no not of on one or our she should so some than that the their them then there these
    they this those to up us was we were what when where which who whom whose why will with would you your
    а без более будет будут бы был была были было быть в вам вас ведь во вот все всё вы где да для до его ее её ей если
    есть еще ещё же за зачем и из или им их к как какая какие каким какими каких какой каком какому какое какую ко когда
    кого кому которая которое которые который кто куда ли либо мне может можно мы на над нам нас не него нее неё нет ни
    них но ну о об он она они оно от перед по под почему при про с сколько со так также такой там то того тоже той
    только том тот ты у уже чего чей чем через что чтобы чья эта эти это этого этой этом этот эту я
    """
)


def stems(text: str) -> Iterator[str]:
    """The stem of every word, in order; of a word with joints its parts, then the whole: «e-mail» is «email», too."""
    for word in _words(text):
        yield from _forms(word)


def questioned(text: str) -> dict[str, str]:
    """The stems that a question asks for, each with the word that it was; of nothing but small words, those."""
    words = list(_words(text))
    meant = [word for word in words if word.lower() not in _STOP_WORDS]
    found: dict[str, str] = {}
    for word in meant or words:
        for form in _forms(word):
            found.setdefault(form, word)
    return found


def _words(text: str) -> Iterator[str]:
    for found in _WORD.finditer(unicodedata.normalize("NFKC", text)):
        yield found[0]


def _forms(word: str) -> Iterator[str]:
    parts = _JOINT.split(word) if _JOINT.search(word) else [word]
    for part in [*parts, "".join(parts)] if len(parts) > 1 else parts:
        if len(part) <= _LONGEST:
            yield _stem(part)


class _Stemmers(threading.local):
    """A stemmer keeps state between calls, so no two threads may share one."""

    def __init__(self) -> None:
        self.english = Stemmer.Stemmer("english")
        self.russian = Stemmer.Stemmer("russian")


_stemmers = _Stemmers()


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    lowered = word.lower().replace("ё", "е")
    stemmer = _stemmers.russian if _CYRILLIC.search(lowered) else _stemmers.english
    return str(stemmer.stemWord(lowered))
