"""Recognition of names in English and Russian: given names, well-known places, capitalised words, titles, codes."""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache
from importlib import resources

from language.word_lists import LATIN_WORDS, NEVER_NAMES, SENTENCE_OPENERS, SMALL_TALK
from language.words import stem_key

# Stems that are a common word more often than a name.
_WORDS_FIRST = frozenset(
    ("слав", "роман", "вер", "люд", "свет", "тон", "mark", "rose", "ray", "stan", "may", "dean", "amber", "daisi")
)
# Stems of Павел, Лев, Пётр in the cases in which they lose a vowel.
_FLEETING = frozenset(("павл", "льв", "петр"))


@cache
def given_names(language: str) -> tuple[str, ...]:
    """Given names in their dictionary form; `language` is `en` or `ru`."""
    return _listed(f"given_names_{language}")


def is_given_name(word: str) -> bool:
    """Whether a capitalised word is a given name, in any grammatical case."""
    return word[:1].isupper() and stem_key(word) in _given()


def is_place(word: str) -> bool:
    """Whether a capitalised word is a well-known town or country, in any grammatical case."""
    return word[:1].isupper() and stem_key(word) in _places()


@cache
def _given() -> frozenset[str]:
    names = (*given_names("en"), *given_names("ru"))
    return frozenset(map(stem_key, names)) - _WORDS_FIRST | _FLEETING


@cache
def _places() -> frozenset[str]:
    return frozenset(map(stem_key, _listed("places")))


def _listed(name: str) -> tuple[str, ...]:
    return tuple((resources.files("language") / "data" / f"{name}.txt").read_text(encoding="utf-8").split())


_TOKEN = re.compile(r"[^\W_]+(?:[-'’.&+/_#@:][^\W_]+)*[+#]*")
_CYRILLIC = re.compile(r"[А-Яа-яЁё]")
_ADDRESS = re.compile(
    r"https?://\S+[\w/]|www\.\S+[\w/]|[\w.+-]+@[\w-]+\.[\w.-]+\w|(?<![\w.])@[\w.-]*\w|(?<!\w)#[^\W\d]\w+"
)
_QUOTED = re.compile(r"[«“„]([^«»“”„\"]{2,60})[»”]|(?<!\w)\"([^\"]{2,60})\"(?!\w)")
_POSSESSIVE = re.compile(r"['’]s?$")
_CONNECTED = re.compile(r"\s+|\s(?:of|de|la|van|von|der|du|&|and the)\s")
_CODE = re.compile(r"\d.*[^\W\d]|[^\W\d].*\d|[a-zа-яё][A-ZА-ЯЁ]|^[A-ZА-ЯЁ]{2,6}$")
_SURNAME = re.compile(
    r"[а-яё]{2}(?:[оеё]в|[ыи]н|[оеё]ва|[ыи]на|ск(?:ий|ая|ого|ому|ой)|енко|швили|[ая]нян)(?:[ауые]|ым|ой)?$"
)
# What stands before these at the beginning of a sentence is somebody or something, called so where it has no article.
_ACTS = re.compile(
    r"\s(?:is|was|has|had|will|said|says|wants?|wanted|agreed|called|asked|told|sent|joined|left|moved|lives|works|"
    r"announced|released|offered|promised|confirmed|approved|prefers|[a-z]{3,}ed|and(?=\s[A-Z]))\b"
)
# 1С, 3D, 5G.
_NUMBERED = re.compile(r"\d{1,3}[A-ZА-ЯЁ]")
# A figure behind a name is the model of a thing: always of one like iPhone, of others where it counts nothing else.
_MODEL = re.compile(r"\s\d{1,4}(?![\w.,:%]*\d|\s?[%$€₽])\b")
_COUNTS = re.compile(
    r"\s+(?!(?:a|an|and|as|at|by|for|from|in|is|of|on|or|the|to|was|with|в|для|до|за|и|из|или|на|но|от|с|у)\b)\w"
)
_COINED = re.compile(r"^[a-z]+[A-Z]")
_CLASSES = re.compile(
    r"\b(?:ООО|ОАО|ЗАО|ПАО|АО|ИП|проект|компани|фирм|банк|студи|агентств|фонд|завод|ресторан|кафе|отел|"
    r"журнал|газет|книг|фильм|игр|платформ|сервис|тариф|курс)\w{0,3}\s$",
    re.IGNORECASE,
)
_LONGEST_QUOTED_WORDS = 6


@dataclass(frozen=True)
class Name:
    """A name with its span in a sentence."""

    start: int
    end: int
    text: str


