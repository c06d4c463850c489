"""How dates are said in English."""

import re
from collections.abc import Sequence

from language.dates.arithmetic import (
    CLOSE_OF_BUSINESS_HOUR,
    Reading,
    at_time,
    end_of_month,
    end_of_named_month,
    end_of_quarter,
    end_of_week,
    end_of_year,
    in_days,
    on_date,
    on_day_of_month,
    on_weekday,
    start_of_week,
)
from language.dates.grammar import Match, Rule, calendar_day, either, numbered, rule, says, span, year_of

_WEEKDAYS = numbered(
    "monday, mon | tuesday, tues, tue | wednesday, wed | thursday, thurs, thur, thu | friday, fri | saturday | sunday"
)
_MONTHS = numbered(
    "january, jan | february, feb | march, mar | april, apr | may | june, jun | july, jul | august, aug | "
    "september, sept, sep | october, oct | november, nov | december, dec",
    start=1,
)
_COUNTS = {
    "a couple of": 2, "couple of": 2, "a few": 3, "half a": 0.5, "half an": 0.5, "a": 1, "an": 1, "one": 1, "two": 2,
    "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twelve": 12,
}  # fmt: skip
_PARTS = {"morning": 10, "afternoon": 15, "evening": 19, "night": 21, "lunchtime": 13, "lunch": 13}
_AHEAD = r"(?:this|next|coming|following)"
_NUMBER = rf"(\d{{1,3}}|{either(_COUNTS)})"
_MONTH = rf"({either(_MONTHS)})\b\.?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s+(\d{4})\b)?"


def _weekday(match: Match) -> Reading | None:
    which, name = (match[1] or "").lower(), match[2].lower()
    if which in ("last", "past", "every", "each"):
        return None
    return on_weekday(_WEEKDAYS[name], weeks=1 if which in ("next", "following") else 0)


def _month_first(match: Match) -> Reading | None:
    # "I may 3 times" is no date.
    return None if match[1] == "may" else calendar_day(match[2], _MONTHS[match[1].lower()], match[3])


def _in(match: Match) -> Reading | None:
    said = match[1].lower()
    return span(float(said) if said.isdigit() else _COUNTS[said], match[2].lower().rstrip("s"))


def _clock(match: Match) -> Reading | None:
    hour, minute, half = int(match[1]), int(match[2] or 0), match[3].lower()
    return at_time(hour % 12 + 12 * (half == "p"), minute) if 0 < hour <= 12 else None


def _bare_hour(match: Match) -> Reading | None:
    # Nobody meets at 5 in the morning who does not say so.
    hour = int(match[1])
    return at_time(hour + 12 if hour < 7 else hour)


def _slashed(match: Match) -> Reading | None:
    # 3/15 is American; 15/3 cannot be.
    first, second, year = int(match[1]), int(match[2]), year_of(match[3])
    return on_date(second, first, year) if first <= 12 else on_date(first, second, year)


_ENDS = {
    "week": end_of_week(), "month": end_of_month(),
    "quarter": end_of_quarter, "year": end_of_year,
    "next week": end_of_week(1), "next month": end_of_month(1), "tomorrow": in_days(1),
}  # fmt: skip
_SHORT_ENDS = {"EOW": "week", "EOM": "month", "EOQ": "quarter", "EOY": "year"}

DAYS: Sequence[Rule] = (
    rule(r"\b(?:the )?day after tomorrow\b", says(in_days(2))),
    rule(rf"\b(?:the )?(?:end|close) of (?:the |this )?({either(_ENDS)})\b", lambda m: _ENDS[m[1].lower()]),
    rule(rf"\b({either(_SHORT_ENDS)})\b", lambda m: _ENDS[_SHORT_ENDS[m[1]]], flags=re.NOFLAG),
    rule(rf"\b(?:the )?end of (?:the )?{_MONTH}", lambda m: end_of_named_month(_MONTHS[m[1].lower()])),
    rule(rf"\b(?:in|within)(?: the next)? {_NUMBER} (minute|hour|day|week|month)s?\b", _in),
    rule(rf"\b{_NUMBER} (minute|hour|day|week|month)s? from (?:now|today)\b", _in),
    rule(r"\b(?:early|beginning of|start of) next week\b", says(start_of_week(1))),
    rule(r"\bnext week\b", says(end_of_week(1))),
    rule(r"\b(?:later )?this week\b", says(end_of_week())),
    rule(r"\bnext month\b", says(end_of_month(1))),
    rule(r"\bthis month\b", says(end_of_month())),
    rule(r"\btomorrow\b", says(in_days(1))),
    rule(r"\b(?:today|tonight)\b", says(in_days(0))),
    rule(rf"\b{_MONTH} {_DAY}\b(?!:\d)(?!%){_YEAR}", _month_first),
    rule(rf"\b{_DAY} (?:of )?{_MONTH}{_YEAR}", lambda m: calendar_day(m[1], _MONTHS[m[2].lower()], m[3])),
    rule(r"\b(?<![/\d])(\d{1,2})/(\d{1,2})(?:/(\d{4}|\d\d))?(?![/\d])\b", _slashed),
    rule(
        r"\bthe (\d{1,2})(?:st|nd|rd|th)\b(?! (?:of|floor|time|version|century))",
        lambda m: on_day_of_month(int(m[1])),
    ),
    rule(rf"\b(?:(last|past|every|each|{_AHEAD}) )?({either(_WEEKDAYS)})\b(?!')", _weekday),
)  # fmt: skip

TIMES: Sequence[Rule] = (
    rule(r"\b(\d{1,2})(?::(\d\d))?\s?([ap])\.?m\b\.?", _clock),
    rule(r"\b([01]?\d|2[0-3]):([0-5]\d)\b", lambda m: at_time(int(m[1]), int(m[2]))),
    rule(
        r"\b(?:the )?(?:end|close) of (?:the |this )?(?:(?:business |working )?day|business|today)\b|\b(?:eod|cob)\b",
        says(at_time(CLOSE_OF_BUSINESS_HOUR)),
    ),
    rule(r"\b(?:noon|midday)\b", says(at_time(12))),
    rule(r"\bmidnight\b", says(at_time(23, 59))),
    rule(r"\btonight\b", says(at_time(21))),
    rule(r"\b(?:first thing|(?:in the|this|early|tomorrow|late)? ?morning)\b", says(at_time(10))),
    rule(rf"\b(?:in the |this |late )?({either(_PARTS)})\b", lambda m: at_time(_PARTS[m[1].lower()])),
    rule(r"\b(?:at|by|before|until) (\d{1,2})(?= (?:today|tomorrow|on|sharp)\b|[,.;!?)]|$)", _bare_hour),
)
