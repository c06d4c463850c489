"""UI messages, plural forms, numbers, times and agents' reasons in the language and time zone of the viewer."""

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta, tzinfo
from functools import cache
from importlib.resources import files
from typing import Final, cast

import yaml

from bus_schema.dialogue import DialogueFragment
from bus_schema.envelope import Envelope

LANGUAGES = ("en", "ru")
_THIN = "\u202f"
_KILO = 1024
_MINUTE = 60
_UNITS = (("d", 86400), ("h", 3600), ("min", 60))
# As `agents.context.decisions` writes them: a pattern and the message whose place it takes.
_NOTIFICATIONS: Final = (
    (re.compile(r"quiet hours until (?P<time>\d\d:\d\d)"), "reason.quiet"),
    (re.compile(r"waits for a pause in the talk"), "reason.pause"),
    (re.compile(r"gathers with what comes close after another"), "reason.gathers"),
    (re.compile(r"more than (?P<n>\d+) an hour"), "reason.rate"),
    (re.compile(r"; goes out with \S+"), "reason.merged"),
    (re.compile(r", by then it is stale"), "reason.stale_by_then"),
    (re.compile(r"stale: expired at (?P<time>.+)"), "reason.stale"),
    (re.compile(r"settled meanwhile: .*"), "reason.settled"),
    (re.compile(r"the same as \S+, told at (?P<time>[\d :-]+)"), "reason.told"),
    (re.compile(r"the same as \S+, which waits until (?P<time>[\d :-]+)"), "reason.waits"),
)


def language_of(chosen: str | None, accepted: str) -> str:
    """The chosen language, else the first supported one of Accept-Language, else English."""
    if chosen in LANGUAGES:
        return chosen
    accepted_languages = (part.split(";")[0].strip()[:2].lower() for part in accepted.split(","))
    return next((language for language in accepted_languages if language in LANGUAGES), LANGUAGES[0])


@cache
def catalogue(language: str) -> Mapping[str, str | list[str]]:
    """All messages of a language; a list holds plural forms."""
    text = files("gateway.ui").joinpath("catalogues", f"{language}.yaml").read_text(encoding="utf-8")
    return cast("Mapping[str, str | list[str]]", yaml.safe_load(text))


class Localizer:
    """Messages, numbers and times of one language and time zone."""

    def __init__(self, language: str, zone: tzinfo) -> None:
        self.language, self.zone = language, zone
        self._messages = catalogue(language)

    def __call__(self, key: str, **values: object) -> str:
        phrase = self._messages[key]
        assert isinstance(phrase, str), f"{key} is a plural"
        return phrase.format(**values) if values else phrase

    def named(self, kind: str, name: str) -> str:
        """The message of a name that may be of somebody else's making: without one, the name in words."""
        phrase = self._messages.get(f"{kind}.{name}")
        return phrase if isinstance(phrase, str) else name.replace("_", " ")

    def count(self, key: str, number: int, **values: object) -> str:
        forms = self._messages[key]
        assert isinstance(forms, list), f"{key} is not a plural"
        return forms[_form(self.language, number)].format(n=self.number(number), **values)

    def number(self, number: float, digits: int = 0) -> str:
        text = f"{number:,.{digits}f}"
        return text.replace(",", _THIN).replace(".", ",") if self.language == "ru" else text

    def seconds(self, seconds: float) -> str:
        """A duration in ms, s or as a clock."""
        if seconds < 1:
            return f"{self.number(seconds * 1000)} {self('unit.ms')}"
        if seconds < _MINUTE:
            return f"{self.number(seconds, 1)} {self('unit.s')}"
        return self.clock(seconds)

    def clock(self, seconds: float) -> str:
        """A duration as h:mm:ss or m:ss."""
        minutes, seconds_left = divmod(int(seconds), _MINUTE)
        hours, minutes = divmod(minutes, _MINUTE)
        return f"{hours}:{minutes:02}:{seconds_left:02}" if hours else f"{minutes}:{seconds_left:02}"

    def bytes(self, size: int) -> str:
        value, units = float(size), ["B", "KB", "MB", "GB"]
        while value >= _KILO and len(units) > 1:
            value /= _KILO
            units.pop(0)
        unit = units[0]
        return f"{self.number(value, 0 if unit == 'B' else 1)} {self(f'unit.{unit}')}"

    def time(self, moment: datetime, *, with_ms: bool = False) -> str:
        local = moment.astimezone(self.zone)
        return local.strftime("%H:%M:%S") + (f".{local.microsecond // 1000:03}" if with_ms else "")

    def hour(self, moment: datetime) -> str:
        return moment.astimezone(self.zone).strftime("%H:%M")

    def day(self, moment: datetime, today: datetime) -> str:
        """Day and month, with the word for today."""
        local, now = _dates(self.zone, moment, today)
        month = self("months").split()[local.month - 1]
        name = f"{month} {local.day}" if self.language == "en" else f"{local.day} {month}"
        return self("today", day=name) if local == now else name

    def when(self, moment: datetime, now: datetime) -> str:
        """The time if it was today, `yesterday`, else the day."""
        local, today = _dates(self.zone, moment, now)
        if local == today:
            return self.hour(moment)
        return self("yesterday") if today - local == timedelta(days=1) else self._short_day(local.day, local.month)

    def date(self, moment: datetime, today: datetime) -> str:
        """Day and short month, with the year if it is another one."""
        local, now = _dates(self.zone, moment, today)
        return self._short_day(local.day, local.month) + (f" {local.year}" if local.year != now.year else "")

    def _short_day(self, day: int, month: int) -> str:
        return f"{day} {self('months.short').split()[month - 1]}"

    def span(self, seconds: float) -> str:
        """A duration in its largest unit."""
        unit, size = next(((unit, size) for unit, size in _UNITS if seconds >= size), ("s", 1))
        return f"{int(seconds // size)} {self(f'unit.{unit}')}"


def _dates(zone: tzinfo, *moments: datetime) -> list[date]:
    return [moment.astimezone(zone).date() for moment in moments]


def utc(moment: datetime) -> str:
    """A time in UTC, for tooltips."""
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def _form(language: str, number: int) -> int:
    number = abs(number)
    if language != "ru":
        return 0 if number == 1 else 1
    if number % 10 == 1 and number % 100 != 11:
        return 0
    return 1 if 2 <= number % 10 <= 4 and not 12 <= number % 100 <= 14 else 2


def decision_reason(i18n: Localizer, reason: str) -> str:
    """The reason of the context agent for not delivering at once."""

    def message(key: str) -> Callable[[re.Match[str]], str]:
        return lambda match: i18n(key, **match.groupdict())

    for pattern, key in _NOTIFICATIONS:
        reason = pattern.sub(message(key), reason)
    return reason


def event_reason(i18n: Localizer, envelope: Envelope, reason: str) -> str:
    """The reason that an event carries."""
    if envelope.type == DialogueFragment.wire.type:
        return i18n.named("reason.fragment", reason)
    return decision_reason(i18n, reason) if envelope.type.startswith("mb.evt.notification.") else reason