class NameFinder:
    """Finder of names in the sentences of a text, by the words that all of them write large or small."""

    def __init__(self, sentences: Iterable[str]) -> None:
        self._capitals: set[str] = set()
        self._lowercase: set[str] = set()
        for sentence in sentences:
            self._learn(sentence)

    def find(self, text: str) -> Iterator[Name]:
        """Every name in a sentence."""
        taken: list[tuple[int, int]] = []
        for pattern in (_ADDRESS, _QUOTED):
            for match in pattern.finditer(text):
                start, end = match.span(match.lastindex or 0)
                if pattern is _ADDRESS:
                    end = start + len(text[start:end].rstrip(".,;:!?"))
                elif not self._titles(text[start:end]):
                    continue
                elif sort := _CLASSES.search(text[: match.start()]):
                    # «Ромашка» alone may be anything.
                    start, end = sort.start(), match.end()
                taken.append((start, end))
                yield Name(start, end, text[start:end])
        for called in self._capitalised(text):
            if not any(called.start < end and start < called.end for start, end in taken):
                yield called

    def _learn(self, text: str) -> None:
        for match in _TOKEN.finditer(text):
            word = match[0]
            key = stem_key(_POSSESSIVE.sub("", word))
            if word[:1].islower():
                self._lowercase.add(key)
            elif word[:1].isupper() and not _opens(text, match.start()) and not _is_shouted(word):
                self._capitals.add(key)

    def _titles(self, quoted: str) -> bool:
        """Check whether a quotation is a title rather than speech."""
        return len(quoted.split()) <= _LONGEST_QUOTED_WORDS and quoted[:1].isupper() and quoted[-1:] not in ".!?…,"

    def _capitalised(self, text: str) -> Iterator[Name]:
        run: list[re.Match[str]] = []
        is_russian = bool(_CYRILLIC.search(text))
        for match in _TOKEN.finditer(text):
            if run and not _CONNECTED.fullmatch(text[run[-1].end() : match.start()]):
                yield from self._named(text, run)
                run = []
            if self._may_name(text, match, is_russian=is_russian):
                run.append(match)
            elif match[0] not in ("of", "de", "la", "van", "von", "der", "du"):
                yield from self._named(text, run)
                run = []
        yield from self._named(text, run)

    def _may_name(self, text: str, match: re.Match[str], *, is_russian: bool) -> bool:
        word = match[0]
        if word.lower() in NEVER_NAMES or word[:1].isdigit():
            return bool(_NUMBERED.match(word))
        if _CODE.search(word):
            return True
        if word[:1].isupper():
            return len(word) > 1
        return is_russian and word.isascii() and len(word) > 2 and word not in LATIN_WORDS

    def _named(self, text: str, run: list[re.Match[str]]) -> Iterator[Name]:
        while run and _opens(text, run[0].start()) and not self._is_name(run[0][0], run[1:], text[run[0].end() :]):
            run = run[1:]
        if len(run) > 2 and all(_is_shouted(match[0]) for match in run):
            return
        if run:
            start, end = run[0].start(), run[-1].end()
            model = _MODEL.match(text, end)
            if model and (
                _COINED.match(run[-1][0]) or not (is_given_name(run[-1][0]) or _COUNTS.match(text, model.end()))
            ):
                end = model.end()
            name = _POSSESSIVE.sub("", text[start:end])
            yield Name(start, start + len(name), name)

    def _is_name(self, word: str, followed: Sequence[re.Match[str]], following: str) -> bool:
        """Check the first word of a sentence, which is capitalised whether it is a name or not."""
        bare = _POSSESSIVE.sub("", word)
        if bare.lower() in SENTENCE_OPENERS or bare.lower() in SMALL_TALK or "n't" in bare.replace("’", "'"):
            return False
        key = stem_key(bare)
        if _CODE.search(bare) or is_given_name(bare) or is_place(bare) or key in self._capitals:
            return True
        if key in self._lowercase or (followed and is_given_name(followed[0][0])):
            return False
        return bool(followed) or bool(_SURNAME.search(bare)) or bool(_ACTS.match(following))


def _opens(text: str, start: int) -> bool:
    """Check whether a sentence or a quotation begins here."""
    before = text[:start].rstrip()
    return not before.strip("\"'«“„(*_[—–-") or before[-1] in '"«“„'


def _is_shouted(word: str) -> bool:
    return len(word) > 1 and word.isupper()


def is_person(name: str, speakers: Set[str]) -> bool:
    """Check whether a name has a given name in it or the word of a speaker; `speakers` are stem keys."""
    return any(is_given_name(word) or stem_key(word) in speakers for word in name.split())
