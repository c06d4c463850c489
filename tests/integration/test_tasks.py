"""Tasks on request, over the bus: whose they are, what changes, what is found twice."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agents.context.preferences import open_preferences
from bus_schema.agent_data import GetAgentData, PutAgentData
from bus_schema.conversations import SaveMessage
from bus_schema.dialogue import EndDialogue, conversation_trace
from bus_schema.processing import Task, TaskStatus
from bus_schema.replies import Code
from bus_schema.task_records import ListTaskRecords
from bus_schema.tasks import AddTask, CallOffTask, CompleteTask, GetTask, ListTasks, UpdateTask
from bus_schema.users import PutUser, User
from mindbus.errors import ReplyError
from mindbus.sdk.users import UserDirectory
from mindbus.testing.wait import until
from tests.dialogue_kit import Runtime, dialogue_settings, runtime
from workers.task_store import ALL_FIELDS, FieldChange, ReaderClocks, TaskStore

pytestmark = [pytest.mark.rabbit, pytest.mark.timeout(180)]
MOSCOW = "Europe/Moscow"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.backends)])
def database(request: pytest.FixtureRequest) -> dict[str, str]:
    """Settings of the database."""
    return {"database_url": request.getfixturevalue("postgres_url")} if request.param == "postgres" else {}


async def open_texts(talk: Runtime, user_id: str) -> list[str]:
    page = await talk.bus.request(ListTasks(user_id=user_id, status=TaskStatus.OPEN, limit=200))
    return [task.text for task in page.items]


async def add_people(talk: Runtime) -> None:
    for user_id, name in (("anna", "Анна"), ("boris", "Борис")):
        await talk.bus.request(PutUser(user=User(user_id=user_id, name=name, zone=MOSCOW, language="ru")))


async def test_tasks_are_added_changed_and_closed_by_those_concerned(
    amqp_url: str, tmp_path: Path, database: dict[str, str]
) -> None:
    async with runtime(dialogue_settings(amqp_url, tmp_path, **database), "storage", "task_manager", "tracker") as talk:
        await add_people(talk)
        anna, boris = talk.bus.acting_as("user.anna"), talk.bus.acting_as("user.boris")
        task = await anna.request(
            AddTask(user_id="anna", text="Проверить договор", owner="Борис", when="2030-05-06T15:00")
        )
        again = await anna.request(AddTask(user_id="anna", text="Проверить договор", task_id=task.task_id))

        assert (task.owner, task.owner_id, task.asked_by, task.message_ids) == ("Борис", "boris", "anna", ())
        assert task.due == datetime(2030, 5, 6, 12, tzinfo=UTC), "the user's zone"
        assert again == task
        moved = await boris.request(UpdateTask(task_id=task.task_id, when="2030-05-07"))
        assert str(moved.due_on) == "2030-05-07"
        done = await boris.request(CompleteTask(task_id=task.task_id))
        assert done.status is TaskStatus.DONE
        assert (await boris.request(CompleteTask(task_id=task.task_id))).changed_at == done.changed_at
        cake = await anna.request(AddTask(user_id="anna", text="Заказать торт"))
        assert (await anna.request(CallOffTask(task_id=cake.task_id))).status is TaskStatus.CANCELLED

        changed = await talk.until_on_timeline("processed.task_changed", 5)
        assert [(each.data or {})["change"] for each in changed] == ["found", "moved", "done", "found", "cancelled"]
        told = [each.data or {} for each in await talk.until_on_timeline("notification_generated", 3)]
        assert {(each["to_user"], each["about"].split()[-1]) for each in told} == {
            ("boris", "found"),
            ("anna", "moved"),
            ("anna", "done"),
        }


async def test_nobody_sees_or_changes_the_tasks_of_others(
    amqp_url: str, tmp_path: Path, database: dict[str, str]
) -> None:
    async with runtime(dialogue_settings(amqp_url, tmp_path, **database), "storage", "task_manager") as talk:
        await add_people(talk)
        anna, boris, olga = (talk.bus.acting_as(f"user.{name}") for name in ("anna", "boris", "olga"))
        task = await anna.request(AddTask(user_id="anna", text="Проверить договор", owner="boris"))

        assert [each.task_id for each in (await boris.request(ListTasks(owner="boris"))).items] == [task.task_id]
        assert (await olga.request(ListTasks())).items == ()
        for refused in (GetTask(task_id=task.task_id), CompleteTask(task_id=task.task_id)):
            with pytest.raises(ReplyError) as error:
                await olga.request(refused)
            assert error.value.code is Code.NOT_FOUND
        with pytest.raises(ReplyError) as error:
            await talk.bus.acting_as("agent.critic").request(ListTasks())
        assert error.value.code is Code.UNAUTHORIZED
        with pytest.raises(ReplyError, match="mint another id"):
            await olga.request(AddTask(user_id="olga", text="x", task_id=task.task_id))
        with pytest.raises(ReplyError, match="Friday 15:00"):
            await anna.request(UpdateTask(task_id=task.task_id, when="когда-нибудь"))
        for far in ("0001-01-01", "9999-12-31"):
            with pytest.raises(ReplyError, match="out of reach"):
                await anna.request(UpdateTask(task_id=task.task_id, when=far))


async def test_two_tasks_of_one_message_for_one_day_are_two(
    amqp_url: str, tmp_path: Path, database: dict[str, str]
) -> None:
    async with runtime(dialogue_settings(amqp_url, tmp_path, **database), "storage", "task_manager") as talk:
        await add_people(talk)
        anna = talk.bus.acting_as("user.anna")
        words = ("Pay the rent", "Call the bank", "pay the rent")
        made = [
            await anna.request(AddTask(user_id="anna", text=text, when="2030-05-06", message_id="msg_1"))
            for text in words
        ]

    assert [task.text for task in made] == ["Pay the rent", "Call the bank", "Pay the rent"]


async def test_a_reminder_is_one_task_whoever_hears_it_and_comes_at_once(
    amqp_url: str, tmp_path: Path, database: dict[str, str]
) -> None:
    quiet = 'default: {quiet_from: "00:00", quiet_until: "23:59", gap_minutes: 0}\nusers: {}\n'
    settings = dialogue_settings(amqp_url, tmp_path, **database)
    (tmp_path / "habits.yaml").write_text(quiet, encoding="utf-8")
    async with runtime(settings) as talk:
        await talk.bus.request(PutUser(user=User(user_id="anna", name="Анна", zone=MOSCOW, language="ru")))
        await talk.say("anna", "Напомни через 3 секунды выключить чайник")

        async def is_there() -> bool:
            return await open_texts(talk, "anna") == ["Выключить чайник"]

        await until(is_there, 10, "the reminder, before any fragment")
        await talk.until_on_timeline("notification_sent", 1)
        said = [message.content or "" for message in await talk.history("anna")]
        assert any("Вы просили напомнить: «Выключить чайник»." in text for text in said), "in quiet hours too"

        await talk.bus.request(EndDialogue(user_id="anna"), trace=conversation_trace("anna"))
        await talk.until_on_timeline("agent_result", 3)
        assert await open_texts(talk, "anna") == ["Выключить чайник"]


async def test_a_task_that_was_done_meanwhile_is_not_found_again(
    amqp_url: str, tmp_path: Path, database: dict[str, str]
) -> None:
    async with runtime(dialogue_settings(amqp_url, tmp_path, **database)) as talk:
        await talk.say("anna", "Remind me tomorrow at 9am to call mom")

        async def is_there() -> bool:
            return await open_texts(talk, "anna") == ["Call mom"]

        await until(is_there, 10, "the reminder")
        (task,) = (await talk.bus.request(ListTasks(user_id="anna"))).items
        await talk.bus.request(CompleteTask(task_id=task.task_id, user_id="anna"))
        await talk.bus.request(EndDialogue(user_id="anna"), trace=conversation_trace("anna"))
        await talk.until_on_timeline("agent_result", 3)

        assert await open_texts(talk, "anna") == []


async def test_the_tasks_of_an_older_version_become_records(
    amqp_url: str, tmp_path: Path, database: dict[str, str]
) -> None:
    now = datetime.now(UTC)
    old = {
        "task_id": "task_old",
        "text": "Send the proposal",
        "owner": "Anna",
        "owner_id": "anna",
        "asked_by": "anna",
        "due": (now + timedelta(days=3)).replace(hour=23, minute=59, second=59, microsecond=0).isoformat(),
        "due_said": "by Friday",
        "status": "open",
        "found_at": now.isoformat(),
        "changed_at": now.isoformat(),
        "message_ids": ["msg_1"],
    }
    state = {"state": {"book": {"tasks": [old], "reminded": []}, "heard": []}, "turns": [], "owed": []}
    settings = dialogue_settings(amqp_url, tmp_path, **database)
    async with runtime(settings, "storage") as talk:
        await talk.bus.request(
            PutAgentData(agent="task_manager", namespace="notes", key="team", value=json.loads(json.dumps(state)))
        )
    async with runtime(settings, "storage", "task_manager") as talk:

        async def is_moved() -> bool:
            return await open_texts(talk, "anna") == ["Send the proposal"]

        await until(is_moved, 20, "the task")
        (task,) = (await talk.bus.request(ListTasks(user_id="anna"))).items
        assert task.due_on == (now + timedelta(days=3)).date()

        async def is_gone() -> bool:
            query = GetAgentData(agent="task_manager", namespace="notes", key="team")
            return (await talk.bus.request(query)).items == ()

        await until(is_gone, 20, "the old value goes")


async def test_a_message_of_the_assistant_makes_no_reminder(
    amqp_url: str, tmp_path: Path, database: dict[str, str]
) -> None:
    async with runtime(dialogue_settings(amqp_url, tmp_path, **database), "storage", "task_manager", "tracker") as talk:
        trace = conversation_trace("anna")
        for number, role in enumerate(("assistant", "user")):
            said = SaveMessage.model_validate(
                {
                    "message_id": f"msg_{number}",
                    "user_id": "anna",
                    "role": role,
                    "content": f"Remind me in {number + 5} minutes to stretch",
                    "time": datetime.now(UTC),
                }
            )
            await talk.bus.acting_as("svc.dialogue").request(said, trace=trace)

        async def is_there() -> bool:
            return bool(await open_texts(talk, "anna"))

        await until(is_there, 10, "the user's")
        (task,) = (await talk.bus.request(ListTasks(user_id="anna"))).items
        assert task.message_ids == ("msg_1",)


async def test_two_instances_make_one_task_of_one_message(
    amqp_url: str, tmp_path: Path, database: dict[str, str]
) -> None:
    settings = dialogue_settings(amqp_url, tmp_path, **database)
    at = datetime.now(UTC)

    def task(name: str) -> Task:
        made = {"task_id": f"task_{name}", "text": "Call mom", "asked_by": "anna", "message_ids": ("msg_1",)}
        return Task.model_validate(made | {"found_at": at, "changed_at": at})

    async with runtime(settings, "storage") as talk:
        clocks = ReaderClocks(UserDirectory(talk.bus), open_preferences(settings.habits))
        instances = [TaskStore(talk.bus, clocks) for _ in range(4)]

        async def add(store: TaskStore, own: Task) -> list[Task]:
            return await store.add([own], "msg_1", lambda known: () if known else (own,), at)

        added = await asyncio.gather(*(add(store, task(f"of_{number}")) for number, store in enumerate(instances)))

        assert sum(map(len, added)) == 1
        kept = await instances[0].all(ListTaskRecords(users=("anna",), message_id="msg_1"))
        assert [kept] == [each for each in added if each]


async def test_of_colleagues_tasks_the_one_that_is_named_is_among_the_candidates_of_strangers_none(
    amqp_url: str, tmp_path: Path, database: dict[str, str]
) -> None:
    settings = dialogue_settings(amqp_url, tmp_path, **database)
    at = datetime.now(UTC)

    def task(number: int, text: str) -> Task:
        made = {"task_id": f"task_{number}", "text": text, "asked_by": "boris", "owner_id": "boris"}
        return Task.model_validate(made | {"found_at": at + timedelta(seconds=number), "changed_at": at})

    async with runtime(settings, "storage") as talk:
        store = TaskStore(talk.bus, ReaderClocks(UserDirectory(talk.bus), open_preferences(settings.habits)))
        tasks = [task(0, "Починить кофемашину"), *(task(number, f"Оплатить счёт {number}") for number in range(1, 602))]
        await store.save([FieldChange(each, ALL_FIELDS, at, insert=True) for each in tasks], at)

        known = await store.concerning("anna", ("boris",), at, "Кофемашина снова работает.")
        unnamed = await store.concerning("anna", ("boris",), at, "Привет!")
        strangers = await store.concerning("anna", (), at, "Кофемашина снова работает.")

        assert {"task_0", "task_601"} <= {each.task_id for each in known}
        assert "task_0" not in {each.task_id for each in unnamed}
        assert strangers == []
