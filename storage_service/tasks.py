"""Tasks: one row each, merged field by field, found by user, due date or next reminder."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Date, Index, String, Text, and_, cast, or_, select, text, update
from sqlalchemy.orm import Mapped, mapped_column

from bus_schema.processing import Task, TaskStatus
from bus_schema.replies import Code
from bus_schema.task_records import (
    ListTaskRecords,
    MessageTasks,
    SavedTasks,
    SaveTasks,
    SettleReminders,
    TaskField,
    TaskWrite,
)
from bus_schema.tasks import TaskPage
from mindbus.errors import Rejected
from mindbus.sql.database import Database
from mindbus.sql.tables import Utc
from retrieval.cursors import PageKey
from storage_service.rows import insert_if_absent
from storage_service.tables import JSON_VALUE, StorageBase

# Where a task without a due date stands in the order of due dates.
_NO_DUE = datetime(9999, 12, 31, tzinfo=UTC)
_COLUMNS: Mapping[TaskField, tuple[str, ...]] = {
    "text": ("text",),
    "owner": ("owner", "owner_id"),
    "due": ("due", "due_said", "due_on", "remind_at"),
    "status": ("status",),
}
_MOST_MESSAGES = 50


class OtherTasksOfMessage(Rejected, code=Code.CONFLICT):
    """Tasks of the message have been added meanwhile; read them, then decide again."""


class TaskRow(StorageBase):
    """A task; `written_at` has the moment as of which each field was written."""

    __tablename__ = "tasks"
    __table_args__ = (
        Index(None, "owner_id", "status", "due_order"),
        Index(None, "asked_by", "status", "due_order"),
        Index(None, "status", "due_order"),
        Index(None, "status", "next_reminder"),
        Index(None, "changed_at"),
    )
    task_id: Mapped[str] = mapped_column(String(80), primary_key=True)
    text: Mapped[str] = mapped_column(Text)
    owner: Mapped[str | None] = mapped_column(String(100))
    owner_id: Mapped[str | None] = mapped_column(String(64))
    asked_by: Mapped[str] = mapped_column(String(64))
    due: Mapped[datetime | None] = mapped_column(Utc)
    due_order: Mapped[datetime] = mapped_column(Utc)
    due_said: Mapped[str] = mapped_column(String(100))
    due_on: Mapped[date | None] = mapped_column(Date)
    remind_at: Mapped[datetime | None] = mapped_column(Utc)
    next_reminder: Mapped[datetime | None] = mapped_column(Utc)
    status: Mapped[str] = mapped_column(String(16))
    found_at: Mapped[datetime] = mapped_column(Utc)
    changed_at: Mapped[datetime] = mapped_column(Utc)
    message_ids: Mapped[list[str]] = mapped_column(JSON_VALUE)
    written_at: Mapped[dict[str, str]] = mapped_column(JSON_VALUE)
    version: Mapped[int] = mapped_column(BigInteger)


class Tasks:
    """The tasks table."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self.database, self.clock = database, clock

    async def save(self, command: SaveTasks) -> SavedTasks:
        """Merge tasks within the current transaction, in their order. Raises OtherTasksOfMessage."""
        if command.expected is not None:
            await self._check(command.expected, {write.task.task_id for write in command.writes})
        saved: dict[str, Task] = {}
        for write in command.writes:
            row = await self._row(write)
            if row is not None:
                saved[row.task_id] = _as_task(row)
        return SavedTasks(items=tuple(saved.values()))

    async def settle(self, command: SettleReminders) -> None:
        """Set the next reminder of tasks whose last one has gone out, within the current transaction."""
        for item in command.items:
            due = and_(TaskRow.task_id == item.task_id, TaskRow.next_reminder <= command.until)
            statement = update(TaskRow).where(due).values(next_reminder=item.next_reminder)
            await self.database.session.execute(statement.execution_options(synchronize_session=False))

    async def page(self, query: ListTaskRecords) -> TaskPage:
        """Raises InvalidCursor."""
        is_by_due = query.order == "due"
        order = TaskRow.due_order if is_by_due else TaskRow.found_at
        statement = select(TaskRow).where(*_conditions(query))
        if query.cursor is not None:
            key = PageKey.parse_plain(query.cursor)
            beyond = order > key.time if is_by_due else order < key.time
            statement = statement.where(or_(beyond, and_(order == key.time, TaskRow.task_id > key.id)))
        statement = statement.order_by(order if is_by_due else order.desc(), TaskRow.task_id).limit(query.limit + 1)
        async with self.database.reading() as session:
            rows = (await session.scalars(statement)).all()
        page = rows[: query.limit]
        last = page[-1] if len(rows) > query.limit else None
        place = (last.due_order if is_by_due else last.found_at) if last else None
        return TaskPage(
            items=tuple(map(_as_task, page)), next_cursor=PageKey(place, last.task_id).plain if last and place else None
        )

    async def _check(self, expected: MessageTasks, own: set[str]) -> None:
        """Raises OtherTasksOfMessage. Who checks the same message waits until this transaction has ended."""
        session = self.database.session
        if session.get_bind().dialect.name == "postgresql":
            await session.execute(text("SELECT pg_advisory_xact_lock(hashtext(:id))"), {"id": expected.message_id})
        is_of_message = and_(TaskRow.asked_by == expected.user_id, _has_message(expected.message_id))
        present = set(await session.scalars(select(TaskRow.task_id).where(is_of_message)))
        if present - own != set(expected.task_ids) - own:
            raise OtherTasksOfMessage(message_id=expected.message_id)

    async def _row(self, write: TaskWrite) -> TaskRow | None:
        """The row after a write, None where there is none and none is to be made."""
        session, task = self.database.session, write.task
        row = await session.get(TaskRow, task.task_id, with_for_update=True)
        if row is not None:
            _merge(row, write)
            await session.flush()
            return row
        if not write.insert:
            return None
        values = {name: getattr(task, name) for names in _COLUMNS.values() for name in names}
        values |= {
            "asked_by": task.asked_by,
            "due_order": task.due or _NO_DUE,
            "next_reminder": write.next_reminder,
            "found_at": task.found_at,
            "changed_at": write.at,
            "message_ids": list(task.message_ids),
            "written_at": dict.fromkeys(_COLUMNS, write.at.astimezone(UTC).isoformat()),
            "version": 1,
        }
        await insert_if_absent(session, TaskRow, task_id=task.task_id, **values)
        # Another transaction may have inserted it first.
        row = await session.get(TaskRow, task.task_id, with_for_update=True, populate_existing=True)
        if row is not None:
            _merge(row, write)
            await session.flush()
        return row


