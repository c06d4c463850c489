"""Rules that a language's grammar of dates is made of."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from language.dates.arithmetic import Reading, in_days, in_months, in_time, on_date

Match = re.Match[str]
_CENTURY = 2000
_MOST_UNITS = 500


@dataclass(frozen=True)
class Rule:
    """An expression with what it means; None where it only looks like one."""

    pattern: re.Pattern[str]
    read: Callable[[Match], Reading | None]


def rule(pattern: str, read: Callable[[Match], Reading | None], *, flags: int = re.IGNORECASE) -> Rule:
    return Rule(re.compile(pattern, flags), read)


def says(reading: Reading | None) -> Callable[[Match], Reading | None]:
    """What means the same whatever its words."""
    return lambda _: reading


def numbered(forms: str, start: int = 0) -> dict[str, int]:
    """Names that count up, bars between them, commas between the forms of one."""
    return {form.strip(): number for number, name in enumerate(forms.split("|"), start) for form in name.split(",")}


def either(words: Mapping[str, object]) -> str:
    """A pattern of any of these, the longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def span(count: float, unit: str) -> Reading | None:
    """So many hours, days, weeks… from now."""
    if not 0 < count <= _MOST_UNITS:
        return None
    match unit:
        case "minute" | "hour":
            return in_time(timedelta(minutes=count) if unit == "minute" else timedelta(hours=count))
        case "day" | "week":
            return in_days(round(count * (7 if unit == "week" else 1)))
        case _:
            return in_months(max(1, round(count)))


def calendar_day(day: str, month: int, year: str | None) -> Reading:
    return on_date(int(day), month, year_of(year))


def year_of(digits: str | None) -> int | None:
    if not digits:
        return None
    return int(digits) if len(digits) > 2 else _CENTURY + int(digits)


ISO = rule(r"\b(\d{4})-(\d\d)-(\d\d)\b", lambda m: on_date(int(m[3]), int(m[2]), int(m[1])))
