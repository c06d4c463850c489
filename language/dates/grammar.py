"""Grammar of days and times ahead, English and Russian."""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

from dateutil.relativedelta import MO, relativedelta

from language.dates.vocabulary import COUNTS, MONTHS, PARTS_OF_DAY, RU_MONTHS, RU_ORDINALS, UNITS, WEEKDAYS, either

Match = re.Match[str]
# A day, a time of day or an exact moment such as "in two hours"; None where the words only look like a date.
Meaning = date | time | datetime | None
# From the words and the moment at which they were said. Raises OverflowError or ValueError beyond the calendar.
Reading = Callable[[Match, datetime], Meaning]
Day = Callable[[date], date]  # from today's date

_FIRST_WAKING_HOUR = 7


class Rule(NamedTuple):
    """An expression with its meaning."""

    pattern: re.Pattern[str]
    read: Reading


def rule(pattern: str, read: Reading, flags: int = re.IGNORECASE) -> Rule:
    return Rule(re.compile(pattern, flags), read)


def day_rule(pattern: str, day: Day) -> Rule:
    """A rule for words that always mean the same day, seen from today."""
    return rule(rf"\b(?:{pattern})\b", lambda _, now: day(now.date()))


def first_existing(day: int, months: tuple[date, date], since: date) -> date | None:
    """The first day of that number in these months, given by their first days, that exists and is not too early."""
    for month in months:
        with suppress(ValueError):
            if (existing := month.replace(day=day)) >= since:
                return existing
    return None


def waking_hour(hour: int, minute: int = 0) -> time:
    """A time of day from an hour without its half: nobody meets at 5 in the morning who does not say so."""
    return time(hour + 12 if 0 < hour < _FIRST_WAKING_HOUR else hour, minute)


_CLOSE_OF_BUSINESS = time(18)
_FRIDAY, _SUNDAY = 4, 6
# Named without a year, a day this long ago is rather meant for next year.
_LONGEST_PAST = timedelta(days=90)
_MOST_UNITS = 500


def _after(delta: relativedelta) -> Day:
    return lambda today: today + delta


def _end_of_week(weeks: int = 0) -> Day:
    """Friday; on a weekend that still belongs to this week, its Sunday."""

    def last_day(today: date) -> date:
        is_over = not weeks and today.weekday() > _FRIDAY
        return today + timedelta(weeks=weeks, days=(_SUNDAY if is_over else _FRIDAY) - today.weekday())

    return last_day


_ENDS: dict[str, Day] = {
    name: day
    for names, day in {
        "week|недели|этой недели": _end_of_week(),
        "next week|следующей недели": _end_of_week(1),
        "month|месяца|этого месяца": _after(relativedelta(day=31)),
        "next month|следующего месяца": _after(relativedelta(months=1, day=31)),
        "quarter|квартала": lambda today: today + relativedelta(months=-today.month % 3, day=31),
        "year|года": _after(relativedelta(month=12, day=31)),
        "tomorrow": _after(relativedelta(days=1)),
    }.items()
    for name in names.split("|")
}
_SHORT_ENDS = {"EOW": "week", "EOM": "month", "EOQ": "quarter", "EOY": "year"}
_LATER = ("next", "following", "следующ", "будущ")
_NEVER = ("last", "past", "every", "each", "прошл", "минувш", "кажд")
_HALVES = {"a": 0, "p": 12, "утра": 0, "дня": 12, "вечера": 12, "ночи": 0}
_UNITS = either(unit for unit, meaning in UNITS.items() if meaning != "year")
_COUNT = rf"(\d{{1,3}}(?:[.,]\d)?|{either(COUNTS)})"
_MONTH = rf"(?P<month>{either(MONTHS)})\b(?:(?<=[a-z])\.)?"
_EN_MONTH = rf"(?P<month>{either(name for name in MONTHS if name.isascii())})\b\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|-?го)?"
_YEAR = r"(?:,?\s+(?P<year>\d{4})\b(?: г(?:ода)?\b\.?)?)?"
_SLASHED_YEAR = r"(?:/(?P<year>\d{4}|\d\d))?(?![/\d])\b"
_RU_WHICH = r"эт\w+|следующ\w+|ближайш\w+|будущ\w+|прошл\w+|минувш\w+|кажд\w+"
_WHICH = rf"(last|past|every|each|this|next|coming|following|{_RU_WHICH})"
_WEEKDAY = either(name for name in WEEKDAYS if not name.startswith("сред"))
# «Среда» is also an environment, «в 15.05» may be a version: what is said before them tells.
_BY = r"(?:в|во|к|ко|до|на|с|со|по|от|после|около|срок|дедлайн)[\s:—-]+"


def _end(match: Match, now: datetime) -> Meaning:
    if (name := match[1].lower()) in _ENDS:
        return _ENDS[name](now.date())
    month = MONTHS[name]
    return date(now.year + (month < now.month), month, 1) + relativedelta(day=31)


