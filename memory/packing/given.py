"""Names of people, of places that are names whatever stands before them."""

from functools import cache
from importlib import resources

from memory.packing.reading import key_of

# What is a word more often than a name, or looks like one of its forms.
_WORDS_FIRST = frozenset(
    ("слав", "роман", "вер", "люд", "свет", "тон", "mark", "rose", "ray", "stan", "may", "dean", "amber", "daisi")
)
_FLEETING = frozenset(("павл", "льв", "петр"))


def is_given(word: str) -> bool:
    """Whether somebody may be called so, in whatever case."""
    return word[:1].isupper() and key_of(word) in _given()


def is_place(word: str) -> bool:
    """Whether a well-known town or country is called so."""
    return word[:1].isupper() and key_of(word) in _places()


@cache
def _given() -> frozenset[str]:
    return (_keys("en") | _keys("ru")) - _WORDS_FIRST | _FLEETING


@cache
def _places() -> frozenset[str]:
    return _keys("places")


def _keys(name: str) -> frozenset[str]:
    text = (resources.files("config") / "names" / f"{name}.txt").read_text(encoding="utf-8")
    return frozenset(map(key_of, text.split()))
