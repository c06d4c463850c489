"""Recognition of people's names in any grammatical case."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from language.names import given_names

_NAME = re.compile(r"(?<![\w@])@?[A-ZА-ЯЁ][\w-]*[^\W_]|(?<![\w.])@[\w.-]*[^\W_]")
# The name to call them by, their user id where they are known.
_Meant = tuple[str, str | None]
_CYRILLIC = re.compile(r"[А-Яа-яЁё]")
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
        for match in _NAME.finditer(text):
            word = match[0].removeprefix("@").lower()
            known = self._ids.get(word) if match[0].startswith("@") else None
            meant = known or self._of(_plain(word)) or self._of(_plain(word.split("-")[0]))
            if meant:
                yield Mention(match.start(), match.end(), *meant)

    def _of(self, form: str) -> _Meant | None:
        return self._forms.get(form) or _everybody().get(form)


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


@cache
def _everybody() -> Mapping[str, _Meant]:
    """The forms of all given names; one that is a name of its own, like «Валерия», is nobody's case."""
    forms: dict[str, _Meant] = {}
    given_all = (*given_names("en"), *given_names("ru"))
    for given in given_all:
        for form in forms_of(given):
            forms.setdefault(form, (given, None))
    return forms | {_plain(given.lower()): (given, None) for given in given_all}