def _in(match: Match, now: datetime) -> Meaning:
    """So many minutes, hours, days, weeks or months from now; None where nobody would say so many."""
    words, unit = (match[1] or "").lower(), UNITS[match[2].lower()]
    count = float(words.replace(",", ".")) if words[:1].isdigit() else COUNTS.get(words, 1)
    # «Через час», but not "in hours".
    if not 0 < count <= _MOST_UNITS or (not words and match[2].isascii()):
        return None
    if unit in ("minute", "hour"):
        return now + timedelta(**{f"{unit}s": count})
    months, days = (max(1, round(count)), 0) if unit == "month" else (0, round(count * (7 if unit == "week" else 1)))
    return now.date() + relativedelta(months=months, days=days)


def _in_hours(match: Match, now: datetime) -> Meaning:
    """So many hours and minutes from now."""
    words, minutes = (match[1] or "").lower(), match["minutes"]
    hours = float(words.replace(",", ".")) if words[:1].isdigit() else COUNTS.get(words, 1)
    return now + timedelta(hours=hours, minutes=int(minutes) if minutes else 30)


def _date(match: Match, now: datetime) -> Meaning:
    """A day of the calendar; without a year, the one that is nearest ahead or has just passed."""
    month_name, day_name, year = match["month"], match["day"], match.groupdict().get("year")
    if month_name == "may" and match.start("month") < match.start("day"):
        return None  # "I may 3 times"
    month = int(month_name) if month_name.isdigit() else MONTHS[month_name.lower()]
    day = int(day_name) if day_name.isdigit() else RU_ORDINALS[day_name.lower()]
    if year:
        return date(int(year) + (2000 if len(year) == 2 else 0), month, day)
    this_year = date(now.year, month, 1)
    return first_existing(day, (this_year, this_year.replace(now.year + 1)), now.date() - _LONGEST_PAST)


def _day_of_month(match: Match, now: datetime) -> Meaning:
    """The next day of that number."""
    this_month = now.date().replace(day=1)
    months = this_month, this_month + relativedelta(months=1)
    return first_existing(int(match[match.lastindex or 0]), months, now.date())


def _weekday(match: Match, now: datetime) -> Meaning:
    """The next such day after today, or that of the next calendar week."""
    which, ahead = (match[1] or "").lower(), WEEKDAYS[match[2].lower()] - now.weekday()
    days = ahead + 7 if which.startswith(_LATER) else (ahead - 1) % 7 + 1
    return None if which.startswith(_NEVER) else now.date() + timedelta(days=days)


def _clock(match: Match, _: datetime) -> Meaning:
    """An hour, perhaps with its half of the day: nobody meets at 5 in the morning who does not say so."""
    parts = match.groupdict()
    hour, minute, half = int(parts["hour"]), int(parts.get("minute") or 0), (parts.get("half") or "").lower()
    if half:
        # «11 ночи» is before midnight.
        is_late = half == "ночи" and _FIRST_WAKING_HOUR < hour < 12
        return time(hour % 12 + (12 if is_late else _HALVES[half]), minute) if 0 < hour <= 12 else None
    return waking_hour(hour, minute)


