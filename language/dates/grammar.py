"""Grammar of days and times ahead, English and Russian: each rule is an expression with the date that it means."""

import re
from collections.abc import Callable
from typing import NamedTuple

from language.dates.arithmetic import (
    Resolver,
    at_time,
    end_of_month,
    end_of_named_month,
    end_of_quarter,
    end_of_week,
    end_of_year,
    in_days,
    in_units,
    on_date,
    on_day_of_month,
    on_weekday,
    start_of_week,
)
from language.dates.vocabulary import COUNTS, MONTHS, PARTS_OF_DAY, RU_ORDINALS, UNITS, WEEKDAYS, either

Match = re.Match[str]
# None where the words only look like a date.
Reading = Callable[[Match], Resolver | None]

_CLOSE_OF_BUSINESS_HOUR = 18
_ENDS = {
    "week": end_of_week(), "month": end_of_month(), "quarter": end_of_quarter, "year": end_of_year,
    "next week": end_of_week(1), "next month": end_of_month(1), "tomorrow": in_days(1),
    "недели": end_of_week(), "этой недели": end_of_week(), "следующей недели": end_of_week(1),
    "месяца": end_of_month(), "этого месяца": end_of_month(), "следующего месяца": end_of_month(1),
    "квартала": end_of_quarter, "года": end_of_year,
}  # fmt: skip
_SHORT_ENDS = {"EOW": "week", "EOM": "month", "EOQ": "quarter", "EOY": "year"}
_LATER = ("next", "following", "следующ", "будущ")
_NEVER = ("last", "past", "every", "each", "прошл", "минувш", "кажд")
_HALVES = {"утра": 0, "дня": 12, "вечера": 12, "ночи": 0}
_UNITS = either(unit for unit, meaning in UNITS.items() if meaning != "year")
_COUNT = rf"(\d{{1,3}}|{either(COUNTS)})"
_MONTH = rf"({either(MONTHS)})\b(?:(?<=[a-z])\.)?"
_EN_MONTH = rf"({either(name for name in MONTHS if name.isascii())})\b\.?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th|-?го)?"
_YEAR = r"(?:,?\s+(\d{4})\b(?: г(?:ода)?\b\.?)?)?"
_RU_WHICH = r"эт\w+|следующ\w+|ближайш\w+|будущ\w+|прошл\w+|минувш\w+|кажд\w+"
_WHICH = rf"(last|past|every|each|this|next|coming|following|{_RU_WHICH})"
_WEEKDAY = either(name for name in WEEKDAYS if not name.startswith("сред"))
# «Среда» is also an environment, «в 15.05» may be a version: what is said before them tells.
_BY = r"(?:в|во|к|ко|до|на|с|со|по|от|после|около|срок|дедлайн)[\s:—-]+"


class Rule(NamedTuple):
    """An expression with its meaning."""

    pattern: re.Pattern[str]
    read: Reading


def _rule(pattern: str, read: Reading, flags: int = re.IGNORECASE) -> Rule:
    return Rule(re.compile(pattern, flags), read)


def _means(pattern: str, resolver: Resolver | None) -> Rule:
    return _rule(rf"\b(?:{pattern})\b", lambda _: resolver)


def _end(match: Match) -> Resolver:
    name = match[1].lower()
    return _ENDS[name] if name in _ENDS else end_of_named_month(MONTHS[name])


def _in(match: Match) -> Resolver | None:
    count, unit = (match[1] or "").lower(), match[2].lower()
    if not count and unit.isascii():  # «через час», but not "in hours"
        return None
    return in_units(float(count) if count.isdigit() else COUNTS.get(count, 1), UNITS[unit])


def _date(day: str, month: int, year: str | None = None) -> Resolver:
    century = 2000 if year and len(year) == 2 else 0
    return on_date(int(day), month, int(year) + century if year else None)


def _month_first(match: Match) -> Resolver | None:
    # "I may 3 times" is no date.
    return None if match[1] == "may" else _date(match[2], MONTHS[match[1].lower()], match[3])


def _slashed(match: Match) -> Resolver:
    # 3/15 is American; 15/3 cannot be.
    month, day = (match[1], match[2]) if int(match[1]) <= 12 else (match[2], match[1])
    return _date(day, int(month), match[3])


def _day_of_month(match: Match) -> Resolver:
    return on_day_of_month(int(match[match.lastindex or 0]))


def _weekday(match: Match) -> Resolver | None:
    which = (match[1] or "").lower()
    return None if which.startswith(_NEVER) else on_weekday(WEEKDAYS[match[2].lower()], which.startswith(_LATER))


def _hour(match: Match) -> Resolver | None:
    """An hour, perhaps with its half of the day: nobody meets at 5 in the morning who does not say so."""
    hour, half = int(match[1]), (match[2] or "").lower()
    if half:
        return at_time(hour % 12 + _HALVES[half]) if 0 < hour <= 12 else None
    return at_time(hour + 12 if 0 < hour < 7 else hour)


def _clock(match: Match) -> Resolver | None:
    hour, is_afternoon = int(match[1]), match[3].lower() == "p"
    return at_time(hour % 12 + 12 * is_afternoon, int(match[2] or 0)) if 0 < hour <= 12 else None


