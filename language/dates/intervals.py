"""The past time that a question is about."""

import re
from calendar import monthrange
from datetime import datetime, timedelta
from typing import NamedTuple

from language.dates.vocabulary import COUNTS, EN_MONTHS, RU_MONTH, UNITS, either, month_of

_YEAR = r"(?:19|20)\d\d"
_MONTH_DATE = re.compile(
    rf"\b(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<month>{either(EN_MONTHS)}|{RU_MONTH})\b"
    rf"(?:\s+(?P<after>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d))?(?:,?\s+(?:of\s+)?(?P<year>{_YEAR}))?",
    re.IGNORECASE,
)
_ISO = re.compile(rf"\b({_YEAR})-(\d\d)(?:-(\d\d))?\b")
_IN_YEAR = re.compile(rf"\b(?:in|of|during|since|year|в|за|год[ау]?)\s+({_YEAR})\b|\b({_YEAR})\s+год", re.IGNORECASE)
_DAY = timedelta(days=1)
_LENGTHS = {"day": _DAY, "week": 7 * _DAY, "month": 30 * _DAY, "year": 365 * _DAY}
_UNITS = {
    **{form: _LENGTHS[unit] for form, unit in UNITS.items() if unit in _LENGTHS},
    "месяце": _LENGTHS["month"],
    "неделе": _LENGTHS["week"],
}
_AGO = re.compile(rf"\b(?:(\d{{1,3}}|{either(COUNTS)})\s+)?({either(_UNITS)})\s+(?:ago|назад)\b", re.IGNORECASE)
_LAST = re.compile(rf"\b(?:last|past|previous|прошл\w+|последн\w+)\s+({either(_UNITS)})\b", re.IGNORECASE)
_NEAR_DAYS = (
    (re.compile(r"\b(?:yesterday|вчера)\b", re.IGNORECASE), 1),
    (re.compile(r"\bпозавчера\b", re.IGNORECASE), 2),
    (re.compile(r"\b(?:today|this morning|сегодня)\b", re.IGNORECASE), 0),
)


class Interval(NamedTuple):
    """Moments from `begin` up to `end`, which is no longer part of it."""

    begin: datetime
    end: datetime


def interval_in(question: str, at: datetime) -> Interval | None:
    """The first time that is named: a day, a month, a year, or how long ago it was from `at`."""
    return _iso(question, at) or _month_date(question, at) or _relative(question, at) or _whole_year(question, at)


def _iso(question: str, at: datetime) -> Interval | None:
    match = _ISO.search(question)
    return _calendar(int(match[1]), int(match[2]), match[3], at) if match else None


def _month_date(question: str, at: datetime) -> Interval | None:
    match = next((each for each in _MONTH_DATE.finditer(question) if _is_month(each)), None)
    if match is None:
        return None
    month = month_of(match["month"])
    year = int(match["year"]) if match["year"] else at.year - (month > at.month)
    return _calendar(year, month, match["before"] or match["after"], at)


def _is_month(match: re.Match[str]) -> bool:
    """Alone, «may» may be a verb, «Марта» a name."""
    if match["before"] or match["after"] or match["year"]:
        return True
    is_verb = match.start() == 0 and match["month"].lower() == "may"
    return match["month"][0].isupper() == match["month"].isascii() and not is_verb


def _relative(question: str, at: datetime) -> Interval | None:
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    for pattern, days in _NEAR_DAYS:
        if pattern.search(question):
            return Interval(midnight - days * _DAY, midnight - (days - 1) * _DAY)
    if match := _AGO.search(question):
        count, unit = (match[1] or "1").lower(), _UNITS[match[2].lower()]
        then = midnight - (int(count) if count.isdigit() else COUNTS[count]) * unit
        return Interval(then - unit / 2, then + unit / 2 + _DAY)
    if match := _LAST.search(question):
        unit = _UNITS[match[1].lower()]
        return Interval(midnight - 2 * unit, midnight - (_DAY if unit > _DAY else timedelta(0)))
    return None


def _whole_year(question: str, at: datetime) -> Interval | None:
    match = _IN_YEAR.search(question)
    if match is None:
        return None
    year = int(match[1] or match[2])
    return Interval(datetime(year, 1, 1, tzinfo=at.tzinfo), datetime(year + 1, 1, 1, tzinfo=at.tzinfo))


def _calendar(year: int, month: int, day: str | None, at: datetime) -> Interval | None:
    """A day, or without one the whole month."""
    number = int(day or 1)
    if not 1 <= month <= 12 or not 1 <= number <= monthrange(year, month)[1]:
        return None
    begin = datetime(year, month, number, tzinfo=at.tzinfo)
    return Interval(begin, begin + (1 if day else monthrange(year, month)[1]) * _DAY)
