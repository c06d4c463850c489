"""Tools of the dialogue for tasks: which task is meant, what the offline model calls, how results are told."""

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest
from pydantic import BaseModel, Field, ValidationError

from agents.dialogue.task_tools import TASK_TOOLS, ListArguments, TaskWords, matching_tasks
from agents.models.conversation import chat_prompt
from agents.models.language_model import ModelMessage, Tool
from agents.models.offline.model import OfflineModel
from agents.models.prompt import with_present
from agents.present import Present
from bus_schema.processing import Task
from bus_schema.users import User
from language.words import Language

# A Monday.
NOW = datetime(2026, 11, 23, 7, 5, tzinfo=UTC)
PRESENT = Present.of(User(user_id="anna", name="Анна", zone="Europe/Moscow"), NOW)


async def called(said: str) -> tuple[str, dict[str, Any]] | None:
    messages = with_present(chat_prompt("You help.", [ModelMessage(role="user", content=said)]), PRESENT)
    calls = (await OfflineModel().complete(messages, tools=TASK_TOOLS)).tool_calls
    return (calls[0].name, json.loads(calls[0].arguments)) if calls else None


@pytest.mark.parametrize(
    ("said", "tool", "arguments"),
    [
        ("What is due today?", "list_tasks", {"due": "today"}),
        ("What's due this week?", "list_tasks", {"due": "week"}),
        ("What is due on Thursday?", "list_tasks", {"due": "2026-11-26"}),
        ("Какие у меня задачи на 30 ноября?", "list_tasks", {"due": "2026-11-30"}),
        ("What are my tasks?", "list_tasks", {"due": "all"}),
        ("What's overdue?", "list_tasks", {"due": "overdue"}),
        ("Что на мне висит?", "list_tasks", {"due": "all"}),
        ("What do I have to do tomorrow?", "list_tasks", {"due": "tomorrow"}),
        ("Какие у меня задачи?", "list_tasks", {"due": "all"}),
        ("Что мне сегодня сделать?", "list_tasks", {"due": "today"}),
        ("Что мне нужно сделать завтра?", "list_tasks", {"due": "tomorrow"}),
        ("Какие у меня дела на сегодня?", "list_tasks", {"due": "today"}),
        ("Перенеси созвон на четверг", "move_task", {"task": "созвон", "due": "четверг"}),
        ("Перенеси созвон на завтра в 15:00.", "move_task", {"task": "созвон", "due": "завтра в 15:00"}),
        ("Move the call to Thursday", "move_task", {"task": "call", "due": "Thursday"}),
        ("Отмени отчёт для банка.", "cancel_task", {"task": "отчёт для банка"}),
        ("Please cancel the call with Olga", "cancel_task", {"task": "call with Olga"}),
        ("I've done the report.", "complete_task", {"task": "I've done the report."}),
        ("Я уже сделала отчёт", "complete_task", {"task": "Я уже сделала отчёт"}),
        ("Отметь отчёт выполненным", "complete_task", {"task": "отчёт"}),
        (
            "Добавь задачу: позвонить в банк завтра в 9",
            "add_task",
            {"text": "позвонить в банк", "due": "завтра в 09:00"},
        ),
        ("Add a task: send the offer by Friday", "add_task", {"text": "send the offer", "due": "Friday"}),
        (
            "Напомни через 2 минуты выключить чайник",
            "add_task",
            {"text": "Выключить чайник", "due": "через 2 минуты", "remind": True},
        ),
        ("Remind me to pay rent on the 1st", "add_task", {"text": "Pay rent", "due": "the 1st"}),
        ("Напомни купить хлеб", "add_task", {"text": "Купить хлеб"}),
        ("Put 'water the plants' on my list for Saturday", "add_task", {"text": "water the plants", "due": "Saturday"}),
        ("Запиши мне на субботу полить цветы", "add_task", {"text": "полить цветы", "due": "субботу"}),
        ("I called mom already", "complete_task", {"task": "I called mom already"}),
        ("Смета готова!", "complete_task", {"task": "Смета готова!"}),
        ("Молоко уже не нужно", "cancel_task", {"task": "Молоко уже не нужно"}),
    ],
)
async def test_the_offline_model_calls_the_tool_that_is_asked_for(
    said: str, tool: str, arguments: dict[str, Any]
) -> None:
    assert await called(said) == (tool, arguments)


