"""Tasks on request: the commands and queries `task.*`, for the people concerned, services and operators."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import MAXYEAR, MINYEAR, datetime
from zoneinfo import ZoneInfo

from agents.due import Due, NoDate, parse_due
from agents.people import KnownPeople
from agents.task_manager.agent import TaskNotifications
from agents.task_manager.task_lookup import is_within
from bus_schema.dialogue import conversation_trace
from bus_schema.ids import derived
from bus_schema.messages import Event
from bus_schema.notification import NotificationGenerated
from bus_schema.processing import Task, TaskStatus, TaskUpdate
from bus_schema.replies import Code
from bus_schema.task_records import ListTaskRecords, TaskField
from bus_schema.tasks import AddTask, CallOffTask, CompleteTask, GetTask, ListTasks, TaskChanged, TaskPage, UpdateTask
from bus_schema.users import User
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, on_command
from mindbus.errors import Rejected
from mindbus.sdk.users import UserDirectory
from workers.task_store import ALL_FIELDS, FieldChange, ReaderClocks, TaskStore

# Reminders of one message.
_MOST_HEARD = 10
# Of these a day later, and the same moment on another clock, is still a date.
_YEARS = range(MINYEAR + 1, MAXYEAR)


class NoSuchTask(Rejected, code=Code.NOT_FOUND):
    """There is no such task, or you have neither asked for it nor own it."""


class UnreadableDate(Rejected):
    """There is no date in `when`; write one like 2026-11-26 15:00, Friday 15:00 or «завтра в 9»."""


class TaskCommands:
    """Handlers of tasks on request; each change is published as `processed.task_changed`, with news for others."""

    def __init__(
        self,
        store: TaskStore,
        users: UserDirectory,
        clocks: ReaderClocks,
        people: Callable[[], Awaitable[KnownPeople]],
        clock: Callable[[], datetime],
    ) -> None:
        self._store, self._users, self._clocks = store, users, clocks
        self._people, self._clock = people, clock

    @on_command
    async def list_tasks(self, query: ListTasks, context: MessageContext) -> TaskPage:
        user_id = context.acts_for(query.user_id)
        return await self._store.page(
            ListTaskRecords(
                users=(user_id,) if user_id else (),
                owner_id=query.owner,
                delegated_by=user_id if query.delegated else None,
                status=query.status,
                due_before=query.due_before,
                cursor=query.cursor,
                limit=query.limit,
            )
        )

    @on_command
    async def get_task(self, query: GetTask, context: MessageContext) -> Task:
        return await self._task(query.task_id, context.acts_for(query.user_id))

    @on_command
    async def add_task(self, command: AddTask, context: MessageContext) -> tuple[Task | Publish, ...]:
        user_id = context.acts_for(command.user_id) or command.user_id
        user = await self._users.of(user_id)
        now = self._here(user)
        due = _due_of(command, now)
        people = await self._people()
        owner, owner_id = _owner_of(command.owner, user, people, await self._users.all())
        task = Task(
            task_id=command.task_id or f"task_{derived(context.message_id, 'task')}",
            text=command.text.strip(),
            owner=owner,
            owner_id=owner_id,
            asked_by=user_id,
            due=due.at if due else None,
            due_said=due.said[:100] if due else "",
            due_on=due.on if due else None,
            remind_at=due.at if due and command.remind and due.on is None else None,
            found_at=now,
            changed_at=now,
            message_ids=(command.message_id,) if command.message_id else (),
        )
        known = await self._store.find(task.task_id)
        if known is not None:
            if user_id not in (known.owner_id, known.asked_by):
                raise Rejected(Code.CONFLICT, f"{known.task_id} is taken; mint another id, or leave it out")
            return (known,)
        if command.message_id is None:
            (saved,) = await self._store.save([FieldChange(task, ALL_FIELDS, now, insert=True)], now)
            return saved, *await self._news("found", saved, user_id)
        same: list[Task] = []

        def unknown(of_message: Sequence[Task]) -> list[Task]:
            same[:] = [each for each in of_message if _is_same(task, each, people)]
            return [] if same else [task]

        added = await self._store.add([task], command.message_id, unknown, now)
        return (added[0], *await self._news("found", added[0], user_id)) if added else (same[0],)

    @on_command
    async def update_task(self, command: UpdateTask, context: MessageContext) -> tuple[Task | Publish, ...]:
        actor = context.acts_for(command.user_id)
        task = await self._task(command.task_id, actor)
        user = await self._users.of(actor or task.asked_by)
        now = self._here(user)
        changes: dict[TaskField, dict[str, object]] = {}
        if command.text is not None and command.text.strip() != task.text:
            changes["text"] = {"text": command.text.strip()}
        if command.owner is not None:
            owner, owner_id = _owner_of(command.owner, user, await self._people(), await self._users.all())
            if (owner, owner_id) != (task.owner, task.owner_id):
                changes["owner"] = {"owner": owner, "owner_id": owner_id}
        due = _due_of(command, now)
        if due is not None and due.at != task.due:
            remind_at = due.at if task.remind_at and due.on is None else None
            moved = {"due": due.at, "due_said": due.said[:100], "due_on": due.on, "remind_at": remind_at}
            changes["due"] = moved
        if command.reopen and task.status is not TaskStatus.OPEN:
            changes["status"] = {"status": TaskStatus.OPEN}
        return await self._changed(task, changes, now, user.user_id)

    @on_command
    async def complete_task(self, command: CompleteTask, context: MessageContext) -> tuple[Task | Publish, ...]:
        return await self._closed(command, TaskStatus.DONE, context)

    @on_command
    async def cancel_task(self, command: CallOffTask, context: MessageContext) -> tuple[Task | Publish, ...]:
        return await self._closed(command, TaskStatus.CANCELLED, context)

    async def _closed(
        self, command: CompleteTask | CallOffTask, status: TaskStatus, context: MessageContext
    ) -> tuple[Task | Publish, ...]:
        actor = context.acts_for(command.user_id)
        task = await self._task(command.task_id, actor)
        changes: dict[TaskField, dict[str, object]] = {"status": {"status": status}} if task.status != status else {}
        return await self._changed(task, changes, self._clock(), actor or task.asked_by)

    async def _changed(
        self, task: Task, changes: dict[TaskField, dict[str, object]], now: datetime, by: str
    ) -> tuple[Task | Publish, ...]:
        if not changes:
            return (task,)
        values = {name: value for fields in changes.values() for name, value in fields.items()}
        after = task.model_copy(update={**values, "changed_at": now})
        saved = next(iter(await self._store.save([FieldChange(after, tuple(changes), now)], now)), None)
        if saved is None:
            raise NoSuchTask(task_id=task.task_id)
        news = [each for field in changes for each in await self._news(_change_of(field, saved), saved, by)]
        return saved, *news

    async def _news(self, change: str, task: Task, by: str) -> list[Publish]:
        """The change, and notifications for others whom it concerns."""
        events: list[Event] = [TaskChanged.model_validate({"user_id": by, "change": change, "task": task})]
        if change not in ("reworded", "reopened"):
            users = await self._users.all()
            notices = TaskNotifications(await self._people(), lambda user_id: self._clocks.zone_of(user_id, users))
            events += notices.of_updates([TaskUpdate.model_validate({"change": change, "task": task})], by)
        return [Publish(event, conversation_trace(_reader(event, by))) for event in events]

    async def _task(self, task_id: str, actor: str | None) -> Task:
        """Raises NoSuchTask, also for a task of others."""
        task = await self._store.find(task_id)
        if task is None or (actor is not None and actor not in (task.owner_id, task.asked_by)):
            raise NoSuchTask(task_id=task_id, is_denied=task is not None)
        return task

    def _here(self, user: User) -> datetime:
        return self._clock().astimezone(ZoneInfo(user.zone or "UTC"))


def _due_of(command: AddTask | UpdateTask, now: datetime) -> Due | None:
    """Raises UnreadableDate."""
    try:
        if command.due is not None:
            due = Due(command.due, None, "")
        elif command.when is not None:
            due = parse_due(command.when, now)
        else:
            return None
    except NoDate as error:
        raise UnreadableDate(message=f"when: {error}") from error
    if due.at.year not in _YEARS:
        span = f"{_YEARS.start} to {_YEARS.stop - 1}"
        raise UnreadableDate(message=f"the year {due.at.year} is out of reach of any reminder; name one from {span}")
    return due


def _owner_of(
    owner: str | None, user: User, people: KnownPeople, users: Sequence[User]
) -> tuple[str | None, str | None]:
    """Name and id of an owner who is given by id or by name; the user themself by default."""
    if owner is None or owner in (user.user_id, user.name):
        return user.name, user.user_id
    by_id = next((each for each in users if each.user_id == owner), None)
    if by_id is not None:
        return by_id.name, by_id.user_id
    named = people.named(owner)
    return (named.name, named.user_id) if named and named.user_id else (owner, None)


def _is_same(task: Task, known: Task, people: KnownPeople) -> bool:
    """Whether its message has been made this task already, be it by the reminder that was heard in other words."""
    heard = (f"task_{derived(task.message_ids[0], 'task', ordinal)}" for ordinal in range(_MOST_HEARD))
    is_heard = known.remind_at is not None and known.remind_at == task.due and known.task_id in heard
    return is_heard or is_within(task.text, known.text, people)


def _change_of(field: TaskField, task: Task) -> str:
    by_status = {TaskStatus.OPEN: "reopened", TaskStatus.DONE: "done", TaskStatus.CANCELLED: "cancelled"}
    return {"text": "reworded", "owner": "reassigned", "due": "moved", "status": by_status[task.status]}[field]


def _reader(event: Event, by: str) -> str:
    return event.to_user if isinstance(event, NotificationGenerated) else by
