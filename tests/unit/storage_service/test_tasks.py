"""Tasks are merged field by field, listed by due date, told of when they are due."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bus_schema.processing import Task, TaskStatus
from bus_schema.task_records import (
    ListTaskRecords,
    MessageTasks,
    SaveTasks,
    SettledReminder,
    SettleReminders,
    TaskWrite,
)
from storage_service.tasks import OtherTasksOfMessage, Tasks
from tests.clocks import Clock
from tests.storage_kit import OpenDepot

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def tasks(open_depot: OpenDepot) -> Tasks:
    return Tasks(open_depot().database, Clock())


def a_task(number: int = 1, **changes: Any) -> Task:
    known = {
        "task_id": f"task_{number}",
        "text": "Send the report",
        "owner_id": "anna",
        "asked_by": "boris",
        "found_at": NOON,
        "changed_at": NOON,
        "message_ids": ("msg_1",),
    }
    return Task.model_validate(known | changes)


async def save(tasks: Tasks, task: Task, **how: Any) -> Task | None:
    write = TaskWrite.model_validate({"task": task, "at": NOON, **how})
    async with tasks.database.at_hand():
        return next(iter((await tasks.save(SaveTasks(writes=(write,)))).items), None)


async def ids(tasks: Tasks, **wanted: Any) -> list[str]:
    return [task.task_id for task in (await tasks.page(ListTaskRecords(**wanted))).items]


async def test_two_users_change_one_task_at_once_and_nothing_is_lost(tasks: Tasks) -> None:
    await save(tasks, a_task())

    moved = a_task(due=NOON + HOUR, due_said="at one", message_ids=("msg_2",))
    done = a_task(status=TaskStatus.DONE, message_ids=("msg_3",))
    await save(tasks, moved, fields=("due",), at=NOON + HOUR, insert=False)
    saved = await save(tasks, done, fields=("status",), at=NOON + HOUR / 2, insert=False)

    assert saved is not None
    assert (saved.due, saved.status) == (NOON + HOUR, TaskStatus.DONE)
    assert saved.message_ids == ("msg_1", "msg_2", "msg_3")
    assert saved.changed_at == NOON + HOUR


async def test_of_one_field_the_later_word_holds_however_late_the_earlier_one_comes(tasks: Tasks) -> None:
    await save(tasks, a_task())
    await save(tasks, a_task(due=NOON + 2 * HOUR), fields=("due",), at=NOON + 2 * HOUR)
    saved = await save(tasks, a_task(due=NOON + HOUR), fields=("due",), at=NOON + HOUR)

    assert saved is not None
    assert saved.due == NOON + 2 * HOUR


async def test_saving_again_changes_nothing_and_reminds_of_nothing_again(tasks: Tasks) -> None:
    task = a_task(due=NOON + HOUR)
    once = await save(tasks, task, next_reminder=NOON + HOUR)
    async with tasks.database.at_hand():
        await tasks.settle(SettleReminders(until=NOON + HOUR, items=(SettledReminder(task_id="task_1"),)))

    assert await save(tasks, task, next_reminder=NOON + HOUR) == once
    assert await ids(tasks, reminder_before=NOON + 2 * HOUR) == []


async def test_a_change_of_a_task_that_is_gone_makes_none(tasks: Tasks) -> None:
    assert await save(tasks, a_task(status=TaskStatus.DONE), fields=("status",), insert=False) is None
    assert await ids(tasks) == []


async def test_three_hundred_open_tasks_come_in_pages_by_due_date(tasks: Tasks) -> None:
    for first in range(0, 300, 100):
        writes = tuple(
            TaskWrite(task=a_task(number, due=NOON + number * HOUR if number % 2 else None), at=NOON)
            for number in range(first, first + 100)
        )
        async with tasks.database.at_hand():
            await tasks.save(SaveTasks(writes=writes))

    found: list[Task] = []
    query = ListTaskRecords(users=("anna",), status=TaskStatus.OPEN, limit=70)
    while True:
        page = await tasks.page(query)
        found += page.items
        if page.next_cursor is None:
            break
        query = query.model_copy(update={"cursor": page.next_cursor})

    assert len({task.task_id for task in found}) == len(found) == 300
    dated = [task.due for task in found if task.due]
    assert dated == sorted(dated)
    assert [task.due is None for task in found] == [False] * 150 + [True] * 150


async def test_tasks_are_found_by_user_owner_date_and_reminder(tasks: Tasks) -> None:
    await save(tasks, a_task(1, due=NOON + HOUR), next_reminder=NOON)
    await save(tasks, a_task(2, owner_id="olga", due=NOON + 3 * HOUR))
    await save(tasks, a_task(3, owner_id=None, asked_by="olga", status=TaskStatus.DONE), next_reminder=NOON)

    assert await ids(tasks, users=("anna",)) == ["task_1"]
    assert await ids(tasks, users=("olga",)) == ["task_2", "task_3"]
    assert await ids(tasks, owner_id="olga") == ["task_2"]
    assert await ids(tasks, due_before=NOON + 2 * HOUR) == ["task_1"]
    assert await ids(tasks, reminder_before=NOON) == ["task_1"], "a task that is done needs no reminder"


async def test_a_reminder_that_has_moved_meanwhile_is_not_settled(tasks: Tasks) -> None:
    await save(tasks, a_task(due=NOON), next_reminder=NOON)
    await save(tasks, a_task(due=NOON + HOUR), fields=("due",), at=NOON + HOUR, next_reminder=NOON + HOUR)
    async with tasks.database.at_hand():
        await tasks.settle(SettleReminders(until=NOON, items=(SettledReminder(task_id="task_1"),)))

    assert await ids(tasks, reminder_before=NOON + HOUR) == ["task_1"]


async def test_tasks_are_found_by_words_in_either_alphabet_and_by_message(tasks: Tasks) -> None:
    await save(tasks, a_task(1, text="Созвон с подрядчиком", message_ids=("msg_7",)))
    await save(tasks, a_task(2, text="Заказать торт", message_ids=("msg_70", "msg_8")))
    await save(tasks, a_task(3, text="Update the API docs (100 %)"))

    assert await ids(tasks, words=("созвон",)) == ["task_1"]
    assert await ids(tasks, words=("торт", "api")) == ["task_2", "task_3"]
    assert await ids(tasks, words=("0 %",)) == ["task_3"]
    assert await ids(tasks, message_id="msg_7") == ["task_1"]
    assert await ids(tasks, message_id="msg_8", users=("anna",)) == ["task_2"]


async def test_of_two_who_make_a_task_of_one_message_the_second_decides_again(tasks: Tasks) -> None:
    async def add(number: int, *known: str) -> None:
        write = TaskWrite(task=a_task(number), at=NOON)
        expected = MessageTasks(user_id="boris", message_id="msg_1", task_ids=known)
        async with tasks.database.at_hand():
            await tasks.save(SaveTasks(writes=(write,), expected=expected))

    outcomes = await asyncio.gather(*(add(number) for number in range(1, 6)), return_exceptions=True)

    assert [type(each) for each in outcomes if each] == [OtherTasksOfMessage] * 4
    (first,) = await ids(tasks, message_id="msg_1")
    await add(9, first)
    await add(9, first)
    assert sorted(await ids(tasks, message_id="msg_1")) == [first, "task_9"]
