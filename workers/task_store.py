"""Access of the task manager to the tasks that storage keeps, and to the clocks of those who read of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from agents.context.preferences import PreferencesFile
from agents.reminders import MORNING, ReaderClock, next_reminder, reader_of
from bus_schema.processing import Task, TaskStatus
from bus_schema.replies import Code
from bus_schema.task_records import (
    MAX_SAVED,
    MAX_USERS,
    ListTaskRecords,
    MessageTasks,
    SaveTasks,
    SettledReminder,
    SettleReminders,
    TaskField,
    TaskWrite,
)
from bus_schema.tasks import TaskPage
from bus_schema.users import User
from language.words import Language, terms
from mindbus.bus.client import Client
from mindbus.errors import Rejected, TemporaryFailure
from mindbus.sdk.requests import items_of, request_in_scope
from mindbus.sdk.users import UserDirectory

_PAGE = 200
# A reminder whose moment passed while it was on its way here is told late rather than never.
_LATE = timedelta(hours=1)
# As many of colleagues' newest tasks as a fragment is compared with, besides those that share a word with it.
_MOST_OF_OTHERS = 500
_MOST_ROOTS, _LONGEST_ROOT = 40, 100
_MOST_ATTEMPTS = 5
ALL_FIELDS: tuple[TaskField, ...] = ("text", "owner", "due", "status")


class ReaderClocks:
    """Zones, mornings and languages of users: the users table, the habits file, its default."""

    def __init__(self, users: UserDirectory, habits: PreferencesFile) -> None:
        self._users, self._habits = users, habits

    async def of(self, user_id: str) -> ReaderClock:
        return self._clock(await self._users.of(user_id))

    def zone_of(self, user_id: str, users: Sequence[User]) -> ZoneInfo:
        """The zone of a user among those given, or the default."""
        zone = next((user.zone for user in users if user.user_id == user_id), None)
        return ZoneInfo(zone or self._habits.zone_of(user_id))

    def _clock(self, user: User) -> ReaderClock:
        habits = self._habits.of(user.user_id, user.zone)
        morning = habits.quiet_until if habits.quiet_from != habits.quiet_until else None
        language = Language(user.language) if user.language else None
        return ReaderClock(ZoneInfo(user.zone or habits.zone), morning or MORNING, language)


@dataclass(frozen=True)
class FieldChange:
    """A task after a change of some of its fields, as of a moment."""

    task: Task
    fields: tuple[TaskField, ...]
    at: datetime
    insert: bool = False


class TaskStore:
    """Tasks kept by storage. Every method raises Rejected, TemporaryFailure, BusUnavailable."""

    def __init__(self, bus: Client, clocks: ReaderClocks) -> None:
        self._bus, self._clocks = bus, clocks

    async def page(self, query: ListTaskRecords) -> TaskPage:
        return await request_in_scope(self._bus, query)

    async def all(self, query: ListTaskRecords, most: int | None = None) -> list[Task]:
        """Tasks of every page, or the first so many."""
        tasks: list[Task] = []
        async for task in items_of(self._bus, query):
            tasks.append(task)
            if len(tasks) == most:
                break
        return tasks

    async def find(self, task_id: str) -> Task | None:
        return next(iter((await self.page(ListTaskRecords(task_ids=(task_id,)))).items), None)

    async def concerning(self, user_id: str, colleagues: Sequence[str], since: datetime, about: str) -> list[Task]:
        """Tasks that a fragment may be about: the user's open ones, theirs changed since, colleagues' open ones.

        Of colleagues' tasks all that share a word with what was said, and the newest: of more than these no statement
        without a word of theirs could be told to mean them.
        """
        own = await self.all(ListTaskRecords(users=(user_id,), status=TaskStatus.OPEN, limit=_PAGE))
        recent = await self.all(ListTaskRecords(users=(user_id,), changed_since=since, limit=_PAGE))
        if not colleagues:
            return list({task.task_id: task for task in (*own, *recent)}.values())
        others = ListTaskRecords(
            users=tuple(colleagues)[:MAX_USERS], status=TaskStatus.OPEN, order="newest", limit=_PAGE
        )
        theirs = await self.all(others, most=_MOST_OF_OTHERS)
        roots = sorted({*terms(about)}, key=len, reverse=True)[:_MOST_ROOTS]
        related = others.model_copy(update={"words": tuple(root[:_LONGEST_ROOT] for root in roots)})
        meant = await self.all(related) if roots else []
        return list({task.task_id: task for task in (*theirs, *meant, *own, *recent)}.values())

    async def add(
        self, made: Sequence[Task], message_id: str, choose: Callable[[Sequence[Task]], Sequence[Task]], now: datetime
    ) -> list[Task]:
        """Add those of the tasks made of a message that `choose` picks, given all tasks of the message by then.

        Events and commands come by two queues, perhaps to two instances: whoever is second decides again.
        """
        user_id = made[0].asked_by
        for _attempt in range(_MOST_ATTEMPTS):
            present = await self.all(ListTaskRecords(users=(user_id,), message_id=message_id))
            new = choose(present)
            if not new:
                return []
            ids = tuple(task.task_id for task in present if task.asked_by == user_id)
            expected = MessageTasks(user_id=user_id, message_id=message_id, task_ids=ids)
            changes = [FieldChange(task, ALL_FIELDS, task.changed_at, insert=True) for task in new]
            try:
                return await self.save(changes, now, expected)
            except Rejected as error:
                if error.code is not Code.CONFLICT:
                    raise
        raise TemporaryFailure(f"tasks of {message_id} change all the time")

    async def save(
        self, changes: Iterable[FieldChange], now: datetime, expected: MessageTasks | None = None
    ) -> list[Task]:
        """Merge changes; returns the tasks after them. Raises Rejected if other tasks are of a message by then."""
        writes = [
            TaskWrite(
                task=change.task,
                fields=change.fields,
                at=change.at,
                insert=change.insert,
                next_reminder=next_reminder(
                    change.task, await self._clocks.of(reader_of(change.task)), max(change.at, now - _LATE)
                ),
            )
            for change in changes
        ]
        saved: list[Task] = []
        for start in range(0, len(writes), MAX_SAVED):
            batch = tuple(writes[start : start + MAX_SAVED])
            saved += (await request_in_scope(self._bus, SaveTasks(writes=batch, expected=expected))).items
        return saved

    async def due(self, now: datetime) -> Sequence[Task]:
        """Open tasks that somebody is to be told of by now, a page at most."""
        return (await self.page(ListTaskRecords(reminder_before=now, limit=_PAGE))).items

    async def settle(self, tasks: Iterable[Task], now: datetime) -> None:
        """Record that everybody has been told of these tasks as of now."""
        items = [
            SettledReminder(
                task_id=task.task_id, next_reminder=next_reminder(task, await self._clocks.of(reader_of(task)), now)
            )
            for task in tasks
        ]
        if items:
            await request_in_scope(self._bus, SettleReminders(until=now, items=tuple(items)))
