"""Dates and times that a text names, on the calendar of its speaker."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta

from language.dates import english, russian
from language.dates.arithmetic import END_OF_DAY, Reading, Spoken
from language.dates.grammar import ISO, Rule

_DAYS: Sequence[Rule] = (ISO, *russian.DAYS, *english.DAYS)
_TIMES: Sequence[Rule] = (*english.TIMES, *russian.TIMES)
_FURTHEST_YEARS = 20
# All that may stand between a day and its time.
_BETWEEN = re.compile(r"[\s,(]*(?:at|by|in|on|the|в|к|до|на|с|ближе|где-то|around|before)?[\s,]*")
_BEFORE = re.compile(
    r"\b(?:(?:no later than|not later than|due by|due on|due|by|before|until|till|on|at|for|from|starting|to|"
    r"не позже|не позднее|срок|дедлайн|к|ко|до|на|в|во|с|со|уже|где-то|примерно)[\s:—-]+)+$",
    re.IGNORECASE,
)


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
    spoken: Spoken


def dates_in(text: str, said_at: datetime) -> list[SpokenDate]:
    """Every date in a text, in order, reckoned from when it was said, in that moment's time zone."""
    days = list(_pieces(_DAYS, text, said_at, ()))
    times = list(_pieces(_TIMES, text, said_at, [piece for piece in days if not _is_tonight(text, piece)]))
    joined = _joined(text, sorted([*days, *times], key=lambda piece: (piece.start, -piece.end)))
    return [found for piece in joined if (found := _settled(text, piece, said_at))]


def without_dates(text: str, dates: Iterable[SpokenDate]) -> str:
    """The text with these dates cut out, along with the prepositions that led to them."""
    for found in sorted(dates, key=lambda each: -each.start):
        head = _BEFORE.sub("", text[: found.start])
        text = f"{head.rstrip()} {text[found.end :].lstrip()}" if head.strip() else text[found.end :].lstrip(" ,")
    return re.sub(r"\s+([,.;:!?])", r"\1", " ".join(text.split()))


def _pieces(rules: Sequence[Rule], text: str, said_at: datetime, taken: Sequence[_Piece]) -> Iterable[_Piece]:
    occupied = [(piece.start, piece.end) for piece in taken]
    for each in rules:
        for match in each.pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in occupied):
                continue
            reading = each.read(match)
            # A rule that says "not a date" still keeps weaker rules off the words.
            occupied.append((match.start(), match.end()))
            if reading and (spoken := _said(reading, said_at)):
                yield _Piece(match.start(), match.end(), spoken)


def _said(reading: Reading, said_at: datetime) -> Spoken | None:
    try:
        return reading(said_at)
    except (OverflowError, ValueError):
        # Beyond the calendar there is nothing to be done by then.
        return None


def _is_tonight(text: str, piece: _Piece) -> bool:
    return text[piece.start : piece.end].lower() == "tonight"


def _joined(text: str, pieces: Sequence[_Piece]) -> Iterable[_Piece]:
    """A day with its time is one date, whichever comes first."""
    waiting: _Piece | None = None
    for piece in pieces:
        both = waiting and _together(text, waiting, piece)
        if both:
            waiting = both
            continue
        if waiting:
            yield waiting
        waiting = piece
    if waiting:
        yield waiting


def _together(text: str, first: _Piece, second: _Piece) -> _Piece | None:
    day = first.spoken.day or second.spoken.day
    clock = _more_exact(first.spoken, second.spoken)
    is_one = (first.spoken.day is None) != (second.spoken.day is None) and clock is not None
    is_time_twice = first.spoken.day is not None and second.spoken.day is None and first.spoken.clock is not None
    touches = first.end >= second.start or _BETWEEN.fullmatch(text[first.end : second.start])
    if first.spoken.moment or second.spoken.moment or not touches or not (is_one or is_time_twice):
        return None
    return _Piece(first.start, max(first.end, second.end), Spoken(day=day, clock=clock))


def _more_exact(first: Spoken, second: Spoken) -> time | None:
    return second.clock or first.clock


def _settled(text: str, piece: _Piece, said_at: datetime) -> SpokenDate | None:
    spoken = piece.spoken
    at = spoken.moment or _on_calendar(spoken, said_at)
    if abs(at.year - said_at.year) > _FURTHEST_YEARS:
        return None
    has_time = spoken.moment is not None or spoken.clock is not None
    has_day = spoken.moment is not None or spoken.day is not None
    return SpokenDate(piece.start, piece.end, text[piece.start : piece.end].strip(), at, has_time, has_day)


def _on_calendar(spoken: Spoken, said_at: datetime) -> datetime:
    day = spoken.day or said_at.date()
    at = datetime.combine(day, spoken.clock or END_OF_DAY, tzinfo=said_at.tzinfo)
    # "By nine", said at ten, is tomorrow.
    return at + timedelta(days=1) if spoken.day is None and at <= said_at else at


def shifted(date: SpokenDate, by: int) -> SpokenDate:
    """The same date in a text that this one is a part of."""
    return replace(date, start=date.start + by, end=date.end + by)