@pytest.mark.parametrize(
    "said",
    [
        "Привет!",
        "Какой сегодня день?",
        "Подготовлю смету до пятницы.",
        "Перенеси файл на сервер",
        "What is the due process in law?",
        "The move to Berlin went well.",
        "What do I do?",
        "Remind me what the door code is",
        "Напомни, что мы решили про бумагу",
        "Remind me",
        "Напомни вчера позвонить Борису",
    ],
)
async def test_other_words_call_no_tool(said: str) -> None:
    assert await called(said) is None


def a_task(number: int, text: str, **changes: Any) -> Task:
    known = {"task_id": f"task_{number}", "text": text, "asked_by": "anna", "found_at": NOW, "changed_at": NOW}
    return Task.model_validate(known | changes)


TASKS = [
    a_task(1, "Провести созвон с клиентом", due=datetime(2026, 11, 24, 12, tzinfo=UTC)),
    a_task(2, "Отправить отчёт в банк", due=datetime(2026, 11, 23, 20, 59, 59, tzinfo=UTC), due_on=date(2026, 11, 23)),
    a_task(3, "Отправить отчёт Борису"),
]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("созвон", ["task_1"]),
        ("отчёт в банк", ["task_2"]),
        ("отчёт", ["task_2", "task_3"]),
        ("task_3", ["task_3"]),
        ("ремонт", []),
    ],
)
def test_the_task_that_is_meant_is_found_by_its_words(words: str, meant: list[str]) -> None:
    assert [task.task_id for task in matching_tasks(words, TASKS)] == meant


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("I called mom already", ["task_4"]),
        ("My manager sent the invoice", []),
        ("I called Boris", []),
        ("done with the invoice", ["task_5"]),
        ("report", ["task_6"]),
    ],
)
def test_a_report_of_work_done_closes_only_a_task_of_that_work(words: str, meant: list[str]) -> None:
    tasks = [a_task(4, "Call mom"), a_task(5, "Pay the invoice"), a_task(6, "Send the report")]

    assert [task.task_id for task in matching_tasks(words, tasks, is_done=True)] == meant


def test_a_task_with_a_time_keeps_it_on_another_day() -> None:
    words = TaskWords(Language.RUSSIAN, NOW, "Europe/Moscow")

    assert words.same_time_on("четверг", TASKS[0]) == datetime(2026, 11, 26, 12, tzinfo=UTC)
    assert words.same_time_on("четверг в 10:00", TASKS[0]) is None, "a time of its own"
    assert words.same_time_on("четверг", TASKS[1]) is None, "due on a day"


def test_tasks_are_told_on_the_users_clock_in_the_language_of_the_question() -> None:
    words = TaskWords(Language.RUSSIAN, NOW, "Europe/Moscow")

    assert words.listed(TASKS, "all").splitlines() == [
        "Открытых задач: 3.",
        "- «Провести созвон с клиентом» — завтра, 24 ноября, 15:00 [task_1]",
        "- «Отправить отчёт в банк» — сегодня, 23 ноября [task_2]",
        "- «Отправить отчёт Борису» [task_3]",
    ]
    assert words.listed([], "today") == "На сегодня задач нет."
    assert words.due_before("today") == datetime(2026, 11, 23, 21, tzinfo=UTC)


def test_of_one_day_the_tasks_that_are_due_on_it_are_told() -> None:
    words, tuesday = TaskWords(Language.ENGLISH, NOW, "Europe/Moscow"), date(2026, 11, 24)

    assert words.due_before(tuesday) == datetime(2026, 11, 24, 21, tzinfo=UTC)
    assert words.listed(TASKS, tuesday).splitlines()[1:] == [
        "- “Провести созвон с клиентом” — tomorrow, 24 November, 15:00 [task_1]"
    ]
    assert words.listed(TASKS, date(2026, 11, 26)) == "Nothing is due on that day: Thursday, 26 November."
    assert ListArguments.model_validate({"due": "2026-11-26"}).due == date(2026, 11, 26)
    with pytest.raises(ValidationError):
        ListArguments.model_validate({"due": "soon"})


def test_a_long_list_says_how_many_more_there_are() -> None:
    many = [a_task(number, f"Task {number}") for number in range(45)]

    assert TaskWords(Language.ENGLISH, NOW, "UTC").listed(many, "all").endswith("… and 15 more.")


def test_a_tool_says_of_its_arguments_what_a_model_needs() -> None:
    class Arguments(BaseModel):
        """What programmers read."""

        title: str = Field(description="Of the book.")
        pages: list[int] | None = None

    tool = Tool.of("note", "Notes a book.", Arguments)

    assert tool.parameters == {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "Of the book."},
            "pages": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}], "default": None},
        },
        "required": ["title"],
    }
