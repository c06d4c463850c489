"""Due dates as people ask for them, on their own clock."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from language.dates.expressions import SpokenDate, dates_in, on_day, without_dates

_SECONDS = re.compile(r"\b(?:через|in)\s+(\d{1,4})\s*(?:секунд\w*|сек|seconds?|secs?)\b", re.IGNORECASE)
# «в 9», which is a time only where somebody asks for a date.
_BARE_HOUR = re.compile(
    r"\b(?P<at>в|к|at|by)\s+(?P<hour>[01]?\d|2[0-3])\b(?!\s*(?:[:.%]\d?|-|час\w*|мин\w*|утра|вечера|дня|ночи|дн\w*|"
    r"am\b|pm\b|a\.m|p\.m|o.clock|раз\w*|янв|фев|мар|апр|ма[йя]\b|июн|июл|авг|сен|окт|ноя|дек|"
    r"jan|feb|mar|apr|may\b|jun|jul|aug|sep|oct|nov|dec|st\b|nd\b|rd\b|th\b|people|человек\w*|days?|hours?|minutes?))",
    re.IGNORECASE,
)
_NOON = 12
# Nobody means three at night by "tomorrow at 3".
_LAST_OF_NIGHT = 6


@dataclass(frozen=True)
class Due:
    """A moment; where no time was named, the end of the day `on`. `start` and `end` hold its words."""

    at: datetime
    on: date | None
    said: str
    start: int = 0
    end: int = 0


class NoDate(ValueError):
    """There is no date in it; write one like 2026-11-26 15:00, Friday 15:00 or «завтра в 9»."""


def parse_due(text: str, now: datetime) -> Due:
    """The date that somebody asks for: ISO, or as one says it; `now` is on their clock. Raises NoDate."""
    said = text.strip()
    try:
        at = datetime.fromisoformat(said)
    except ValueError:
        last = max(dues_in(said, now), key=lambda due: due.at, default=None)
        if last is None:
            raise NoDate(f"{text!r}: {NoDate.__doc__}") from None
        return last
    at = at.replace(tzinfo=now.tzinfo) if at.tzinfo is None else at
    if re.fullmatch(r"\d{4}-?\d\d-?\d\d", said):
        return Due(at.replace(hour=23, minute=59, second=59), at.date(), said)
    return Due(at, None, said)


def split_due(text: str, now: datetime) -> tuple[str, Due | None]:
    """The text without its dates, and the last of them."""
    due = max(dues_in(text, now), key=lambda each: each.at, default=None)
    timed = _with_hours(_SECONDS.sub("", text), now)
    return without_dates(timed, dates_in(timed, now)).strip(" ,;:."), due


def dues_in(text: str, now: datetime) -> Iterator[Due]:
    """Every date in a text in which somebody asks for one."""
    for seconds in _SECONDS.finditer(text):
        at = now + timedelta(seconds=int(seconds[1]))
        yield Due(at, None, seconds[0], seconds.start(), seconds.end())
    timed = _with_hours(text, now)
    for each in _combined(timed, now):
        start, end = _place_in(text, timed, each.start), _place_in(text, timed, each.end)
        yield Due(each.at, None if each.has_time else each.at.date(), each.text[:100], start, end)


def _combined(text: str, now: datetime) -> list[SpokenDate]:
    """Dates of the text; a day and a time that stand apart are one: «завтра напомни в 9»."""
    found = dates_in(text, now)
    days = [each for each in found if each.has_day and not each.has_time]
    times = [each for each in found if each.has_time and not each.has_day]
    if len(days) != 1 or len(times) != 1 or len(found) != len(days) + len(times):
        return found
    (day,), (time,) = days, times
    said = f"{day.text} {time.text}"
    return [SpokenDate(min(day.start, time.start), max(day.end, time.end), said, on_day(day, time), has_time=True)]


_WRITTEN_MINUTES = ":00"


def _with_hours(text: str, now: datetime) -> str:
    """The text with bare hours written out: «в 9» becomes «в 09:00», at places that `_place_in` finds back."""
    return _BARE_HOUR.sub(lambda bare: f"{bare['at']} {_hour(bare, text, now):02}{_WRITTEN_MINUTES}", text)


def _hour(bare: re.Match[str], text: str, now: datetime) -> int:
    hour, rest = int(bare["hour"]), text[: bare.start()] + text[bare.end() :]
    days = [each.at.date() for each in dates_in(rest, now) if each.has_day]
    is_over = now.replace(hour=hour, minute=0, second=0, microsecond=0) <= now
    is_of_today = all(day == now.date() for day in days)
    is_afternoon = bool(days and hour <= _LAST_OF_NIGHT) or (is_of_today and is_over and now.hour < hour + _NOON)
    return hour + _NOON if 0 < hour < _NOON and is_afternoon else hour


def _place_in(text: str, timed: str, place: int) -> int:
    """The place in a text of a place in the same with its hours written out."""
    shift = 0
    for bare in _BARE_HOUR.finditer(text):
        written = len(f"{bare['at']} 00{_WRITTEN_MINUTES}")
        if place < bare.start() + shift + written:
            return min(place - shift, bare.end())
        shift += written - len(bare[0])
    return place - shift
