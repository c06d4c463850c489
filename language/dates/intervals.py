"""Times in a text: the past interval that a question is about; spans of dates and deadlines, however vague."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from dateutil.relativedelta import relativedelta

from language.dates.vocabulary import COUNTS, EN_MONTHS, EN_WEEKDAYS, MONTHS, RU_MONTH, UNITS, either, month_of

Match = re.Match[str]

_DAY = timedelta(days=1)
_LENGTHS = {"day": _DAY, "week": 7 * _DAY, "month": 30 * _DAY, "year": 365 * _DAY}
_FORMS = UNITS | {"месяце": "month", "неделе": "week"}
_UNITS = {form: _LENGTHS[unit] for form, unit in _FORMS.items() if unit in _LENGTHS}
_UNIT = rf"(?P<unit>{either(_UNITS)})"
_YEAR = r"(?:19|20)\d\d"


class Interval(NamedTuple):
    """Moments from `begin` up to `end`, which is no longer part of it; `is_bound` for how things stood by then."""

    begin: datetime
    end: datetime
    is_bound: bool = False


class NamedTime(NamedTuple):
    """A time with the characters of the question, from `start` to `stop`, that name it."""

    interval: Interval
    start: int
    stop: int


def time_in(question: str, at: datetime) -> NamedTime | None:
    """The time that a question names: from one to another; before, since or after one; as of one; or in one.

    One is a day, a month, a year, or how long ago it was from `at`.
    """
    today = at.replace(hour=0, minute=0, second=0, microsecond=0)
    named = _named(question, today)
    if not named:
        return None
    in_order = sorted(named, key=lambda each: each.start)
    for first, second in pairwise(in_order):
        between = _BETWEEN.fullmatch(question[first.stop : second.start])
        if between and (led := _FROM.search(question[: first.start])):
            one, other = (question[each.start : each.stop] for each in (first, second))
            shares_year = re.search(_YEAR, one) is not None and _is_month_alone(other)
            joined = _joined(first.interval, second.interval, is_second_without=shares_year)
            return NamedTime(joined, led.start(), second.stop)
    return _led(question, named[0], today)


def _named(question: str, today: datetime) -> list[NamedTime]:
    """Times that do not overlap, the clearest first."""
    found: list[NamedTime] = []
    for pattern, read in _PAST:
        for match in pattern.finditer(question):
            start, stop = match.span("when" if "when" in pattern.groupindex else 0)
            if any(start < other.stop and other.start < stop for other in found):
                continue
            with suppress(ValueError):  # beyond the calendar
                if interval := read(match, today):
                    found.append(NamedTime(interval, start, stop))
    return found


def _joined(first: Interval, second: Interval, *, is_second_without: bool = False) -> Interval:
    """From the begin of the first to the end of the second; a year that one leaves out is that of the other."""
    begin, end = first.begin, second.end
    while is_second_without and end - relativedelta(years=1) > begin:
        end -= relativedelta(years=1)
    while begin >= end:
        begin -= relativedelta(years=1)
    return Interval(begin, end)


def _led(question: str, named: NamedTime, today: datetime) -> NamedTime:
    """The time with the words that lead to it."""
    begin, end, _ = named.interval
    offset = _OFFSET.search(question[: named.start])
    if offset and not _HOW_MANY.search(question[: offset.start()]):
        count, length = (offset["count"] or "1").lower(), _UNITS.get(offset["unit"].lower(), _LENGTHS["week"])
        away = (int(count) if count.isdigit() else COUNTS[count]) * length
        is_after = offset["way"].lower() in ("after", "после")
        near = Interval(end, end + away) if is_after else Interval(begin - away - _DAY, begin)
        return NamedTime(near, offset.start(), named.stop)
    long_ago = datetime(1, 1, 2, tzinfo=today.tzinfo)
    tomorrow = today + _DAY
    # «By September», said in July, is a time to come, unless it was.
    is_to_come = begin.year < today.year and _is_month_alone(question[named.start : named.stop])
    by, before = (tomorrow, tomorrow) if is_to_come and not _WAS.search(question) else (end, begin)
    for pattern, interval in (
        (_AS_OF, Interval(long_ago, by, is_bound=True)),
        (_BEFORE, Interval(long_ago, before, is_bound=True)),
        (_SINCE, Interval(begin, max(end, tomorrow))),
        (_AFTER, Interval(end, max(end, tomorrow))),
    ):
        if led := pattern.search(question[: named.start]):
            return NamedTime(interval, led.start(), named.stop)
    return named


_THE = r"\s+(?:the\s+)?$"
_FROM = re.compile(rf"\b(?:between|from|since|с|со|от|между){_THE}", re.IGNORECASE)
_BETWEEN = re.compile(
    r"(?:\s+года?)?\s*(?:\s(?:and|to|until|till|through|и|по|до)\s|[–—-])\s*(?:the\s+)?", re.IGNORECASE
)
_AS_OF = re.compile(rf"\b(?:as of|by|up to|по состоянию на){_THE}", re.IGNORECASE)
_BEFORE = re.compile(rf"\b(?:before|until|till|prior to|до){_THE}", re.IGNORECASE)
_SINCE = re.compile(rf"\b(?:since|starting (?:in|from|on)|с|со|начиная с){_THE}", re.IGNORECASE)
_HOW_MANY = re.compile(r"\b(?:how many|сколько|every|each|кажд\w+)\b", re.IGNORECASE)
_MONTH = re.compile(rf"\b(?:{either(EN_MONTHS)}|{RU_MONTH})\b", re.IGNORECASE)
_WAS = re.compile(r"\b(?:did|was|were|had|been|[а-яё]+(?:л|ла|ло|ли|лся|лись))\b", re.IGNORECASE)


def _is_month_alone(named: str) -> bool:
    """Whether a time is named by a month, perhaps with a day, without a year."""
    return _MONTH.search(named) is not None and re.search(_YEAR, named) is None


_OFFSET = re.compile(
    rf"\b(?:(?P<count>\d{{1,3}}|{either(COUNTS)})\s+)?(?P<unit>{either(_UNITS)}|weekend|night|{either(EN_WEEKDAYS)})"
    rf"\s+(?P<way>before|prior to|after|до|после){_THE}",
    re.IGNORECASE,
)
_AFTER = re.compile(rf"\b(?:after|после){_THE}", re.IGNORECASE)


def _calendar(today: datetime, year: int | str, month: int | str | None = None, day: str | None = None) -> Interval:
    """A day, without one the whole month, or the year."""
    begin = datetime(int(year), int(month or 1), int(day or 1), tzinfo=today.tzinfo)
    length = relativedelta(days=1) if day else relativedelta(months=1) if month else relativedelta(years=1)
    return Interval(begin, begin + length)


def _month_date(match: Match, today: datetime) -> Interval | None:
    """A month with its day or year, or alone; then «may» may be a verb, «Марта» a name."""
    name, day, year = match["month"], match["before"] or match["after"], match["year"]
    is_verb = match.start() == 0 and name.lower() == "may"
    if not (day or year) and (is_verb or name[0].isupper() != name.isascii()):
        return None
    month = month_of(name)
    return _calendar(today, year or today.year - (month > today.month), month, day)


def _day(days_ago: int, _: Match, today: datetime) -> Interval:
    return Interval(today - days_ago * _DAY, today - (days_ago - 1) * _DAY)


def _ago(match: Match, today: datetime) -> Interval:
    count, unit = (match["count"] or "1").lower(), _UNITS[match["unit"].lower()]
    then = today - (int(count) if count.isdigit() else COUNTS[count]) * unit
    return Interval(then - unit / 2, then + unit / 2 + _DAY)


def _last(match: Match, today: datetime) -> Interval:
    unit = _UNITS[match["unit"].lower()]
    return Interval(today - 2 * unit, today - _DAY if unit > _DAY else today)


_PAST: tuple[tuple[re.Pattern[str], Callable[[Match, datetime], Interval | None]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), read)
    for pattern, read in (
        (rf"\b({_YEAR})-(\d\d)(?:-(\d\d))?\b", lambda match, today: _calendar(today, *match.groups())),
        (
            rf"\b(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<month>{either(EN_MONTHS)}|{RU_MONTH})\b"
            rf"(?:\s+(?P<after>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d))?(?:,?\s+(?:of\s+)?(?P<year>{_YEAR}))?",
            _month_date,
        ),
        (r"\b(?:yesterday|вчера)\b", partial(_day, 1)),
        (r"\bпозавчера\b", partial(_day, 2)),
        (r"\b(?:today|this morning|сегодня)\b", partial(_day, 0)),
        (rf"\b(?:(?P<count>\d{{1,3}}|{either(COUNTS)})\s+)?{_UNIT}\s+(?:ago|назад)\b", _ago),
        (rf"\b(?:last|past|previous|прошл\w+|последн\w+)\s+{_UNIT}\b", _last),
        (
            rf"\b(?:between|from|с|со|от|между)\s+({_YEAR})\s+(?:года?\s+)?(?:and|to|until|till|through|и|по|до|[–—-])\s+({_YEAR})\b",
            lambda match, today: _joined(_calendar(today, match[1]), _calendar(today, match[2])),
        ),
        (
            rf"(?:\b(?:in|of|during|since|before|after|until|till|by|year|в|за|до|после|с|год[ау]?)\s+"
            rf"|\b(?={_YEAR}\s+год))(?P<when>{_YEAR})\b",
            lambda match, today: _calendar(today, match["when"]),
        ),
    )
)

_EN_MONTH = rf"(?:{either(name.capitalize() for name in MONTHS if name.isascii())})\b\.?"
_EN_DAY = rf"(?:{either(EN_WEEKDAYS)})"
_EN_UNIT = r"(?:minute|hour|day|night|week|weekend|month|quarter|year|summer|winter|spring|fall|autumn)"
_RU_DAY = r"(?:понедельник\w*|вторник\w*|сред[уеы]|четверг\w*|пятниц\w*|суббот\w*|воскресень\w*)"
_RU_ORDINAL = (
    r"(?:(?:двадцать |тридцать )?(?:перв|втор|треть|четв[её]рт|пят|шест|седьм|восьм|девят|десят|\w{4,10}надцат|"
    r"двадцат|тридцат)(?:ого|его|ое|ому|ый|ий))"
)
_RU_UNIT = r"(?:минут\w*|час\w{0,2}|дн[яей]\w*|день|сут\w+|недел\w+|месяц\w*|квартал\w*|год[аеуы]?|лет)"
_RU_WHICH = r"(?:следующ|прошл|прошедш|ближайш|будущ|минувш|эт|текущ|позапрошл)"
_COUNT = rf"(?:\d+|few|couple|several|{either(COUNTS)})"

# Of two that overlap the earlier in these lists is taken. A group `date` leaves out the preposition before it.
_AS_WRITTEN = (
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?",
    r"\d{1,2}\.\d{1,2}\.(?:\d{4}|\d\d)|\d{1,2}/\d{1,2}/(?:\d{4}|\d\d)",
    rf"\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_EN_MONTH}(?:,? \d{{4}})?",
    rf"{_EN_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|{_EN_MONTH}(?: of)? \d{{4}}",
    rf"(?:end|close|beginning|start|middle) of (?:the |this |next )?(?:{_EN_UNIT}|{_EN_MONTH})|mid-{_EN_MONTH}",
)
_IN_ANY_CASE = (
    rf"(?:next|last|this|past|coming|following|every|each) (?:{_EN_UNIT}s?|{_EN_DAY}|{_EN_MONTH})",
    rf"(?:in|within) {_COUNT} {_EN_UNIT}s?|{_COUNT} {_EN_UNIT}s? (?:ago|from now|later|before|after)",
    r"(?:the )?day (?:after tomorrow|before yesterday)|tomorrow|yesterday|tonight",
    rf"(?:\d{{1,2}}(?:-?го|-?е|-?му)?|{_RU_ORDINAL}) {RU_MONTH}(?: \d{{4}}(?: г(?:од[ау]?|\.)?)?)?",
    rf"(?:начал[еоау]|конец|конц[аеу]|середин[аеуы]) (?:{_RU_WHICH}\w+ )?(?:{_RU_UNIT}|{RU_MONTH})",
    rf"{_RU_WHICH}\w{{1,3}} (?:{_RU_UNIT}|{_RU_DAY}|выходн\w+|лет\w+|зим\w+|весн\w+|осен\w+|{RU_MONTH})",
    rf"(?:через|спустя) (?:{_COUNT} )?{_RU_UNIT}|(?:{_COUNT} )?{_RU_UNIT} (?:тому )?назад",
    r"через пол(?:года|часа)|послезавтра|позавчера|завтра|вчера",
    rf"(?:во?|ко?|до|со?|на|по|кажд\w+) (?P<date>{_RU_DAY})",
    rf"(?:во?|к|до|с|на|по|за) (?P<date>{RU_MONTH}(?: \d{{4}}(?: года?)?)?)",
    rf"{_EN_DAY}s?",
)
# These are words of another kind where they are written small.
_CAPITALISED = (
    r"January|February|April|June|July|August|September|October|November|December",
    r"(?:[iI]n|[bB]y|[sS]ince|[uU]ntil) (?P<date>March|May)",
    r"(?:Q[1-4]|[1-4]Q)(?: \d{4})?",
)
_LEAST = (
    r"(?:[1-4]|перв\w+|втор\w+|трет\w+|четв[её]рт\w+|I{1,3}|IV)(?:-?[мй])? квартал\w*(?: \d{4}(?: года?)?)?",
    r"(?:19|20)\d\d(?: год[ауе]?м?| г\.)?",
    r"\d{1,2}(?::\d\d)? ?[ap]\.?m\.?|\d{1,2}:\d\d|\d{1,2} (?:утра|вечера|дня|ночи)",
    r"\d{1,2}(?:-?го|-?му) числ[ау]|\d{1,2} числа|the \d{1,2}(?:st|nd|rd|th)",
)


def _compiled(patterns: tuple[str, ...], flags: re.RegexFlag) -> Iterator[re.Pattern[str]]:
    return (re.compile(rf"(?<![\w.-])(?:{each})(?!\w)", flags) for each in patterns)


_PATTERNS = (
    *_compiled(_AS_WRITTEN, re.NOFLAG),
    *_compiled(_IN_ANY_CASE, re.IGNORECASE),
    *_compiled(_CAPITALISED, re.NOFLAG),
    *_compiled(_LEAST, re.IGNORECASE),
)


def date_spans(text: str) -> Iterator[tuple[int, int]]:
    """Spans of the dates that a text names, without the prepositions that lead to them."""
    taken: list[tuple[int, int]] = []
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            start, end = match.span("date" if match.groupdict().get("date") else 0)
            if not any(start < other_end and other < end for other, other_end in taken):
                taken.append((start, end))
                yield start, end
