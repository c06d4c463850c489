"""Rows of tasks under headings by due date."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from nicegui.element import Element

from bus_schema.processing import Task, TaskStatus
from gateway.ui.components import attributes, box, button, icon_button, person, text
from gateway.ui.i18n import Localizer, utc
from gateway.ui.rows import RedrawnRow, Rows
from gateway.ui.svg import icon

_WEEK = timedelta(days=7)
_GROUPS = ("", "overdue", "today", "tomorrow", "week", "later", "undated")


@dataclass(frozen=True)
class TaskItem:
    """A task as it is shown, or only the heading of a group; `can_undo` if it was closed a moment ago."""

    group: str
    task: Task | None = None
    due: str = ""
    can_undo: bool = False


@dataclass(frozen=True)
class TaskActions:
    """Handlers of the buttons of a row."""

    complete: Callable[[Task], Any]
    cancel: Callable[[Task], Any]
    move: Callable[[Task], Any]
    reopen: Callable[[Task], Any]


class TaskRows:
    """Tasks of a user, or of everybody where `user_id` is None; `people` are names by user id."""

    def __init__(self, i18n: Localizer, user_id: str | None, people: Mapping[str, str], actions: TaskActions) -> None:
        self.i18n, self._user_id, self._people, self._do = i18n, user_id, people, actions
        self._rows: Rows[TaskItem] = Rows(box("mb-task-rows", "ul"), self._row)

    def show(self, tasks: list[Task], undoable: Mapping[str, float], *, has_groups: bool) -> None:
        now = datetime.now(UTC)
        rows: dict[str, TaskItem] = {}
        grouped = [(due_group(self.i18n, task, now) if has_groups else "", task) for task in tasks]
        # A day ends where its user lives, a moment is the viewer's: by time alone tomorrow may come before today.
        for group, task in sorted(grouped, key=lambda pair: _GROUPS.index(pair[0])):
            if group:
                rows.setdefault(f"group {group}", TaskItem(group))
            rows[task.task_id] = TaskItem(group, task, due_text(self.i18n, task, now), task.task_id in undoable)
        self._rows.show(rows.items())

    def _row(self, item: TaskItem) -> RedrawnRow[TaskItem]:
        if item.task is None:
            return RedrawnRow(box("mb-task-group", "li"), self._draw_group)
        row = attributes(box("mb-task", "li"), data_row=item.task.task_id, tabindex=0)
        return RedrawnRow(row, lambda row, item: self._draw_task(row, item, item.task) if item.task else None)

    def _draw_group(self, _row: Element, item: TaskItem) -> None:
        text(self.i18n(f"tasks.{item.group}"), "mb-err" if item.group == "overdue" else "", "h2")

    def _draw_task(self, row: Element, item: TaskItem, task: Task) -> None:
        i18n = self.i18n
        is_open = task.status is TaskStatus.OPEN
        row.classes(replace=f"mb-task mb-task-{task.status.value}")
        if is_open:
            icon_button(
                "check", i18n("tasks.complete", task=task.text), lambda: self._do.complete(task), "mb-task-check"
            )
        else:
            icon("check" if task.status is TaskStatus.DONE else "close", "mb-task-mark")
        with box("mb-stack mb-grow"):
            text(task.text, "mb-task-text")
            with box("mb-task-about mb-meta"):
                if item.can_undo:
                    text(i18n(f"tasks.was_{task.status.value}"))
                elif task.due is not None:
                    due = text(item.due, "mb-num mb-err" if item.group == "overdue" else "mb-num", "time")
                    attributes(due, title=utc(task.due.astimezone(UTC)), datetime=task.due.isoformat())
                self._draw_people(task)
        with box("mb-task-actions"):
            if is_open:
                button(i18n("tasks.move"), lambda: self._do.move(task), "mb-quiet mb-small", "clock")
                button(i18n("tasks.cancel"), lambda: self._do.cancel(task), "mb-quiet mb-small", "close")
            else:
                label = i18n("tasks.undo" if item.can_undo else "tasks.reopen")
                button(label, lambda: self._do.reopen(task), "mb-quiet mb-small", "replay")

    def _draw_people(self, task: Task) -> None:
        """Owner and asker, unless it is the user."""
        owner = self._people.get(task.owner_id or "", task.owner or task.owner_id or "")
        if self._user_id is None or task.owner_id != self._user_id:
            with box("mb-line-x mb-task-person"):
                if owner:
                    person(task.owner_id or owner, owner, "mb-tiny")
                text(owner or self.i18n("tasks.nobody"))
        if task.asked_by not in (self._user_id, task.owner_id):
            text(self.i18n("tasks.from", who=self._people.get(task.asked_by, task.asked_by)))


def due_group(i18n: Localizer, task: Task, now: datetime) -> str:
    """The heading that an open task stands under, by the viewer's day."""
    if task.due is None:
        return "undated"
    today = now.astimezone(i18n.zone).date()
    day = task.due_on or task.due.astimezone(i18n.zone).date()
    if day < today or (task.due_on is None and task.due < now):
        return "overdue"
    if day <= today + timedelta(days=1):
        return "today" if day == today else "tomorrow"
    return "week" if day < today + _WEEK else "later"


def due_text(i18n: Localizer, task: Task, now: datetime) -> str:
    """The day, with the time where one was named; empty without a due date."""
    if task.due is None:
        return ""
    if task.due_on is not None:
        return i18n.date(datetime.combine(task.due_on, datetime.min.time(), i18n.zone), now)
    return f"{i18n.date(task.due, now)}, {task.due.astimezone(i18n.zone):%H:%M}"
