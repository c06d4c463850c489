"""Recalling does not keep memory hot: after half a year of greetings what was said long ago is cold."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agents.models.offline.model import OfflineModel
from bus_schema.dialogue import Invoke, conversation_trace
from bus_schema.episodes import EpisodeHead, Layer
from bus_schema.lsm import ListEpisodes, RecordExchange, SaidMessage
from bus_schema.packer import RunPacking
from mindbus import Client, Worker, WorkerContext
from tests.clocks import Clock
from tests.dialogue_kit import dialogue_settings
from tests.fleets import fleet_of
from tests.installed import FLEET
from workers.dialogue.worker import DialogueWorker

pytestmark = pytest.mark.slow
MARCH = datetime(2026, 3, 1, 9, tzinfo=UTC)
DAYS = 180
MATTERS = (
    ("The door code of the studio is 4711.", "Noted: 4711."),
    ("We decided to print the catalogue in Riga.", "Riga it is."),
    ("Polaris gets 30 percent in advance.", "30 percent in advance, noted."),
    ("My sister Nora moves to Bergen in June.", "Bergen is lovely in June."),
    ("The blue bicycle needs new tyres.", "There is a workshop nearby."),
    ("Код домофона на складе 2208.", "Записал: 2208."),
    ("Договор с «Лотосом» подписали до мая.", "Хорошо, до мая."),
    ("Кот Барсик не ест сухой корм.", "Попробуйте влажный."),
    ("Решили: выставка откроется двенадцатого.", "Понял, двенадцатого."),
    ("Бабушка живёт в Туле на улице Мира.", "Запомнил адрес."),
)
GREETINGS = (
    ("Good morning! How are you today?", "Good evening! A quiet day, nothing special."),
    ("Доброе утро! Как настроение сегодня?", "Добрый вечер! День прошёл спокойно."),
)


def timed(make: Callable[[WorkerContext], Worker], name: str, clock: Clock) -> Callable[[WorkerContext], Worker]:
    """The worker by a clock of the test."""

    def made(context: WorkerContext) -> Worker:
        return make(replace(context, clock=clock))

    made.name = name  # type: ignore[attr-defined]  # as a Worker class has one
    return made


async def old_episodes(bus: Client) -> list[EpisodeHead]:
    heads: list[EpisodeHead] = []
    cursor: str | None = None
    while True:
        page = await bus.request(ListEpisodes(chat_id="anna", cursor=cursor, limit=100))
        heads += page.items
        cursor = page.next_cursor
        if cursor is None:
            return [head for head in heads if head.started_at < MARCH]


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=[pytest.mark.proof, pytest.mark.timeout(900)])])
async def test_two_greetings_a_day_leave_old_episodes_to_go_cold(tmp_path: Path, every: int) -> None:
    clock = Clock(MARCH)
    settings = dialogue_settings(f"memory://{tmp_path}", tmp_path, packer_interval_s=0, lsm_gap_check_s=1e9)
    makers = [timed(FLEET[name], name, clock) for name in ("storage", "history", "lsm", "packer")]
    makers.append(timed(lambda context: DialogueWorker(context, OfflineModel()), "dialogue", clock))
    async with fleet_of(*makers, settings=settings) as fleet:
        bus = fleet.bus
        for number, contents in enumerate(MATTERS):
            begin = MARCH - timedelta(days=len(MATTERS) - number)
            said = tuple(
                SaidMessage(role=role, content=content, time=begin + timedelta(minutes=minute))
                for minute, (role, content) in enumerate(zip(("user", "assistant"), contents, strict=True))
            )
            await bus.request(RecordExchange(chat_id="anna", messages=said))
        assert len(await old_episodes(bus)) == len(MATTERS)
        for day in range(DAYS):
            for hours, greeting in enumerate(GREETINGS[day % 2] if day % every == 0 else ()):
                clock.now = MARCH + timedelta(days=day, hours=10 * hours)
                await bus.request(Invoke(user_id="anna", message=greeting), trace=conversation_trace("anna"))
            clock.now = MARCH + timedelta(days=day, hours=10)
            if day % 7 == 6:
                await bus.request(RunPacking(at=clock.now), timeout_s=60)

        layers = [head.layer for head in await old_episodes(bus)]

    assert layers.count(Layer.COLD) >= 8
