"""The assistant remembers the last minutes and what was decided, in both languages, over the bus."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bus_schema.episodes import Layer, raw_log_id_of
from bus_schema.lsm import ListEpisodes, RecordExchange, SaidMessage
from bus_schema.lsm_search import FoundEpisodes, GetHotEpisodes, SearchEpisodes
from bus_schema.packer import RunPacking
from config.settings import FleetSettings
from mindbus import Worker, WorkerContext
from mindbus.bus.handlers import on_command
from mindbus.testing.wait import until
from tests.dialogue_kit import Runtime, dialogue_settings, runtime
from tests.fleets import fleet_of
from tests.installed import FLEET
from tests.scripted_model import ScriptedModel
from workers.dialogue.worker import DialogueWorker

pytestmark = [pytest.mark.rabbit, pytest.mark.timeout(180)]
MARCH = datetime(2026, 3, 10, 9, tzinfo=UTC)
CHATTER = {
    "en": (
        "It rains again today.",
        "The bakery opened next door.",
        "My bike needs new tyres.",
        "Lunch was late.",
        "The lift is being repaired.",
        "A parcel came for the neighbours.",
    ),
    "ru": (
        "Сегодня опять дождь.",
        "Рядом открылась пекарня.",
        "Велосипеду нужны шины.",
        "Обед был поздно.",
        "В доме чинят лифт.",
        "Соседям пришла посылка.",
    ),
}
DOOR = {"en": ("The door code is 4711.", "What is the door code?"), "ru": ("Код двери 4711.", "Какой код двери?")}


def patient_settings(url: str, folder: Path, **options: Any) -> FleetSettings:
    """Memory takes its time while its embedder is being loaded."""
    return dialogue_settings(url, folder, **({"recall_timeout_s": 60} | options))


def shown(model: ScriptedModel) -> str:
    return "\n".join(message.content for message in model.asked[-1])


@asynccontextmanager
async def with_model(model: ScriptedModel, url: str, folder: Path, **options: Any) -> AsyncIterator[Runtime]:
    """Storage, histories and long-term memory, and a dialogue whose model is scripted."""

    def dialogue(context: WorkerContext) -> DialogueWorker:
        return DialogueWorker(context, model)

    dialogue.name = "dialogue"  # type: ignore[attr-defined]  # as a Worker class has one
    makers = (FLEET["storage"], FLEET["history"], FLEET["lsm"], FLEET["packer"], dialogue)
    async with fleet_of(*makers, settings=patient_settings(url, folder, **options)) as fleet:
        yield Runtime(fleet)


async def until_recorded(talk: Runtime, user_id: str, text: str) -> None:
    async def is_recorded() -> bool:
        query = SearchEpisodes(query=text, chat_id=user_id, budget_words=500, touch=False)
        result = await talk.bus.request(query)
        return any(turn.content == text for episode in result.episodes for turn in episode.turns)

    await until(is_recorded, 30, f"“{text}” is in long-term memory")


@pytest.mark.parametrize("language", ["en", "ru"])
async def test_a_door_code_of_six_messages_ago_is_known(amqp_url: str, tmp_path: Path, language: str) -> None:
    fact, question = DOOR[language]
    async with runtime(patient_settings(amqp_url, tmp_path), "storage", "history", "lsm", "dialogue") as talk:
        await talk.say("anna", fact)
        for text in CHATTER[language]:
            await talk.say("anna", text)

        assert "4711" in (await talk.say("anna", question)).response


@pytest.mark.parametrize("language", ["en", "ru"])
async def test_what_the_window_shows_no_more_is_recalled_though_it_was_said_a_minute_ago(
    amqp_url: str, tmp_path: Path, language: str
) -> None:
    fact, question = DOOR[language]
    model = ScriptedModel("Well. " * 60)
    async with with_model(model, amqp_url, tmp_path, llm_context_tokens=4096) as talk:
        first = await talk.say("anna", fact)
        for text in CHATTER[language]:
            await talk.say("anna", text)
        await until_recorded(talk, "anna", CHATTER[language][-1])

        answer = await talk.say("anna", question)

        last = model.asked[-1][-1].content
        recalled = re.findall(r'<material id="(raw_[^"]+)"', last)
        assert raw_log_id_of("anna", first.message_id) in recalled
        assert fact in last
        assert shown(model).count(fact) == 1
        assert shown(model).count(CHATTER[language][-1]) == 1, "what the window shows is not recalled"
        assert raw_log_id_of("anna", answer.message_id) not in recalled


@pytest.mark.parametrize(
    ("decision", "question"),
    [
        ("We decided to pay Polaris 30 percent in advance.", "What did we decide about Polaris?"),
        ("Решили: аванс «Полярису» 30 %, остальное после монтажа.", "Что мы решили про «Полярис»?"),
    ],
)
async def test_what_was_decided_long_ago_is_told_from_the_turn(
    amqp_url: str, tmp_path: Path, decision: str, question: str
) -> None:
    model = ScriptedModel("Well.")
    async with with_model(model, amqp_url, tmp_path) as talk:
        texts = (*CHATTER["en"], *CHATTER["ru"], decision)
        said = tuple(
            SaidMessage(role="user", content=text, time=MARCH + timedelta(minutes=minute))
            for minute, text in enumerate(texts)
        )
        await talk.bus.request(RecordExchange(chat_id="anna", messages=said))
        await talk.bus.request(RunPacking(at=MARCH + timedelta(days=60)))
        heads = (await talk.bus.request(ListEpisodes(chat_id="anna"))).items
        assert {head.layer for head in heads} == {Layer.WARM}

        await talk.say("anna", question)

        assert f"2026-03-10, user\n{decision}" in shown(model)


@pytest.mark.parametrize(
    ("fact", "question"),
    [
        ("The plumber comes on Thursday at nine.", "When will the pipes be mended?"),
        ("Сантехник придёт в четверг к девяти.", "Когда починят трубы?"),
    ],
)
async def test_what_may_be_the_answer_is_shown_marked_as_uncertain(
    amqp_url: str, tmp_path: Path, fact: str, question: str
) -> None:
    model = ScriptedModel("Well.")
    async with with_model(model, amqp_url, tmp_path) as talk:
        said = tuple(
            SaidMessage(role="user", content=text, time=MARCH + timedelta(minutes=minute))
            for minute, text in enumerate((fact, *CHATTER["en"], *CHATTER["ru"]))
        )
        await talk.bus.request(RecordExchange(chat_id="anna", messages=said))
        # Current episodes are shown in any case.
        await talk.bus.request(RunPacking(at=MARCH + timedelta(days=60)))

        await talk.say("anna", question)

        assert re.search(rf'<material id="raw_[^"]+" type="uncertain memory">\n[^\n]*\n{re.escape(fact)}', shown(model))


async def test_nothing_is_searched_for_a_greeting(amqp_url: str, tmp_path: Path) -> None:
    model = ScriptedModel("Well.")
    async with with_model(model, amqp_url, tmp_path) as talk:
        said = (SaidMessage(role="user", content="Hello, the door code is 4711.", time=MARCH),)
        await talk.bus.request(RecordExchange(chat_id="anna", messages=said))
        await talk.bus.request(RunPacking(at=MARCH + timedelta(days=60)))

        answer = await talk.say("anna", "Hello!")

        assert "4711" not in shown(model)
        assert (answer.episodes, answer.memory) == ((), None), "shared memory, which is not running, is not missed"


class SlowMemory(Worker):
    """Long-term memory that answers nobody in time."""

    name = "lsm"

    def __init__(self, _context: WorkerContext) -> None:
        self._never = asyncio.Event()

    @on_command
    async def search(self, query: SearchEpisodes) -> FoundEpisodes:
        await self._never.wait()
        raise AssertionError("unreachable: the deadline ends it")

    @on_command
    async def get_hot(self, query: GetHotEpisodes) -> FoundEpisodes:
        await self._never.wait()
        raise AssertionError("unreachable: the deadline ends it")


async def test_an_answer_names_its_episodes_and_the_turns_it_has_used(amqp_url: str, tmp_path: Path) -> None:
    model = ScriptedModel("It is 4711, as you said.", "Well.")
    async with with_model(model, amqp_url, tmp_path) as talk:
        said = (SaidMessage(role="user", content="The door code is 4711.", time=MARCH),)
        raw_log_ids = (await talk.bus.request(RecordExchange(chat_id="anna", messages=said))).raw_log_ids
        await talk.bus.request(RunPacking(at=MARCH + timedelta(days=60)))
        (before,) = (await talk.bus.request(ListEpisodes(chat_id="anna"))).items

        answer = await talk.say("anna", "What is the door code?")

        (episode,) = answer.episodes
        assert (episode.episode_id, episode.time) == (before.id, MARCH)
        assert (episode.raw_log_ids, episode.used) == (raw_log_ids, raw_log_ids)
        stored = (await talk.history("anna"))[-1]
        assert stored.episodes == answer.episodes
        assert stored.memory == answer.memory

        async def is_touched() -> bool:
            heads = (await talk.bus.request(ListEpisodes(chat_id="anna"))).items
            return next(head for head in heads if head.id == before.id).access_count == before.access_count + 1

        await until(is_touched, 30, "the episode of the used turn counts as accessed")

        unused = await talk.say("anna", "Who has the spare key to the door?")
        assert [each.used for each in unused.episodes if each.episode_id == before.id] in ([], [()])


async def test_memory_that_is_late_is_told(amqp_url: str, tmp_path: Path) -> None:
    def dialogue(context: WorkerContext) -> DialogueWorker:
        return DialogueWorker(context, ScriptedModel("Well."))

    dialogue.name = "dialogue"  # type: ignore[attr-defined]  # as a Worker class has one
    makers = (FLEET["storage"], FLEET["history"], SlowMemory, dialogue)
    settings = dialogue_settings(amqp_url, tmp_path, recall_timeout_s=0.3, drain_s=0.5)
    async with fleet_of(*makers, settings=settings) as fleet:
        answer = await Runtime(fleet).say("anna", "What is the door code?")

    assert answer.memory == "late"
    assert answer.episodes == ()
