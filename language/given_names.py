"""Given names and well-known places, English and Russian."""

from functools import cache
from importlib import resources

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
