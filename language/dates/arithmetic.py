"""Days and times of the calendar, reckoned from the moment at which somebody speaks."""

import calendar
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

END_OF_DAY = time(23, 59, 59)

_FRIDAY = 4
# Named without a year, a day this long ago is rather meant for next year.
_LONGEST_PAST_DAYS = 90
_MOST_UNITS = 500


@dataclass(frozen=True)
class DateParts:
    """The day, the time of day or both that an expression names; `moment` is exact, such as "in two hours"."""

    day: date | None = None
    clock: time | None = None
    moment: datetime | None = None


# From the moment of speaking to the date that is meant; None or ValueError where there is no such day.
Resolver = Callable[[datetime], DateParts | None]


def on_day(of: Callable[[date], date | None]) -> Resolver:
    """A day that depends on today's date."""

    def resolve(said_at: datetime) -> DateParts | None:
        day = of(said_at.date())
        return DateParts(day=day) if day else None

    return resolve


def in_days(days: int) -> Resolver:
    return on_day(lambda today: today + timedelta(days=days))


def in_units(count: float, unit: str) -> Resolver | None:
    """So many minutes, hours, days, weeks or months from now; None where nobody would say so many."""
    if not 0 < count <= _MOST_UNITS:
        return None
    match unit:
        case "minute" | "hour":
            span = timedelta(minutes=count) if unit == "minute" else timedelta(hours=count)
            return lambda said_at: DateParts(moment=said_at + span)
        case "day" | "week":
            return in_days(round(count * (7 if unit == "week" else 1)))
        case _:
            return on_day(lambda today: _months_on(today, max(1, round(count))))


def at_time(hour: int, minute: int = 0) -> Resolver | None:
    """None where no clock shows it."""
    return (lambda _: DateParts(clock=time(hour, minute))) if 0 <= hour < 24 and 0 <= minute < 60 else None


def on_weekday(weekday: int, weeks: int = 0) -> Resolver:
    """The next such day after today; with `weeks`, that of a later calendar week."""
    if weeks:
        return on_day(lambda today: _monday(today) + timedelta(weeks=weeks, days=weekday))
    return on_day(lambda today: today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1))


def on_date(day: int, month: int, year: int | None = None) -> Resolver:
    """A day of the calendar; without a year, the one that is nearest ahead or has just passed."""

    def nearest(today: date) -> date | None:
        this_year = _existing(year or today.year, month, day)
        if year is None and (this_year is None or (today - this_year).days > _LONGEST_PAST_DAYS):
            return _existing(today.year + 1, month, day)
        return this_year

    return on_day(nearest)


def on_day_of_month(day: int) -> Resolver:
    """The next day of that number."""

    def next_one(today: date) -> date | None:
        this_month = _existing(today.year, today.month, day)
        following = _months_on(today.replace(day=1), 1)
        return this_month if this_month and this_month >= today else _existing(following.year, following.month, day)

    return on_day(next_one)


def start_of_week(weeks: int) -> Resolver:
    return on_day(lambda today: _monday(today) + timedelta(weeks=weeks))


def end_of_week(weeks: int = 0) -> Resolver:
    """Friday; on a weekend that still belongs to this week, its Sunday."""

    def last_day(today: date) -> date:
        friday = _monday(today) + timedelta(weeks=weeks, days=_FRIDAY)
        return friday if friday >= today else _monday(today) + timedelta(days=6)

    return on_day(last_day)


def end_of_month(months: int = 0) -> Resolver:
    return on_day(lambda today: _last_of(_months_on(today.replace(day=1), months)))


def end_of_named_month(month: int) -> Resolver:
    return on_day(lambda today: _last_of(date(today.year + (month < today.month), month, 1)))


end_of_quarter = on_day(lambda today: _last_of(date(today.year, (today.month - 1) // 3 * 3 + 3, 1)))
end_of_year = on_day(lambda today: date(today.year, 12, 31))


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _months_on(day: date, months: int) -> date:
    years, month = divmod(day.month - 1 + months, 12)
    first = date(day.year + years, month + 1, 1)
    return first.replace(day=min(day.day, _last_of(first).day))


def _last_of(day: date) -> date:
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])


def _existing(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
