"""A person asks the assistant for the date, the tasks, a reminder, in both languages, offline and over the bus."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from bus_schema.processing import TaskStatus
from bus_schema.tasks import AddTask, ListTasks
from bus_schema.users import PutUser, User
from language.dates.vocabulary import EN_WEEKDAYS, RU_WEEKDAYS
from mindbus.testing.wait import until
from tests.dialogue_kit import Runtime, dialogue_settings, runtime

pytestmark = [pytest.mark.rabbit, pytest.mark.timeout(180)]
ZONE = "Pacific/Auckland"
HERE = ZoneInfo(ZONE)


async def answer(talk: Runtime, user_id: str, text: str) -> str:
    return (await talk.say(user_id, text)).response


async def statuses(talk: Runtime, user_id: str) -> dict[str, TaskStatus]:
    page = await talk.bus.request(ListTasks(user_id=user_id, limit=200))
    return {task.text: task.status for task in page.items}


def next_thursday() -> datetime:
    """The coming Thursday on the user's clock, in a week on a Thursday."""
    now = datetime.now(HERE)
    return now + timedelta(days=(3 - now.weekday() - 1) % 7 + 1)


async def test_a_russian_speaker_asks_for_the_date_and_their_tasks(amqp_url: str, tmp_path: Path) -> None:
    async with runtime(dialogue_settings(amqp_url, tmp_path)) as talk:
        user = User(user_id="aliya", name="Алия", role="аналитик", zone=ZONE, language="ru")
        await talk.bus.request(PutUser(user=user))
        today = datetime.now(HERE).date().isoformat()
        await talk.bus.request(AddTask(user_id="aliya", text="Отправить отчёт", when=today))
        await talk.bus.request(AddTask(user_id="aliya", text="Провести созвон", when="2030-01-10"))

        assert RU_WEEKDAYS[datetime.now(HERE).weekday()] in await answer(talk, "aliya", "Какой сегодня день?")
        assert await answer(talk, "aliya", "Как меня зовут?") == "Вас зовут Алия."
        all_tasks = await answer(talk, "aliya", "Какие у меня задачи?")
        assert "«Отправить отчёт» — сегодня" in all_tasks
        assert "«Провести созвон»" in all_tasks
        assert "task_" not in all_tasks, "ids are for models"
        due_today = await answer(talk, "aliya", "Что мне сегодня сделать?")
        assert "«Отправить отчёт»" in due_today
        assert "созвон" not in due_today
        moved = await answer(talk, "aliya", "Перенеси созвон на четверг")
        assert moved.startswith("Перенесено: «Провести созвон» — ")
        page = await talk.bus.request(ListTasks(user_id="aliya", status=TaskStatus.OPEN))
        assert next(task.due_on for task in page.items if "созвон" in task.text) == next_thursday().date()
        assert await answer(talk, "aliya", "Я сделала отчёт") == "Выполнено: «Отправить отчёт»."
        assert await answer(talk, "aliya", "Отмени созвон") == "Отменено: «Провести созвон»."
        assert await statuses(talk, "aliya") == {
            "Отправить отчёт": TaskStatus.DONE,
            "Провести созвон": TaskStatus.CANCELLED,
        }


async def test_an_english_speaker_asks_for_the_date_and_their_tasks(amqp_url: str, tmp_path: Path) -> None:
    async with runtime(dialogue_settings(amqp_url, tmp_path)) as talk:
        await talk.bus.request(PutUser(user=User(user_id="wei", name="Wei", zone=ZONE, language="en")))
        today = datetime.now(HERE).date().isoformat()
        await talk.bus.request(AddTask(user_id="wei", text="Send the report", when=today))
        await talk.bus.request(AddTask(user_id="wei", text="Call with the client", when="2030-01-10T15:00"))

        assert EN_WEEKDAYS[datetime.now(HERE).weekday()] in await answer(talk, "wei", "What day is it?")
        assert "“Send the report” — today" in await answer(talk, "wei", "What is due today?")
        moved = await answer(talk, "wei", "Move the call to Thursday")
        assert moved.startswith("Moved: “Call with the client” — ")
        assert "“Call with the client”" in await answer(talk, "wei", "What are my tasks?")
        assert await answer(talk, "wei", "I've done the report.") == "Done: “Send the report”."
        assert await statuses(talk, "wei") == {
            "Send the report": TaskStatus.DONE,
            "Call with the client": TaskStatus.OPEN,
        }


async def test_a_reminder_asked_for_in_talk_is_one_task_and_comes(amqp_url: str, tmp_path: Path) -> None:
    async with runtime(dialogue_settings(amqp_url, tmp_path)) as talk:
        confirmed = await answer(talk, "wei", "Remind me in 4 seconds to turn off the kettle")
        assert confirmed.startswith("I will remind you: “Turn off the kettle”")
        asked_at = datetime.now(UTC)

        await talk.until_on_timeline("notification_sent", 1)
        said = [message.content or "" for message in await talk.history("wei")]
        assert any("You asked to be reminded: “Turn off the kettle”." in text for text in said)
        assert datetime.now(UTC) - asked_at < timedelta(seconds=60)

        async def is_one() -> bool:
            return list(await statuses(talk, "wei")) == ["Turn off the kettle"]

        await until(is_one, 10, "one task, whoever heard it")