def _merge(row: TaskRow, write: TaskWrite) -> None:
    """Take over fields written as of the same moment or later, and further messages."""
    task, changed = write.task, False
    written_at = dict(row.written_at)
    for field in write.fields:
        if write.at < datetime.fromisoformat(written_at[field]):
            continue
        differs = [name for name in _COLUMNS[field] if getattr(row, name) != getattr(task, name)]
        for name in differs:
            setattr(row, name, getattr(task, name))
        if field == "due" and differs:
            row.due_order, row.next_reminder = task.due or _NO_DUE, write.next_reminder
        changed = changed or bool(differs)
        written_at[field] = write.at.astimezone(UTC).isoformat()
    row.written_at = written_at
    messages = list(dict.fromkeys((*row.message_ids, *task.message_ids)))[:_MOST_MESSAGES]
    if messages != row.message_ids:
        row.message_ids, changed = messages, True
    if changed:
        row.changed_at = max(row.changed_at, write.at)
        row.version += 1


def _conditions(query: ListTaskRecords) -> Iterable[ColumnElement[bool]]:
    for column, value in ((TaskRow.owner_id, query.owner_id), (TaskRow.status, query.status)):
        if value is not None:
            yield column == str(value)
    if query.users:
        yield or_(TaskRow.owner_id.in_(query.users), TaskRow.asked_by.in_(query.users))
    if query.task_ids:
        yield TaskRow.task_id.in_(query.task_ids)
    yield from _content_conditions(query)
    if query.delegated_by is not None:
        is_theirs = or_(TaskRow.owner_id.is_(None), TaskRow.owner_id != query.delegated_by)
        yield and_(TaskRow.asked_by == query.delegated_by, is_theirs)
    if query.due_before is not None:
        yield TaskRow.due_order < query.due_before
    if query.changed_since is not None:
        yield TaskRow.changed_at >= query.changed_since
    if query.reminder_before is not None:
        yield and_(TaskRow.status == TaskStatus.OPEN.value, TaskRow.next_reminder <= query.reminder_before)


def _content_conditions(query: ListTaskRecords) -> Iterable[ColumnElement[bool]]:
    if query.message_id is not None:
        yield _has_message(query.message_id)
    if query.words:
        yield _has_word(query.words)


def _has_word(words: Iterable[str]) -> ColumnElement[bool]:
    """SQLite disregards the case of ASCII letters only; few words are written all in capitals."""
    forms = sorted({form for word in words for form in (word.lower(), word.capitalize())})
    return or_(*(TaskRow.text.icontains(form, autoescape=True) for form in forms))


def _has_message(message_id: str) -> ColumnElement[bool]:
    return cast(TaskRow.message_ids, Text).contains(f'"{message_id}"', autoescape=True)


def _as_task(row: TaskRow) -> Task:
    columns: dict[str, Any] = {name: getattr(row, name) for name in Task.model_fields}
    return Task.model_validate(columns)
