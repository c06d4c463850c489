"""Dates and times that a text names, on the calendar of its speaker."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from language.dates.arithmetic import END_OF_DAY, DateParts
from language.dates.grammar import DAYS, TIMES, Rule
from language.dates.vocabulary import EN_MONTHS, EN_WEEKDAYS, RU_MONTHS, RU_WEEKDAYS
from language.words import Language

_FURTHEST_YEARS = 20
# All that may stand between a day and its time.
_BETWEEN = re.compile(r"[\s,(]*(?:at|by|in|on|the|в|к|до|на|с|ближе|где-то|around|before)?[\s,]*")
_BEFORE = re.compile(
    r"\b(?:(?:no later than|not later than|due by|due on|due|by|before|until|till|on|at|for|from|starting|to|"
    r"не позже|не позднее|срок|дедлайн|к|ко|до|на|в|во|с|со|уже|где-то|примерно)[\s:—-]+)+$",
    re.IGNORECASE,
)
_NAMES = {
    Language.ENGLISH: (("yesterday", "today", "tomorrow"), EN_WEEKDAYS, EN_MONTHS),
    Language.RUSSIAN: (("вчера", "сегодня", "завтра"), RU_WEEKDAYS, RU_MONTHS),
}


@dataclass(frozen=True)
class SpokenDate:
    """A date as somebody said it; without a time it means the end of the day. `start` and `end` hold its words."""

    start: int
    end: int
    text: str
    at: datetime
    has_time: bool
    has_day: bool = True


@dataclass(frozen=True)
class _Piece:
    start: int
    end: int
    parts: DateParts


def dates_in(text: str, said_at: datetime) -> list[SpokenDate]:
    """Every date in a text, in order, reckoned from when it was said, in that moment's time zone."""
    days = list(_pieces(DAYS, text, said_at, ()))
    # "Tonight" is both a day and a time.
    taken = [piece for piece in days if text[piece.start : piece.end].lower() != "tonight"]
    times = _pieces(TIMES, text, said_at, taken)
    joined = _joined(text, sorted([*days, *times], key=lambda piece: (piece.start, -piece.end)))
    return [date for piece in joined if (date := _resolved(text, piece, said_at))]


def without_dates(text: str, dates: Iterable[SpokenDate]) -> str:
    """The text with these dates cut out, along with the prepositions that led to them."""
    for date in sorted(dates, key=lambda each: -each.start):
        head = _BEFORE.sub("", text[: date.start])
        text = f"{head.rstrip()} {text[date.end :].lstrip()}" if head.strip() else text[date.end :].lstrip(" ,")
    return re.sub(r"\s+([,.;:!?])", r"\1", " ".join(text.split()))


def shifted(date: SpokenDate, by: int) -> SpokenDate:
    """A date with its span moved by so many characters, for a text that this one is a part of."""
    return replace(date, start=date.start + by, end=date.end + by)


def date_text(at: datetime, now: datetime, language: Language) -> str:
    """A date as a reader would say it, such as "tomorrow, 13 March, 15:00"; both moments on one clock."""
    near, weekdays, months = _NAMES[language]
    days = (at.date() - now.date()).days
    day = f"{at.day} {months[at.month - 1]}"
    parts = [near[days + 1] if abs(days) <= 1 else weekdays[at.weekday()]]
    parts.append(day if at.year == now.year else f"{day} {at.year}")
    if at.time().replace(microsecond=0) != END_OF_DAY:
        parts.append(f"{at:%H:%M}")
    return ", ".join(parts)


def _pieces(rules: Sequence[Rule], text: str, said_at: datetime, taken: Sequence[_Piece]) -> Iterator[_Piece]:
    occupied = [(piece.start, piece.end) for piece in taken]
    for each in rules:
        for match in each.pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in occupied):
                continue
            # A rule that says "not a date" still keeps weaker rules off the words.
            occupied.append(match.span())
            try:
                resolver = each.read(match)
                parts = resolver(said_at) if resolver else None
            except (OverflowError, ValueError):  # beyond the calendar
                continue
            if parts:
                yield _Piece(match.start(), match.end(), parts)


def _joined(text: str, pieces: Sequence[_Piece]) -> Iterator[_Piece]:
    """A day with its time is one date, whichever comes first."""
    waiting: _Piece | None = None
    for piece in pieces:
        both = waiting and _together(text, waiting, piece)
        if waiting and not both:
            yield waiting
        waiting = both or piece
    if waiting:
        yield waiting


def _together(text: str, first: _Piece, second: _Piece) -> _Piece | None:
    one, other = first.parts, second.parts
    clock = other.clock or one.clock
    is_one = (one.day is None) != (other.day is None) and clock is not None
    is_time_twice = one.day is not None and other.day is None and one.clock is not None
    touches = first.end >= second.start or _BETWEEN.fullmatch(text[first.end : second.start])
    if one.moment or other.moment or not touches or not (is_one or is_time_twice):
        return None
    return _Piece(first.start, max(first.end, second.end), DateParts(day=one.day or other.day, clock=clock))


def _resolved(text: str, piece: _Piece, said_at: datetime) -> SpokenDate | None:
    parts = piece.parts
    at = parts.moment or datetime.combine(parts.day or said_at.date(), parts.clock or END_OF_DAY, tzinfo=said_at.tzinfo)
    if not (parts.moment or parts.day) and at <= said_at:
        at += timedelta(days=1)  # "by nine", said at ten, is tomorrow
    if abs(at.year - said_at.year) > _FURTHEST_YEARS:
        return None
    has_time, has_day = bool(parts.moment or parts.clock), bool(parts.moment or parts.day)
    return SpokenDate(piece.start, piece.end, text[piece.start : piece.end].strip(), at, has_time, has_day)
