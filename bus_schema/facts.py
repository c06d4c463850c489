"""Facts that users have stated: queries that the context manager serves, and the records that storage keeps."""

from pydantic import Field

from bus_schema.identities import UserId
from bus_schema.lsm import MAX_RECORDED, SaidMessage
from bus_schema.messages import Command, Nothing, Page, Query, Value
from bus_schema.processing import Fact, FactId, FactKind, FactUpdate

MAX_SAVED = 100
MAX_USERS = 1000
MAX_ABOUT_CHARS = 2000


class FactPage(Page[Fact]):
    """Facts, newest first."""


class ListFacts(Query[FactPage], domain="fact", action="list", service="context_manager"):
    """Page through the facts that a user has stated; without a user, through everybody's (for operators).

    Superseded facts are left out unless `superseded` is set.
    """

    user_id: UserId | None = None
    kind: FactKind | None = None
    superseded: bool = False
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=50, ge=1, le=200)


class RankedFacts(Value):
    """Facts, most relevant first."""

    items: tuple[Fact, ...]


class FindFacts(Query[RankedFacts], domain="fact", action="find", service="context_manager"):
    """Current facts that bear on a text: the user's own, and those that others have shared with the user's projects.

    Facts that share no word with the text follow, by kind, the user's own first, newest first.
    """

    user_id: UserId
    about: str = Field(max_length=MAX_ABOUT_CHARS)
    limit: int = Field(default=12, ge=1, le=50)


class LearntFacts(Value):
    """Facts that a conversation has revealed, confirmed or superseded."""

    items: tuple[FactUpdate, ...]


class LearnFacts(Command[LearntFacts], domain="fact", action="learn", service="context_manager"):
    """Learn the facts in a conversation held elsewhere, in chronological order; repeating it gives the same answer.

    Tasks, reminders and moods are not read from it.
    """

    user_id: UserId
    messages: tuple[SaidMessage, ...] = Field(min_length=1, max_length=MAX_RECORDED)


class SaveFacts(Command[Nothing], domain="storage", action="save_facts"):
    """Insert new facts; to known ones, add messages, and what supersedes them if nothing did before."""

    facts: tuple[Fact, ...] = Field(min_length=1, max_length=MAX_SAVED)


class ListFactRecords(Query[FactPage], domain="storage", action="list_facts"):
    """Page through facts that meet all conditions, newest first; `users` are those who stated them, none means anybody.

    With `shared`, only those that their speaker has shared with a project.
    """

    users: tuple[UserId, ...] = Field(default=(), max_length=MAX_USERS)
    fact_ids: tuple[FactId, ...] = Field(default=(), max_length=MAX_SAVED)
    kind: FactKind | None = None
    superseded: bool = False
    shared: bool = False
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=50, ge=1, le=200)
