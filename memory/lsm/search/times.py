"""The time that a question names."""

import re
from calendar import monthrange
from datetime import datetime, timedelta
from typing import NamedTuple

_MONTHS = (
    "january|январ",
    "february|феврал",
    "march|март",
    "april|апрел",
    "may|ма[йяе]",
    "june|июн",
    "july|июл",
    "august|август",
    "september|сентябр",
    "october|октябр",
    "november|ноябр",
    "december|декабр",
)
_MONTH = "|".join(f"(?P<m{number}>{names})" for number, names in enumerate(_MONTHS, 1))
_DATE = re.compile(
    rf"\b(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?:{_MONTH})(?:[а-я]{{0,3}})\b"
    r"(?:\s+(?P<after>\d{1,2})(?:st|nd|rd|th)?\b(?!\d))?(?:,?\s+(?:of\s+)?(?P<year>(?:19|20)\d\d))?",
    re.IGNORECASE,
)
_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d\d)(?:-(\d\d))?\b")
_YEAR = re.compile(
    r"\b(?:in|of|during|since|year|в|за|год[ау]?)\s+((?:19|20)\d\d)\b|\b((?:19|20)\d\d)\s+год", re.IGNORECASE
)
_DAY = timedelta(days=1)
_UNITS = {"d": _DAY, "w": 7 * _DAY, "m": 30 * _DAY, "y": 365 * _DAY}
_UNIT = (
    r"(?P<d>days?|день|дня|дней)|(?P<w>weeks?|недел[юяиье]+)|(?P<m>months?|месяц(?:а|ев|е)?)|(?P<y>years?|год[ау]?|лет)"
)
_AGO = re.compile(
    rf"\b(?:(?P<number>\d{{1,3}}|a|an|one|two|three|две|два|три)\s+)?(?:{_UNIT})\s+(?:ago|назад)\b", re.IGNORECASE
)
_LAST = re.compile(rf"\b(?:last|past|previous|прошл\w+|последн\w+)\s+(?:{_UNIT})\b", re.IGNORECASE)
_NEAR_DAYS = {
    re.compile(r"\b(?:yesterday|вчера)\b", re.IGNORECASE): 1,
    re.compile(r"\bпозавчера\b", re.IGNORECASE): 2,
    re.compile(r"\b(?:today|this morning|сегодня)\b", re.IGNORECASE): 0,
}
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "два": 2, "две": 2, "три": 3}


class Interval(NamedTuple):
    """From a moment to another, which is no longer of it."""

    begin: datetime
    end: datetime


def interval_in(question: str, at: datetime) -> Interval | None:
    """The first time that is named: a day, a month, a year, or how long ago it was from `at`."""
    return _exactly(question, at) or _by_month(question, at) or _relatively(question, at) or _by_year(question, at)


def _exactly(question: str, at: datetime) -> Interval | None:
    found = _ISO.search(question)
    if found is None:
        return None
    return _of(int(found[1]), int(found[2]), int(found[3]) if found[3] else None, at)


def _by_month(question: str, at: datetime) -> Interval | None:
    for found in _DATE.finditer(question):
        month = next(number for number in range(1, 13) if found[f"m{number}"])
        day = found["before"] or found["after"]
        # «may» is a verb, too, «Марта» a name: alone, neither is a month.
        name = found[f"m{month}"]
        if not (day or found["year"] or name[0].isupper() == name.isascii()):
            continue
        if found.start() == 0 and month == 5 and not (day or found["year"]):
            continue
        year = int(found["year"]) if found["year"] else at.year - (month > at.month)
        return _of(year, month, int(day) if day else None, at)
    return None


def _relatively(question: str, at: datetime) -> Interval | None:
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    for pattern, days in _NEAR_DAYS.items():
        if pattern.search(question):
            return Interval(midnight - days * _DAY, midnight - (days - 1) * _DAY)
    if found := _AGO.search(question):
        number = found["number"] or "1"
        unit = _unit(found)
        then = midnight - _NUMBERS.get(number.lower(), int(number) if number.isdigit() else 1) * unit
        return Interval(then - unit / 2, then + unit / 2 + _DAY)
    if found := _LAST.search(question):
        unit = _unit(found)
        return Interval(midnight - 2 * unit, midnight - (_DAY if unit > _DAY else timedelta(0)))
    return None


def _by_year(question: str, at: datetime) -> Interval | None:
    found = _YEAR.search(question)
    if found is None:
        return None
    year = int(found[1] or found[2])
    return Interval(datetime(year, 1, 1, tzinfo=at.tzinfo), datetime(year + 1, 1, 1, tzinfo=at.tzinfo))


def _of(year: int, month: int, day: int | None, at: datetime) -> Interval | None:
    if not 1 <= month <= 12 or not 1 <= (day or 1) <= monthrange(year, month)[1]:
        return None
    begin = datetime(year, month, day or 1, tzinfo=at.tzinfo)
    return Interval(begin, begin + (1 if day else monthrange(year, month)[1]) * _DAY)


def _unit(found: re.Match[str]) -> timedelta:
    return next(length for name, length in _UNITS.items() if found[name])
