"""How a date is told to a reader, from where they stand in time."""

from datetime import datetime

from language.dates.arithmetic import END_OF_DAY
from language.words import Language

_NEAR = {
    Language.ENGLISH: {-1: "yesterday", 0: "today", 1: "tomorrow"},
    Language.RUSSIAN: {-1: "вчера", 0: "сегодня", 1: "завтра"},
}
_WEEKDAYS = {
    Language.ENGLISH: ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    Language.RUSSIAN: ("понедельник", "вторник", "среда", "четверг", "пятница", "суббота", "воскресенье"),
}
_MONTHS = {
    Language.ENGLISH: (
        "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
        "December",
    ),
    Language.RUSSIAN: (
        "января", "февраля", "марта", "апреля", "мая", "июня", "июля", "августа", "сентября", "октября", "ноября",
        "декабря",
    ),
}  # fmt: skip


def spoken(at: datetime, now: datetime, language: Language) -> str:
    """A date such as "tomorrow, 13 March, 15:00"; both moments on one clock."""
    parts = [_NEAR[language].get((at.date() - now.date()).days, _WEEKDAYS[language][at.weekday()])]
    day = f"{at.day} {_MONTHS[language][at.month - 1]}"
    parts.append(day if at.year == now.year else f"{day} {at.year}")
    if at.timetz().replace(tzinfo=None, microsecond=0) != END_OF_DAY:
        parts.append(f"{at:%H:%M}")
    return ", ".join(parts)
