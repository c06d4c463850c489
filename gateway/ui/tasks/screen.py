"""The tasks screen: tasks that a user owns or asked for, by due date, with what can be done about them."""

import json
import math
import time
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote

from nicegui import ui

from bus_schema.envelope import Envelope
from bus_schema.identities import is_user_id
from bus_schema.messages import Command
from bus_schema.processing import Task, TasksFound, TaskStatus
from bus_schema.tasks import AddTask, CallOffTask, CompleteTask, ListTasks, TaskChanged, TaskPage, UpdateTask
from bus_schema.users import ListUsers
from gateway.api.tasks import read_tasks, request_task
from gateway.ui.components import SegmentedControl, box, button, choice, show_if
from gateway.ui.dialogs import ask_for_date, ask_for_task
from gateway.ui.layout import skeleton
from gateway.ui.page_session import PageSession
from gateway.ui.sections import EXPECTED_ERRORS, EmptyState, ScreenSection, error_text
from gateway.ui.tasks.rows import TaskActions, TaskRows, due_text

TASK_EVENTS: Final = frozenset({TaskChanged.wire.type, TasksFound.wire.type})
_COOKIE = "mb_user"
_COMMAND = 'mindbus tasks add "Send the report" --user {user} --due "Friday 15:00"'
_PAGE, _LARGEST_PAGE = 50, 200
_MOST_PEOPLE = 200
_UNDO_S = 6.0
_PARTS = ("all", "own", "delegated")
_STATUSES = tuple(TaskStatus)


