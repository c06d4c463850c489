"""One call of the model reads a fragment for all agents of a process, each of which gets its own answer."""

import asyncio
from datetime import UTC, datetime

import pytest

from agents import fragment_reader
from agents.configuration.prompts import shipped_guide
from agents.fragment_reader import FragmentReader, ReadingPart
from agents.models.endpoint import EndpointModel
from agents.models.errors import ModelUnavailable
from agents.models.prompt import Material
from agents.mood_watcher import ReadMood
from agents.task_manager.model_extraction import ReadTasks
from bus_schema.dialogue import DialogueMessage
from tests.scripted_model import ScriptedModel

SAID = [
    DialogueMessage(
        message_id="msg_1", user_id="anna", role="user", content="Всё готово!", time=datetime(2026, 3, 9, tzinfo=UTC)
    )
]
TASKS = ReadingPart(
    "tasks", shipped_guide("task_manager"), "Report.", ReadTasks, [Material("open", "tasks", "task_1: отчёт")]
)
MOOD = ReadingPart("mood", shipped_guide("mood_watcher"), "Judge.", ReadMood)
JOINT = '{"mood": {"tone": 0.8, "evidence": ["готово"]}, "tasks": {"items": []}}'


def two_readers(model: ScriptedModel) -> tuple[FragmentReader, FragmentReader]:
    tasks, mood = (FragmentReader(EndpointModel(model, "http://127.0.0.1:1/v1")) for _ in range(2))
    tasks.join("tasks")
    mood.join("mood")
    return tasks, mood


async def test_one_call_reads_for_both() -> None:
    model = ScriptedModel(JOINT)
    tasks, mood = two_readers(model)

    read, tone = await asyncio.gather(tasks.read(TASKS, SAID), mood.read(MOOD, SAID))

    assert read == ReadTasks(items=[])
    assert tone == ReadMood(tone=0.8, evidence=["готово"])
    ((system, user),) = model.asked
    assert "a key for each job: mood, tasks" in system.content
    assert user.content.count("Всё готово!") == 1
    assert "task_1: отчёт" in user.content


async def test_an_agent_reads_alone_where_the_others_do_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragment_reader, "_GATHER_S", 0.01)
    model = ScriptedModel(ReadTasks(items=[]), ReadMood(tone=0, evidence=[]))
    tasks, mood = two_readers(model)

    assert await tasks.read(TASKS, SAID) == ReadTasks(items=[])
    assert await mood.read(MOOD, SAID) == ReadMood(tone=0, evidence=[])
    assert len(model.asked) == 2


async def test_an_agent_that_has_left_is_not_waited_for() -> None:
    model = ScriptedModel(ReadTasks(items=[]))
    tasks, mood = two_readers(model)
    mood.leave("mood")

    async with asyncio.timeout(5):
        assert await tasks.read(TASKS, SAID) == ReadTasks(items=[])


async def test_where_the_model_is_away_each_goes_by_its_rules_after_one_call() -> None:
    model = ScriptedModel(ModelUnavailable("away"))
    tasks, mood = two_readers(model)

    read, tone = await asyncio.gather(tasks.read(TASKS, SAID), mood.read(MOOD, SAID))

    assert (read, tone) == (None, None)
    assert len(model.asked) == 1


async def test_an_agent_that_is_ended_leaves_the_reading_to_the_other() -> None:
    model = ScriptedModel(JOINT)
    tasks, mood = two_readers(model)
    first = asyncio.create_task(tasks.read(TASKS, SAID))
    await asyncio.sleep(0)
    first.cancel()

    assert await mood.read(MOOD, SAID) == ReadMood(tone=0.8, evidence=["готово"])


async def test_a_reading_that_chats_interrupt_for_too_long_is_left_to_the_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fragment_reader, "_READ_WITHIN_S", 0.05)
    model = ScriptedModel(JOINT)
    tasks, mood = two_readers(model)

    async with EndpointModel(model, "http://127.0.0.1:1/v1").endpoint.chat():
        read, tone = await asyncio.gather(tasks.read(TASKS, SAID), mood.read(MOOD, SAID))

    assert (read, tone) == (None, None)
    assert model.asked == []
