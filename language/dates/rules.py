"""Form of the rules of dates: an expression with the date that it means."""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, time
from typing import NamedTuple

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
