"""Users: who people are, where their clock stands, in which language they speak; kept by storage."""

from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, AwareDatetime, Field, StringConstraints

from bus_schema.identities import UserId
from bus_schema.messages import Command, Page, Query, Value

MAX_NAMES = 20
MAX_PROJECTS = 50


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise ValueError(f"there is no time zone {name!r}; write one like Europe/Moscow or UTC") from None
    return name


# A single line without the marks that lay out prompts.
_LINE = r"^[^\s<>][^\n\r<>]*$"
PersonName = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=_LINE)]
ProjectName = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=_LINE)]
Zone = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(_zone)]
LanguageCode = Literal["en", "ru"]


class User(Value):
    """A person; `name` is what to call them, `names` are other spellings, such as in another alphabet.

    Without a zone or a language, the defaults of the settings apply.
    """

    user_id: UserId
    name: PersonName
    names: tuple[PersonName, ...] = Field(default=(), max_length=MAX_NAMES)
    role: str = Field(default="", max_length=200, pattern=r"^[^\n\r<>]*$")
    zone: Zone | None = None
    language: LanguageCode | None = None
    projects: tuple[ProjectName, ...] = Field(default=(), max_length=MAX_PROJECTS)


class UserRecord(User):
    """A user as storage keeps it; `version` counts changes."""

    version: int = Field(ge=1)
    changed_at: AwareDatetime


class PutUser(Command[UserRecord], domain="storage", action="put_user"):
    """Store a user, replacing any earlier state.

    With `expected_version`, it is a conflict if the user has changed since it was read; 0 expects a new one.
    """

    user: User
    expected_version: int | None = Field(default=None, ge=0)


class GetUser(Query[UserRecord], domain="storage", action="get_user"):
    """Read a user."""

    user_id: UserId


class UserPage(Page[UserRecord]):
    """Users by id; the cursor is the last id."""


class ListUsers(Query[UserPage], domain="storage", action="list_users"):
    """Page through the users, limited to the given ids and project, if any."""

    user_ids: tuple[UserId, ...] = Field(default=(), max_length=200)
    project: ProjectName | None = None
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=50, ge=1, le=200)
