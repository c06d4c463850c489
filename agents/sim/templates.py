"""Sentences with gaps in them.

`{name}` is filled with a value, `{name:минута,минуты,минут}` with a number and the form of the word that goes with it,
`{ушёл|ушла}` with the form for a man or for a woman, whoever speaks.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

Gender = Literal["m", "f"]
Value = str | int

_GAP = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SENTENCE_START = re.compile(r"(?:^|(?<=[.!?…]\s))\W*\w")


def _wording(text: str) -> str:
    rest = _GAP.sub("", text)
    if "{" in rest or "}" in rest:
        raise ValueError("has a brace without its other half; close it")
    for gap in _GAP.findall(text):
        name, colon, forms = gap.partition(":")
        if "|" in gap:
            if gap.count("|") != 1:
                raise ValueError(f"{{{gap}}} must be {{his form|her form}}")
        elif not _NAME.fullmatch(name):
            raise ValueError(f"{{{gap}}} is no gap; write {{name}}, {{name:one,many}} or {{his form|her form}}")
        elif colon and forms.count(",") not in (1, 2):
            raise ValueError(f"{{{gap}}} needs two forms of the word, three in Russian")
    return text


Template = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(_wording)]


def placeholders(wording: str) -> frozenset[str]:
    """The names of the values that a sentence needs."""
    return frozenset(gap.partition(":")[0] for gap in _GAP.findall(wording) if "|" not in gap)


def fill_template(wording: str, values: Mapping[str, Value], gender: Gender) -> str:
    """The sentence, its gaps filled, its beginning a capital."""

    def fill(gap: re.Match[str]) -> str:
        if "|" in gap[1]:
            his, her = gap[1].split("|")
            return his if gender == "m" else her
        name, colon, forms = gap[1].partition(":")
        return pluralise(int(values[name]), forms.split(",")) if colon else str(values[name])

    return _SENTENCE_START.sub(lambda start: start[0].upper(), _GAP.sub(fill, wording))


def pluralise(number: int, forms: list[str]) -> str:
    """A number with its word: one ticket, two tickets; одна минута, две минуты, пять минут."""
    if len(forms) == 2:
        return f"{number} {forms[0] if number == 1 else forms[1]}"
    if number % 10 == 1 and number % 100 != 11:
        return f"{number} {forms[0]}"
    few = number % 10 in (2, 3, 4) and number % 100 not in (12, 13, 14)
    return f"{number} {forms[1] if few else forms[2]}"
