"""The assistant knows in December what it was told in January."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bus_schema.episodes import Layer
from bus_schema.lsm import ListEpisodes, RecordExchange, SaidMessage
from bus_schema.packer import RunPacking
from config.settings import FleetSettings
from mindbus import WorkerContext
from tests.dialogue_kit import Runtime, dialogue_settings
from tests.fleets import fleet_of
from tests.installed import FLEET
from tests.scripted_model import ScriptedModel
from workers.dialogue.worker import DialogueWorker

JANUARY, JUNE = datetime(2026, 1, 10, tzinfo=UTC), datetime(2026, 6, 10, tzinfo=UTC)
FACT = "Решили: аванс «Полярису» 30 %, остальное после монтажа."
OTHER_MATTERS = (
    "Погода чудесная, ездили за город.",
    "Рад слышать! Чем помочь?",
    "Нужен билет в Алма-Ату на вторник.",
    "Билет на вторник забронирован.",
    "Каталог печатаем в Риге, тираж пятьсот.",
    "Записал: тираж пятьсот, печать в Риге.",
    "У Дины день рождения, что подарить?",
    "Книгу о художниках или хороший чай.",
)


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel("Понятно.")


@pytest.fixture
async def team(vhost_url: str, tmp_path: Path, model: ScriptedModel) -> AsyncIterator[Runtime]:
    settings: FleetSettings = dialogue_settings(vhost_url, tmp_path, recall_timeout_s=30)

    def dialogue(context: WorkerContext) -> DialogueWorker:
        return DialogueWorker(context, model)

    dialogue.name = "dialogue"  # type: ignore[attr-defined]  # as a Worker class has one
    makers = (FLEET["storage"], FLEET["history"], FLEET["lsm"], FLEET["packer"], dialogue)
    async with fleet_of(*makers, settings=settings) as fleet:
        yield Runtime(fleet)


def shown(model: ScriptedModel) -> str:
    return "\n".join(message.content for message in model.asked[-1])


@pytest.mark.slow
async def test_a_fact_of_january_is_known_in_december_though_it_was_packed_away(
    team: Runtime, model: ScriptedModel
) -> None:
    said = tuple(
        SaidMessage(role="user", content=content, time=JANUARY + timedelta(minutes=minute))
        for minute, content in enumerate((*OTHER_MATTERS, FACT))
    )
    await team.bus.request(RecordExchange(chat_id="aliya", messages=said))
    for at in (JANUARY.replace(month=2), JUNE):
        await team.bus.request(RunPacking(at=at))
    assert {head.layer for head in (await team.bus.request(ListEpisodes(chat_id="aliya"))).items} == {Layer.COLD}

    await team.say("aliya", "Какой аванс мы обещали Полярису?")
    assert FACT in shown(model)
    assert "2026-01-10" in shown(model)

    await team.say("boris", "Какой аванс мы обещали Полярису?")
    assert FACT not in shown(model)


@pytest.mark.slow
async def test_what_was_said_last_is_at_hand_within_its_budget(team: Runtime, model: ScriptedModel) -> None:
    long = tuple(
        SaidMessage(role="user", content=f"Заметка {number}: " + "слово " * 40, time=JANUARY.replace(minute=number))
        for number in range(20)
    )
    await team.bus.request(RecordExchange(chat_id="vera", messages=long))

    await team.say("vera", "Привет!")

    assert "Заметка 19" in shown(model)
    assert "Заметка 10" not in shown(model)
