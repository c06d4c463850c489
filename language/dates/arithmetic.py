"""Days and times, reckoned from the moment at which somebody speaks."""

import calendar
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

END_OF_DAY = time(23, 59, 59)
CLOSE_OF_BUSINESS_HOUR = 18

_FRIDAY = 4
# Named without a year, a day this long ago is rather meant for next year.
_LONGEST_PAST_DAYS = 90


@dataclass(frozen=True)
class Spoken:
    """What an expression says: a day, a time of day, or both; `moment` is exact, such as "in two hours"."""

    day: date | None = None
    clock: time | None = None
    moment: datetime | None = None


Reading = Callable[[datetime], Spoken | None]


def in_days(days: int) -> Reading:
    return lambda said_at: Spoken(day=said_at.date() + timedelta(days=days))


def in_months(months: int) -> Reading:
    return lambda said_at: Spoken(day=_months_on(said_at.date(), months))


def in_time(span: timedelta) -> Reading:
    return lambda said_at: Spoken(moment=said_at + span)


def at_time(hour: int, minute: int = 0) -> Reading | None:
    """None where no clock shows it."""
    return (lambda _: Spoken(clock=time(hour, minute))) if 0 <= hour < 24 and 0 <= minute < 60 else None


def on_weekday(weekday: int, weeks: int = 0) -> Reading:
    """The next such day after today; with `weeks`, that of a later calendar week."""

    def read(said_at: datetime) -> Spoken:
        today = said_at.date()
        if weeks:
            return Spoken(day=_monday(today) + timedelta(weeks=weeks, days=weekday))
        return Spoken(day=today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1))

    return read


def on_date(day: int, month: int, year: int | None = None) -> Reading:
    """A day of the calendar; without a year, the one that is nearest ahead or has just passed."""

    def read(said_at: datetime) -> Spoken | None:
        if year is not None:
            return _existing(year, month, day)
        this_year = _existing(said_at.year, month, day)
        is_long_ago = this_year is None or (
            this_year.day is not None and (said_at.date() - this_year.day).days > _LONGEST_PAST_DAYS
        )
        return _existing(said_at.year + 1, month, day) if is_long_ago else this_year

    return read


def on_day_of_month(day: int) -> Reading:
    """The next day of that number."""

    def read(said_at: datetime) -> Spoken | None:
        today = said_at.date()
        this_month = _existing(today.year, today.month, day)
        if this_month and this_month.day and this_month.day >= today:
            return this_month
        following = _months_on(today.replace(day=1), 1)
        return _existing(following.year, following.month, day)

    return read


def end_of_week(weeks: int = 0) -> Reading:
    """Friday; on a weekend that still belongs to this week, its Sunday."""

    def read(said_at: datetime) -> Spoken:
        today = said_at.date()
        friday = _monday(today) + timedelta(weeks=weeks, days=_FRIDAY)
        return Spoken(day=friday if friday >= today else _monday(today) + timedelta(days=6))

    return read


def start_of_week(weeks: int) -> Reading:
    return lambda said_at: Spoken(day=_monday(said_at.date()) + timedelta(weeks=weeks))


def end_of_month(months: int = 0) -> Reading:
    return lambda said_at: Spoken(day=_last_of(_months_on(said_at.date().replace(day=1), months)))


def end_of_named_month(month: int) -> Reading:
    def read(said_at: datetime) -> Spoken:
        year = said_at.year + (month < said_at.month)
        return Spoken(day=_last_of(date(year, month, 1)))

    return read


def end_of_quarter(said_at: datetime) -> Spoken:
    return Spoken(day=_last_of(date(said_at.year, (said_at.month - 1) // 3 * 3 + 3, 1)))


def end_of_year(said_at: datetime) -> Spoken:
    return Spoken(day=date(said_at.year, 12, 31))


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _months_on(day: date, months: int) -> date:
    years, month = divmod(day.month - 1 + months, 12)
    first = date(day.year + years, month + 1, 1)
    return first.replace(day=min(day.day, calendar.monthrange(first.year, first.month)[1]))


def _last_of(day: date) -> date:
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])


def _existing(year: int, month: int, day: int) -> Spoken | None:
    try:
        return Spoken(day=date(year, month, day))
    except ValueError:
        return None