DAYS = (
    rule(r"\b(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)\b", _date),
    day_rule("(?:the )?day after tomorrow|послезавтра", _after(relativedelta(days=2))),
    rule(
        r"\b(?:(?:the )?(?:end|close) of (?:the |this )?|(?:до|к|ко|в|под) (?:самого )?кон(?:ца|цу|це|ец) )"
        rf"({either((*_ENDS, *MONTHS))})\b",
        _end,
    ),
    rule(rf"\b({either(_SHORT_ENDS)})\b", lambda m, now: _ENDS[_SHORT_ENDS[m[1]]](now.date()), re.NOFLAG),
    rule(r"\bчерез полчаса\b", lambda _, now: now + timedelta(minutes=30)),
    day_rule("через полгода", _after(relativedelta(months=6))),
    rule(
        rf"\b(?:in|within|через) (?:{_COUNT} )?(?:hours?|час(?:а|ов)?),? "
        r"(?:(?:and |и )?(?P<minutes>[1-5]?\d) ?(?:минут[ыу]?|мин\b|minutes?|mins?\b)|and a half\b|с половиной\b)",
        _in_hours,
    ),
    rule(
        r"\b(?:in|within|через|в течение|не позднее чем через|максимум за)(?: the next)? "
        rf"(?:{_COUNT} )?({_UNITS})\b",
        _in,
    ),
    rule(rf"\b{_COUNT} ({_UNITS})(?:'s?)? (?:from (?:now|today)|today|time)\b", _in),
    day_rule(
        "(?:early|beginning of|start of) next week|(?:в|к|до) (?:самом )?начал[еуа] (?:следующей )?недели",
        _after(relativedelta(weeks=1, weekday=MO(-1))),
    ),
    day_rule("next week|(?:на|к) следующей неделе", _ENDS["next week"]),
    day_rule("(?:later )?this week|(?:на|до) (?:этой|текущей) неделе|за (?:эту )?неделю", _ENDS["week"]),
    day_rule("next month|в следующем месяце", _ENDS["next month"]),
    day_rule("this month|в (?:этом|текущем) месяце", _ENDS["month"]),
    day_rule("tomorrow|tmrw|tmr|завтра", _ENDS["tomorrow"]),
    day_rule("today|tonight|сегодня|с[её]дня", lambda today: today),
    rule(
        r"\bthe (\d{1,2})(?:st|nd|rd|th)\b(?! (?:of|floor|time|version|century))"
        r"|\b(?:до|к|на|по)? ?(\d{1,2})(?:-?го|-?му)? числ[ау]\b|\b(?:до|к|с|на) (\d{1,2})-?(?:го|му|е)\b(?! год)"
        rf"|\b(\d{{1,2}})-?го\b(?! (?:год|{either(RU_MONTHS)}))",
        _day_of_month,
    ),
    rule(r"(?<![\d.])(?P<day>\d{1,2})\.(?P<month>\d\d)\.(?P<year>\d{4}|\d\d)(?![\d.])", _date),
    rule(rf"\b{_BY}(?P<day>\d{{1,2}})\.(?P<month>0[1-9]|1[0-2])\b(?![.\d%])(?! ?(?:млн|тыс|руб|процент))", _date),
    rule(rf"\b{_EN_MONTH} {_DAY}\b(?!:\d)(?!%){_YEAR}", _date),
    rule(rf"\b{_DAY} (?:of )?{_MONTH}{_YEAR}", _date),
    rule(rf"\b(?P<day>{either(RU_ORDINALS)}) {_MONTH}", _date),
    # 3/15 is American; 15/3 cannot be.
    rule(rf"(?<![/\w])(?P<month>0?\d|1[0-2])/(?P<day>\d{{1,2}}){_SLASHED_YEAR}", _date),
    rule(rf"(?<![/\w])(?P<day>\d{{1,2}})/(?P<month>\d{{1,2}}){_SLASHED_YEAR}", _date),
    rule(rf"(?<!по )\b(?:{_WHICH} )?({_WEEKDAY})\b(?!')", _weekday),
    rule(
        rf"\b(?:в|во|к|ко|до|на|со?) (?:{_WHICH} )?(сред[ыеу])\b(?! (?:разработ|выполнен|обитан|тестирован|исполнен))",
        _weekday,
    ),
)
TIMES = (
    rule(r"\b(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s?(?P<half>[ap])\.?m\b\.?", _clock),
    rule(
        r"\b(?:(?:в|к|до|с|около) )?(?P<hour>\d{1,2})[:.](?P<minute>[0-5]\d) (?P<half>утра|вечера|дня|ночи)\b",
        _clock,
    ),
    rule(r"\b([01]?\d|2[0-3]):([0-5]\d)\b", lambda m, _: time(int(m[1]), int(m[2]))),
    rule(
        r"\b(?:в|к|до|с|около) (?P<hour>\d{1,2}) (?:(?:час(?:а|ов|ам|у)? )?(?P<half>утра|вечера|дня|ночи)|"
        r"час(?:а|ов|ам|у)?)\b",
        _clock,
    ),
    rule(
        r"\b(?:(?:the )?(?:end|close) of (?:the |this )?(?:(?:business |working )?day|business|today)|eod|cob|"
        r"end of (?:the |my |your |her |his )?(?:shift|school day)|close of play|"
        r"(?:до|к|в) кон(?:ца|цу|це) (?:(?:рабочего |этого )?дня|смены)|до закрытия)\b",
        lambda *_: _CLOSE_OF_BUSINESS,
    ),
    rule(r"\bmidnight\b", lambda *_: time(23, 59)),
    rule(
        rf"\b(?<!с )(?:in the |this |early |late )?({either(PARTS_OF_DAY)})\b(?! рожд)",
        lambda m, _: time(PARTS_OF_DAY[m[1].lower()]),
    ),
    rule(r"\b(?:at|by|before|until) (?P<hour>\d{1,2})(?= (?:today|tomorrow|on|sharp)\b|[,.;!?)]|$)", _clock),
    rule(r"\b(?:к|до) (?P<hour>1[0-9]|2[0-3]|[7-9])(?=[,.;!?)]|$)", _clock),
    # «В 9 позвонить»: an hour where a verb, nothing or a stop follows; «в 5 раз» is none.
    rule(r"\bв (?P<hour>1?[0-9]|2[0-3])(?=[,.;!?)]|$|\s+\w+(?:ть|ти|чь|[аяуео]ю|[жшчлд]у)(?:ся|сь)?\b)", _clock),
)
