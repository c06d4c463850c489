"""Recognition of people's names in any grammatical case."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from language.names import given_names
from language.russian import nominative, word_forms

_NAME = re.compile(r"(?<![\w@])@?[A-ZА-ЯЁ][\w-]*[^\W_]|(?<![\w.])@[\w.-]*[^\W_]")
# The name to call them by, their user id where they are known.
_Meant = tuple[str, str | None]
_CYRILLIC = re.compile(r"[А-Яа-яЁё]")
_OPENING = " \t\"'«“„(*_[—–-•"
# Share of a word's uses as a name from which it is one: where a sentence begins, and inside it.
_LIKELY_SHARE, _POSSIBLE_SHARE = 0.25, 0.005
# Павел, but Павла: these lose a vowel.
_FLEETING = {"павел": "павл", "лев": "льв", "пётр": "петр", "петр": "петр"}
_CONSONANT = ("", "а", "у", "ом", "ем", "е")
_SOFT = ("й", "ь", "я", "ю", "ем", "ём", "е", "и")
# Of names in these letters, in the place of the letter; other names take those of a consonant.
_ENDINGS = {
    "а": ("а", "ы", "и", "е", "у", "ой", "ою", "ей"),
    "я": ("я", "и", "е", "ю", "ей", "ею", "ёй"),
    "й": _SOFT,
    "ь": _SOFT,
}


@dataclass(frozen=True)
class Person:
    """A known user; the first name is how to refer to them."""

    user_id: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Mention:
    """A name in a text: its dictionary form, with whose it is if they are known."""

    start: int
    end: int
    name: str
    user_id: str | None = None


class KnownPeople:
    """Lookup of known users by name, besides given names in general."""

    def __init__(self, known: Iterable[Person] = ()) -> None:
        self._forms: dict[str, _Meant] = {}
        self._ids: dict[str, _Meant] = {}
        for person in known:
            self._ids[person.user_id.lower()] = (person.names[0] if person.names else person.user_id, person.user_id)
            for name in person.names:
                # Who is known in two alphabets is spoken of in the one in which they were named.
                main = next(each for each in person.names if _is_cyrillic(each) == _is_cyrillic(name))
                self._forms.update(dict.fromkeys(forms_of(name.split()[0]), (main, person.user_id)))

    def mentions(self, text: str) -> list[Mention]:
        return list(self._found(text))

    def named(self, name: str) -> Mention | None:
        """The person of a name that stands alone."""
        return next(iter(self.mentions(name[:1].upper() + name[1:])), None)

    def name_of(self, user_id: str) -> str:
        return self._ids.get(user_id.lower(), (user_id, None))[0]

    def _found(self, text: str) -> Iterator[Mention]:
        last: Mention | None = None
        for match in _NAME.finditer(text):
            word = match[0].removeprefix("@").lower()
            known = self._ids.get(word) if match[0].startswith("@") else None
            begins = not text[: match.start()].strip(_OPENING) or text[: match.start()].rstrip()[-1:] in ".!?:\n"
            meant = known or self._of(word, begins=begins) or self._of(word.split("-")[0], begins=begins)
            if last and text[last.end : match.start()] == " " and (second := _second_name(word)):
                # «Анна Сергеевна», «Иван Петров»: one person.
                name = last.name if second.lower() in last.name.lower() else f"{last.name} {second}"
                last = Mention(last.start, match.end(), name, last.user_id)
                continue
            if last:
                yield last
            last = Mention(match.start(), match.end(), *meant) if meant else None
        if last:
            yield last

    def _of(self, word: str, *, begins: bool) -> _Meant | None:
        form = _plain(word)
        if known := self._forms.get(form):
            return known
        return _russian_name(word, begins) if _is_cyrillic(word) else _everybody().get(form)


def same_name(one: str, other: str) -> bool:
    """Check whether two words may be forms of one name."""
    return bool(set(forms_of(one)) & set(forms_of(other)))


def forms_of(name: str) -> Iterable[str]:
    """The forms in which a name may stand in a sentence, in small letters."""
    plain = _plain(name.lower())
    if not _CYRILLIC.search(plain):
        return {plain, f"{plain}s"} if plain.endswith(("'", "’")) else {plain}
    if plain in _FLEETING:
        return {plain, *(_FLEETING[plain] + ending for ending in _CONSONANT + _SOFT if ending)}
    return {plain, *_declined(plain)}


def _declined(name: str) -> Iterator[str]:
    if endings := _ENDINGS.get(name[-1]):
        return (name[:-1] + ending for ending in endings)
    return (name + ending for ending in _CONSONANT)


def _is_cyrillic(name: str) -> bool:
    return bool(_CYRILLIC.search(name))


def _plain(name: str) -> str:
    return name.replace("ё", "е")


def _russian_name(word: str, begins: bool) -> _Meant | None:
    """A given name by the dictionary; one that is rather another word, like «Свет», is none where a sentence begins."""
    share = sum(form.score for form in word_forms(word) if form.has("Name") and form.is_known)
    if share < (_LIKELY_SHARE if begins and word not in _common_names() else _POSSIBLE_SHARE):
        return None
    return name_in(word), None


def name_in(word: str, cases: Collection[str] = ("nomn",)) -> str:
    """The nominative of a given name that stands in one of these cases, as far as the dictionary has it so."""
    readings = [form for form in word_forms(word) if form.has("Name") or form.has("Surn")]
    fitting = [form for form in readings if form.has("sing") and not form.grammemes.isdisjoint(cases)]
    other = [form for form in readings if form.has("sing")]
    ranked = sorted([*fitting, *other, *readings], key=lambda form: form.lemma not in _common_names())
    nominatives = [form for form in fitting if form.has("nomn")] if "nomn" in cases else []
    lemma = next(iter([*nominatives, *ranked]), None)
    return "-".join(part.capitalize() for part in (lemma.lemma if lemma else word).split("-"))


@cache
def _common_names() -> frozenset[str]:
    """Names that many people have: of two that a form may be of, the one that is meant."""
    return frozenset(name.lower() for name in given_names("ru"))


def _second_name(word: str) -> str:
    """The nominative of a patronymic or a surname; empty for other words."""
    kind = (
        next((kind for form in word_forms(word) for kind in ("Patr", "Surn") if form.has(kind)), "")
        if (_is_cyrillic(word))
        else ""
    )
    return nominative(word, kind).capitalize() if kind else ""


@cache
def _everybody() -> Mapping[str, _Meant]:
    """The forms of English given names."""
    return {form: (given, None) for given in given_names("en") for form in forms_of(given)}
