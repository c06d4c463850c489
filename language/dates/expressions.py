"""Dates and times that a text names, on the calendar of its speaker."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from functools import lru_cache

from language.dates import colloquial, grammar
from language.dates.grammar import Rule
from language.dates.vocabulary import EN_MONTHS, EN_WEEKDAYS, PARTS_OF_DAY, RU_MONTHS, RU_WEEKDAYS, either
from language.words import Language

END_OF_DAY = time(23, 59, 59)
_FURTHEST_YEARS = 20
_NOON, _HALF_DAY = 12, timedelta(hours=12)
_PART = re.compile(rf"\b(?:{either(PARTS_OF_DAY)})\b", re.IGNORECASE)
_TODAY = re.compile(r"\b(?:this|eod|cob|end of|close of|до конца|к концу|до закрытия)\b", re.IGNORECASE)
_LATER_PART = re.compile(
    r"\b(?:afternoon|arvo|after lunch|evening|после обеда|дн[её]м|вечером|вечерком|к вечеру|до вечера|после работы)\b",
    re.IGNORECASE,
)
_PART_LASTS = timedelta(hours=4)
# An hour that says itself which half of the day it is in.
_HALF = re.compile(rf"\b0\d|\d ?[ap]\.?m\b|\b(?:{either(PARTS_OF_DAY)}|утра|дня|вечера|ночи|today's)\b", re.IGNORECASE)
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
    """A date as somebody said it; without a time it means the end of the day. `start` and `end` hold its words.

    `clock` is the time of day that was named, from which `at` differs where that had passed.
    """

    start: int
    end: int
    text: str
    at: datetime
    has_time: bool
    has_day: bool = True
    clock: time | None = None


@dataclass(frozen=True)
class _Piece:
    start: int
    end: int
    day: date | None = None
    clock: time | None = None
    moment: datetime | None = None


def dates_in(text: str, said_at: datetime, *, is_read_once: bool = False) -> list[SpokenDate]:
    """Every date in a text, in order, reckoned from when it was said, in that moment's time zone.

    A text that is read once is not remembered.
    """
    rules_of = _matching_rules if is_read_once or len(text) > _KNOWN_CHARS else _known_rules
    of_days, of_times = rules_of(text)
    days = list(_pieces(of_days, text, said_at, ()))
    # "Tonight" is both a day and a time.
    taken = [piece for piece in days if text[piece.start : piece.end].lower() != "tonight"]
    times = _pieces(of_times, text, said_at, taken)
    joined = _joined(text, sorted([*days, *times], key=lambda piece: (piece.start, -piece.end)))
    found: list[SpokenDate] = []
    for each in (_resolved(text, piece, said_at) for piece in joined):
        # The "tonight" of "Friday at 7 tonight" belongs to what is before it.
        if each is not None and (not found or each.start >= found[-1].end):
            found.append(each)
    return found


def without_dates(text: str, dates: Iterable[SpokenDate]) -> str:
    """The text with these dates cut out, along with the prepositions that led to them."""
    for each in sorted(dates, key=lambda date: -date.start):
        head = _BEFORE.sub("", text[: each.start])
        text = f"{head.rstrip()} {text[each.end :].lstrip()}" if head.strip() else text[each.end :].lstrip(" ,")
    return re.sub(r"\s+([,.;:!?])", r"\1", " ".join(text.split()))


def lead_of(text: str, date: SpokenDate) -> str:
    """The prepositions before a date, which `without_dates` cuts out with it; empty without any."""
    found = _BEFORE.search(text[: date.start])
    return "" if found is None else found[0]


def on_day(day: SpokenDate, time: SpokenDate) -> datetime:
    """The moment of a day and of a time that were said apart: an hour that has passed today has not on that day."""
    is_other_day = day.at.date() != time.at.date()
    clock = time.clock if time.clock is not None and is_other_day else time.at.time()
    return day.at.replace(hour=clock.hour, minute=clock.minute, second=0)


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


def _matching_rules(text: str) -> tuple[Sequence[Rule], Sequence[Rule]]:
    """Rules of days and of times that have a match."""
    both = (*colloquial.DAYS, *grammar.DAYS), (*colloquial.TIMES, *grammar.TIMES)
    days, times = (tuple(each for each in rules if each.pattern.search(text)) for rules in both)
    return days, times


# Of each message many ask which dates it has.
_KNOWN_CHARS = 1000
_known_rules = lru_cache(maxsize=1024)(_matching_rules)


def _pieces(rules: Sequence[Rule], text: str, said_at: datetime, taken: Sequence[_Piece]) -> Iterator[_Piece]:
    occupied = [(piece.start, piece.end) for piece in taken]
    for each in rules:
        for match in each.pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in occupied):
                continue
            # A rule that says "not a date" still keeps weaker rules off the words.
            occupied.append(match.span())
            with suppress(OverflowError, ValueError):  # beyond the calendar
                match each.read(match, said_at):
                    case datetime() as moment:
                        yield _Piece(*match.span(), moment=moment)
                    case date() as day:
                        yield _Piece(*match.span(), day=day)
                    case time() as clock:
                        yield _Piece(*match.span(), clock=clock)


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
    clock = _clock_of_both(text, first, second)
    is_one = (first.day is None) != (second.day is None) and clock is not None
    is_time_twice = first.day is not None and second.day is None and first.clock is not None
    touches = first.end >= second.start or _BETWEEN.fullmatch(text[first.end : second.start])
    if first.moment or second.moment or not touches or not (is_one or is_time_twice):
        return None
    return _Piece(first.start, max(first.end, second.end), first.day or second.day, clock)


def _clock_of_both(text: str, first: _Piece, second: _Piece) -> time | None:
    """The hour of two pieces; a part of the day tells its half: "at seven tomorrow evening"."""
    if not (first.clock and second.clock):
        return second.clock or first.clock
    parts = [piece for piece in (first, second) if _PART.search(text[piece.start : piece.end])]
    if len(parts) != 1 and not (len(parts) == 2 and parts[1].start < parts[0].end):
        return second.clock
    exact, part = (first.clock, second.clock) if parts[0] is second or len(parts) == 2 else (second.clock, first.clock)
    is_later = part.hour >= _NOON > exact.hour
    return exact.replace(hour=exact.hour + _NOON) if is_later else exact


def _still(words: str, at: datetime, said_at: datetime) -> bool:
    """Check whether a part of the day that has begun, or the end of the day, means what is left of today."""
    return bool(_TODAY.search(words)) or (bool(_LATER_PART.search(words)) and said_at - at < _PART_LASTS)


def _resolved(text: str, piece: _Piece, said_at: datetime) -> SpokenDate | None:
    at = piece.moment or datetime.combine(piece.day or said_at.date(), piece.clock or END_OF_DAY, said_at.tzinfo)
    is_today = piece.clock is not None and not piece.moment and piece.day in (None, said_at.date())
    is_bare = not _HALF.search(text[piece.start : piece.end]) and at.hour < _NOON
    if is_today and at <= said_at < at + _HALF_DAY and is_bare and (piece.day or said_at.hour >= _NOON):
        at += _HALF_DAY  # "at seven", said in the afternoon, is in the evening
    elif is_today and at <= said_at and _still(text[piece.start : piece.end], at, said_at):
        piece = replace(piece, day=said_at.date(), clock=None)
        at = datetime.combine(said_at.date(), END_OF_DAY, said_at.tzinfo)
    elif not (piece.moment or piece.day) and at <= said_at:
        at += timedelta(days=1)  # "by nine", said at ten, is tomorrow
    if abs(at.year - said_at.year) > _FURTHEST_YEARS:
        return None
    has_time, has_day = bool(piece.moment or piece.clock), bool(piece.moment or piece.day)
    return SpokenDate(piece.start, piece.end, text[piece.start : piece.end].strip(), at, has_time, has_day, piece.clock)