DAYS = (
    _rule(r"\b(\d{4})-(\d\d)-(\d\d)\b", lambda m: _date(m[3], int(m[2]), m[1])),
    _means("(?:the )?day after tomorrow|послезавтра", in_days(2)),
    _rule(
        r"\b(?:(?:the )?(?:end|close) of (?:the |this )?|(?:до|к|ко|в|под) (?:самого )?кон(?:ца|цу|це|ец) )"
        rf"({either((*_ENDS, *MONTHS))})\b",
        _end,
    ),
    _rule(rf"\b({either(_SHORT_ENDS)})\b", lambda m: _ENDS[_SHORT_ENDS[m[1]]], re.NOFLAG),
    _means("через полчаса", in_units(0.5, "hour")),
    _means("через полгода", in_units(6, "month")),
    _rule(
        r"\b(?:in|within|через|в течение|не позднее чем через|максимум за)(?: the next)? "
        rf"(?:{_COUNT} )?({_UNITS})\b",
        _in,
    ),
    _rule(rf"\b{_COUNT} ({_UNITS}) from (?:now|today)\b", _in),
    _means(
        "(?:early|beginning of|start of) next week|(?:в|к|до) (?:самом )?начал[еуа] (?:следующей )?недели",
        start_of_week(1),
    ),
    _means("next week|(?:на|к) следующей неделе", end_of_week(1)),
    _means("(?:later )?this week|(?:на|до) (?:этой|текущей) неделе|за (?:эту )?неделю", end_of_week()),
    _means("next month|в следующем месяце", end_of_month(1)),
    _means("this month|в (?:этом|текущем) месяце", end_of_month()),
    _means("tomorrow|завтра", in_days(1)),
    _means("today|tonight|сегодня", in_days(0)),
    _rule(
        r"\bthe (\d{1,2})(?:st|nd|rd|th)\b(?! (?:of|floor|time|version|century))"
        r"|\b(?:до|к|на|по)? ?(\d{1,2})(?:-?го|-?му)? числ[ау]\b|\b(?:до|к|с|на) (\d{1,2})-(?:го|му|е)\b(?! год)",
        _day_of_month,
    ),
    _rule(r"(?<![\d.])(\d{1,2})\.(\d\d)\.(\d{4}|\d\d)(?![\d.])", lambda m: _date(m[1], int(m[2]), m[3])),
    _rule(
        rf"\b{_BY}(\d{{1,2}})\.(0[1-9]|1[0-2])\b(?![.\d%])(?! ?(?:млн|тыс|руб|процент))",
        lambda m: _date(m[1], int(m[2])),
    ),
    _rule(rf"\b{_EN_MONTH} {_DAY}\b(?!:\d)(?!%){_YEAR}", _month_first),
    _rule(rf"\b{_DAY} (?:of )?{_MONTH}{_YEAR}", lambda m: _date(m[1], MONTHS[m[2].lower()], m[3])),
    _rule(rf"\b({either(RU_ORDINALS)}) {_MONTH}", lambda m: on_date(RU_ORDINALS[m[1].lower()], MONTHS[m[2].lower()])),
    _rule(r"\b(?<![/\d])(\d{1,2})/(\d{1,2})(?:/(\d{4}|\d\d))?(?![/\d])\b", _slashed),
    _rule(rf"(?<!по )\b(?:{_WHICH} )?({_WEEKDAY})\b(?!')", _weekday),
    _rule(
        rf"\b(?:в|во|к|ко|до|на|со?) (?:{_WHICH} )?(сред[ыеу])\b(?! (?:разработ|выполнен|обитан|тестирован|исполнен))",
        _weekday,
    ),
)
TIMES = (
    _rule(r"\b(\d{1,2})(?::(\d\d))?\s?([ap])\.?m\b\.?", _clock),
    _rule(r"\b([01]?\d|2[0-3]):([0-5]\d)\b", lambda m: at_time(int(m[1]), int(m[2]))),
    _rule(
        rf"\b(?:в|к|до|с|около) (\d{{1,2}}) (?:(?:час(?:а|ов|ам|у)? )?({either(_HALVES)})|час(?:а|ов|ам|у)?)\b", _hour
    ),
    _means(
        "(?:the )?(?:end|close) of (?:the |this )?(?:(?:business |working )?day|business|today)|eod|cob|"
        "(?:до|к|в) кон(?:ца|цу|це) (?:рабочего )?дня",
        at_time(_CLOSE_OF_BUSINESS_HOUR),
    ),
    _means("midnight", at_time(23, 59)),
    _rule(
        rf"\b(?<!с )(?:in the |this |early |late )?({either(PARTS_OF_DAY)})\b(?! рожд)",
        lambda m: at_time(PARTS_OF_DAY[m[1].lower()]),
    ),
    _rule(r"\b(?:at|by|before|until) (\d{1,2})()(?= (?:today|tomorrow|on|sharp)\b|[,.;!?)]|$)", _hour),
    _rule(r"\b(?:к|до) (1[0-9]|2[0-3]|[7-9])()(?=[,.;!?)]|$)", _hour),
)
