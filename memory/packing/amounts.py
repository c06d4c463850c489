"""Figures that a text names, with what they count."""

import re
from collections.abc import Iterator

_FIGURE = r"\d+(?:[   ]\d{3})*(?:[.,:/×x-]\d+)*"
_SCALE = r"(?:тыс(?:яч\w*|\.)?|млн\.?|миллион\w*|млрд\.?|миллиард\w*|thousand|million|billion|hundred|k|K|M|bn)"
_MONEY = r"(?:руб(?:л\w+|\.)?|₽|доллар\w*|евро|тенге|dollars?|euros?|pounds?|rubles?|roubles?|bucks|USD|EUR|RUB|€|\$|£)"
_COUNT = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|forty|fifty|sixty|seventy|"
    r"eighty|ninety|hundred|thousand|million|две|два|три|четыре|пять|шесть|семь|восемь|девять|десять|\w+надцать|"
    r"двадцать|тридцать|сорок|\w+десят|девяносто|сто|двести|триста|четыреста|\w+сот|тысяч\w*|миллион\w*|полтор[аы])"
)
_PATTERNS = tuple(
    map(
        re.compile,
        (
            r"(?<![\w@])\+?\d[\d() -]{8,}\d(?!\w)",
            rf"(?<!\w)[$€£₽]\s?{_FIGURE}(?:\s?{_SCALE})?(?!\w)",
            rf"(?<![\w.,]){_FIGURE}(?:\s?{_SCALE})?\s?(?:%|процент\w*|percent|{_MONEY})(?!\w)",
            rf"(?<!\w){_COUNT}(?:[ -]{_COUNT})* (?:процент\w*|percent|{_MONEY})(?!\w)",
            # What is counted belongs to its figure.
            rf"(?<![\w.,$€£₽-]){_FIGURE}(?:\s?{_SCALE}(?!\w))?(?:[ -]?(?P<unit>[^\W\d_]{{1,24}}))?(?!\w)",
        ),
    )
)


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NO_UNITS = _listed(
    """
    a about an and are as at but by for from if in into is it of on or so than that the then there to was were when
    which who will with а без в во где для до же за и из или к как когда ко ли на не но о от по под при с со то у что
    это
    """
)


def amounts_in(text: str) -> Iterator[tuple[int, int]]:
    """Where figures stand, each with its unit."""
    taken: list[tuple[int, int]] = []
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            start, end = match.span()
            unit = match.groupdict().get("unit")
            if unit and unit.lower() in _NO_UNITS:
                end = start + len(text[start : match.start("unit")].rstrip(" -"))
            if not any(start < other_end and other < end for other, other_end in taken):
                taken.append((start, end))
                yield start, end
