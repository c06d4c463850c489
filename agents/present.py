"""The present, for prompts: date with weekday, clock time, time zone, and who the user is; clocks of simulated users.

In a prompt it is a block before the user's last words, in the user's language: an endpoint that keeps what it has read
of a prompt reads the instructions, the tools and the talk before it once, not each minute.

    <present>
    Now: Monday, 23 November 2026, 08:45 (2026-11-23T08:45+03:00, Europe/Moscow)
    User: Anna Petrova (id anna)
    Role: designer
    Projects: Site; App
    </present>
"""

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from bus_schema.users import User
from language.dates.vocabulary import EN_MONTHS, EN_WEEKDAYS, RU_MONTHS, RU_WEEKDAYS
from language.words import Language

_LABELS = {
    Language.ENGLISH: ("Now", "User", "User id", "Role", "Projects"),
    Language.RUSSIAN: ("Сейчас", "Пользователь", "Id пользователя", "Роль", "Проекты"),
}
_NAMES = {Language.ENGLISH: (EN_WEEKDAYS, EN_MONTHS), Language.RUSSIAN: (RU_WEEKDAYS, RU_MONTHS)}
_BLOCK = re.compile(r"^<present>\n(.*?)\n</present>$", re.DOTALL | re.MULTILINE)
_NOW = re.compile(r"\((\d{4}-\d\d-\d\dT\d\d:\d\d[+-]\d\d:\d\d), ([^()]+)\)$")
_USER = re.compile(r"^(?:User|Пользователь): (.+) \(id [^()]+\)$", re.MULTILINE)
_ROLE = re.compile(r"^(?:Role|Роль): (.+)$", re.MULTILINE)
_PROJECTS = re.compile(r"^(?:Projects|Проекты): (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Present:
    """The moment on the user's own clock, with the user; `name` is None where nobody has told it.

    `language` is None where the words at hand are to decide.
    """

    now: datetime
    zone: str
    user_id: str
    name: str | None = None
    role: str = ""
    projects: tuple[str, ...] = ()
    language: Language | None = None

    @classmethod
    def of(cls, user: User, now: datetime) -> "Present":
        """The present of a user with a zone; a name that only repeats the id is none."""
        zone = user.zone or "UTC"
        name = user.name if user.name != user.user_id else None
        language = Language(user.language) if user.language else None
        return cls(now.astimezone(ZoneInfo(zone)), zone, user.user_id, name, user.role, user.projects, language)

    def block(self, language: Language) -> str:
        """The block of a prompt."""
        now_label, user_label, id_label, role_label, projects_label = _LABELS[language]
        iso = self.now.replace(second=0, microsecond=0).isoformat(timespec="minutes")
        lines = [f"{now_label}: {self.moment(language)} ({iso}, {self.zone})"]
        lines.append(f"{user_label}: {self.name} (id {self.user_id})" if self.name else f"{id_label}: {self.user_id}")
        if self.role:
            lines.append(f"{role_label}: {self.role}")
        if self.projects:
            lines.append(f"{projects_label}: {'; '.join(self.projects)}")
        return "\n".join(("<present>", *lines, "</present>"))

    def moment(self, language: Language) -> str:
        """Day and time, such as "Monday, 23 November 2026, 08:45"."""
        return f"{day_text(self.now, language)}, {self.now:%H:%M}"


def without_present(text: str) -> str:
    """A text without such a block."""
    return _BLOCK.sub("", text)


def present_lines(text: str) -> frozenset[str]:
    """The lines of such a block in a text."""
    block = _BLOCK.search(text)
    return frozenset(block[0].split("\n")) - {""} if block else frozenset()


def parse_present(text: str) -> Present | None:
    """The present of a text that has such a block."""
    block = _BLOCK.search(text)
    now = _NOW.search(block[1].splitlines()[0]) if block else None
    if block is None or now is None:
        return None
    user, role, projects = (pattern.search(block[1]) for pattern in (_USER, _ROLE, _PROJECTS))
    return Present(
        now=datetime.fromisoformat(now[1]),
        zone=now[2],
        user_id="",
        name=user[1] if user else None,
        role=role[1] if role else "",
        projects=tuple(projects[1].split("; ")) if projects else (),
    )


def day_text(day: date, language: Language) -> str:
    """A day with its weekday, such as "Monday, 23 November 2026"."""
    weekdays, months = _NAMES[language]
    year = f"{day.year} г." if language is Language.RUSSIAN else str(day.year)
    return f"{weekdays[day.weekday()]}, {day.day} {months[day.month - 1]} {year}"


_MORNING = time(9)


@dataclass(frozen=True)
class SimulatedClock:
    """Affine map of real time: at the real moment `started_at` it shows `begins_at`, then goes `speed` times faster."""

    started_at: datetime
    begins_at: datetime
    speed: float

    @classmethod
    def of(cls, started_at: datetime, speed: float, begins_at: datetime | None, zone: str) -> "SimulatedClock":
        """Without `begins_at` it begins at nine in the morning of that day in the zone."""
        here = started_at.astimezone(ZoneInfo(zone))
        return cls(started_at, begins_at or datetime.combine(here.date(), _MORNING, here.tzinfo), speed)

    def simulated(self, moment: datetime) -> datetime:
        """Simulated time at a real moment."""
        return self.begins_at + (moment - self.started_at) * self.speed

    def real(self, moment: datetime) -> datetime:
        """Real moment of a simulated time."""
        return self.started_at + (moment - self.begins_at) / self.speed

    def real_span(self, span: timedelta) -> timedelta:
        """Real length of a simulated span."""
        return span / self.speed