class TasksScreen:
    """User, part and status are kept in the address: `?user=anna&part=own&status=done`."""

    def __init__(self, session: PageSession, people: dict[str, str]) -> None:
        self.session, self._people = session, people
        user_id = session.query.get("user") or unquote(ui.context.client.request.cookies.get(_COOKIE, ""))
        self.user_id = user_id if is_user_id(user_id) else None
        self._tasks: list[Task] = []
        self._next: str | None = None
        # Tasks closed on this page stay in their place until then (monotonic, seconds), to be opened again.
        self._closed: dict[str, float] = {}
        self._is_stale = False
        self._draw_controls()
        with box("mb-tasks mb-scroll") as place:
            self.part = ScreenSection(session.i18n, place)
            self.part.placeholder = skeleton()
            with box("mb-task-list") as self._list:
                actions = TaskActions(self._complete, self._cancel, self._move, self._reopen)
                self._rows = TaskRows(session.i18n, self.user_id, people, actions)
                self._more = button(session.i18n("memory.more"), self._load_more, "mb-quiet mb-hidden", "down")
            command = _COMMAND.format(user=self.user_id or "anna")
            self._empty = EmptyState(session.i18n, "task", command, self._draw_add_button)

    @classmethod
    async def draw(cls, session: PageSession) -> None:
        screen = cls(session, await _people(session))
        session.receive(0.5, screen.receive)
        await screen.refresh()
        session.every(1.0, screen.tick)
        if session.query.get("new"):
            screen._add()

    def receive(self, envelopes: list[Envelope], has_missed: bool) -> None:
        self._is_stale |= has_missed or any(envelope.type in TASK_EVENTS for envelope in envelopes)

    async def tick(self) -> None:
        now = time.monotonic()
        over = [task_id for task_id, until in self._closed.items() if until <= now]
        for task_id in over:
            del self._closed[task_id]
        if self._is_stale or over:
            await self.refresh()
        else:
            await self.part.retry_if_failed()

    async def refresh(self) -> None:
        self._is_stale = False
        await self.part.attempt(self._refresh)

    @property
    def _status(self) -> TaskStatus:
        status = self.session.query.get("status", "")
        return TaskStatus(status) if status in _STATUSES else TaskStatus.OPEN

    @property
    def _part(self) -> str:
        part = self.session.query.get("part", "")
        return part if self.user_id and part in _PARTS else "all"

    async def _refresh(self) -> None:
        """Read anew as many pages of tasks as are shown."""
        number = max(math.ceil(len(self._tasks) / _PAGE), 1) * _PAGE
        tasks: list[Task] = []
        cursor: str | None = None
        while len(tasks) < number:
            page = await self._page(cursor, min(number - len(tasks), _LARGEST_PAGE))
            tasks += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
        present = {task.task_id for task in tasks}
        tasks += [task for task in self._tasks if task.task_id in self._closed and task.task_id not in present]
        self._tasks, self._next = sorted(tasks, key=_order), cursor
        self._show()

    async def _load_more(self) -> None:
        async def load() -> None:
            page = await self._page(self._next, _PAGE)
            known = {task.task_id for task in self._tasks}
            self._tasks += [task for task in page.items if task.task_id not in known]
            self._next = page.next_cursor
            self._show()

        await self.session.attempt(load())

    async def _page(self, cursor: str | None, limit: int) -> TaskPage:
        query = ListTasks(
            user_id=self.user_id,
            status=self._status,
            owner=self.user_id if self._part == "own" else None,
            delegated=self._part == "delegated",
            cursor=cursor,
            limit=limit,
        )
        return await read_tasks(self.session.backend, query, self.user_id)

    def _show(self) -> None:
        is_open = self._status is TaskStatus.OPEN
        self._rows.show(self._tasks, self._closed, has_groups=is_open)
        show_if(self._more, self._next)
        show_if(self._list, self._tasks)
        self._empty.explain("tasks.empty" if is_open else "tasks.no_closed", has_command=is_open)
        self._empty.show(is_empty=not self._tasks)
        number = sum(task.status is self._status for task in self._tasks)
        shown = self.session.i18n.count(f"tasks.count_{self._status.value}", number)
        self.session.subtitle(self.session.i18n("tasks.first", tasks=shown) if self._next else shown)

    async def _complete(self, task: Task) -> None:
        await self._change(CompleteTask(task_id=task.task_id), closes=True)

    async def _cancel(self, task: Task) -> None:
        await self._change(CallOffTask(task_id=task.task_id), closes=True)

    async def _reopen(self, task: Task) -> None:
        self._closed.pop(task.task_id, None)
        await self._change(UpdateTask(task_id=task.task_id, reopen=True))

    async def _change(self, command: Command[Task], *, closes: bool = False) -> None:
        """Show the task as it is after the command, in its place."""

        async def change() -> None:
            task = await request_task(self.session.backend, self.user_id, command)
            if closes:
                self._closed[task.task_id] = time.monotonic() + _UNDO_S
            self._tasks = [task if each.task_id == task.task_id else each for each in self._tasks]
            self._show()

        await self.session.attempt(change())

    def _move(self, task: Task) -> None:
        async def move(when: str) -> str | None:
            i18n, command = self.session.i18n, UpdateTask(task_id=task.task_id, when=when)
            try:
                moved = await request_task(self.session.backend, self.user_id, command)
            except EXPECTED_ERRORS as error:
                return error_text(i18n, error)
            self.session.say(i18n("tasks.moved", when=due_text(i18n, moved, datetime.now(UTC))))
            await self.refresh()
            return None

        ask_for_date(self.session.i18n, task.text, move)

    def _add(self) -> None:
        async def add(user_id: str, words: str, owner: str, when: str) -> str | None:
            if not user_id:
                return self.session.i18n("chat.no_name")
            try:
                user_id = await self.session.backend.names.introduce(user_id, self.session.backend.bus)
                command = AddTask(user_id=user_id, text=words, owner=owner or None, when=when or None)
                await request_task(self.session.backend, user_id, command)
            except EXPECTED_ERRORS as error:
                return error_text(self.session.i18n, error)
            await self.refresh()
            return None

        ask_for_task(self.session.i18n, self.user_id, add)

    def _draw_add_button(self) -> None:
        button(self.session.i18n("tasks.new"), self._add, "mb-primary", "plus")

    def _draw_controls(self) -> None:
        i18n = self.session.i18n
        names = ({self.user_id: self.user_id} if self.user_id else {}) | self._people
        users = [(user, name if name == user else f"{name} · {user}") for user, name in names.items()]
        users.sort(key=lambda option: option[1].casefold())
        with self.session.controls:
            choice(i18n("tasks.user"), [("", i18n("tasks.everybody")), *users], self.user_id or "", self._choose_user)
            with box("mb-task-add"):
                self._draw_add_button()
        with box("mb-filters"):
            if self.user_id:
                parts = [(part, i18n(f"tasks.part_{part}")) for part in _PARTS]
                SegmentedControl(parts, self._part, lambda part: self._turn(part="" if part == "all" else part))
            box("mb-grow mb-not-phone")
            statuses = [(status.value, i18n(f"tasks.status_{status.value}")) for status in _STATUSES]
            with box("mb-task-status"):
                choice(
                    i18n("tasks.status"),
                    statuses,
                    self._status.value,
                    lambda status: self._turn(status="" if status == "open" else status),
                )

    async def _turn(self, **state: str) -> None:
        self.session.remember(**state)
        self._tasks, self._closed = [], {}
        await self.refresh()

    def _choose_user(self, user_id: str) -> None:
        self.session.remember(user=user_id, part=None)
        ui.run_javascript(f"mbRemember('{_COOKIE}', {json.dumps(user_id)}); location.reload()")


async def _people(session: PageSession) -> dict[str, str]:
    """Names of the users of the table and of those with a dialogue, by id; without those that cannot be read."""
    bus = session.backend.bus
    people: dict[str, str] = {}
    try:
        people |= {
            item.user_id: session.backend.names.of(item.user_id)
            for item in (await session.backend.dialogues(_MOST_PEOPLE)).items
        }
        people |= {user.user_id: user.name for user in (await bus.request(ListUsers(limit=_MOST_PEOPLE))).items}
    except EXPECTED_ERRORS as error:
        session.say(error_text(session.i18n, error))
    return people


def _order(task: Task) -> tuple[bool, datetime, str]:
    return task.due is None, task.due or datetime.min.replace(tzinfo=UTC), task.task_id
