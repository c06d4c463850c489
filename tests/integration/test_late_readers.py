"""Agents that read a message long after it was sent: their models are told the moment of it, not the one at hand."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agents.models.language_model import LanguageModel
from agents.present import parse_present
from bus_schema.dialogue import conversation_trace
from bus_schema.subagent import ExecuteTask, service_of
from mindbus import Worker, WorkerContext
from mindbus.bus.worker import utc_now
from mindbus.testing.wait import until
from tests.dialogue_kit import dialogue_settings
from tests.fleets import fleet_of
from tests.fragments import a_fragment
from tests.installed import FLEET
from tests.scripted_model import ScriptedModel
from workers.context_manager import ContextManagerWorker
from workers.mood_watcher import MoodWatcherWorker
from workers.subagent_file import FileSubagent
from workers.task_manager import TaskManagerWorker

pytestmark = pytest.mark.rabbit
LATE = timedelta(days=2)


def two_days_late(
    build: Callable[[WorkerContext, LanguageModel], Worker], name: str, model: LanguageModel
) -> Callable[[WorkerContext], Worker]:
    def make(context: WorkerContext) -> Worker:
        return build(replace(context, clock=lambda: utc_now() + LATE), model)

    make.name = name  # type: ignore[attr-defined]  # as a Worker class has one
    return make


def moment_told(model: ScriptedModel) -> datetime:
    present = parse_present(model.asked[0][1].content)
    assert present is not None
    return present.now


async def test_a_fragment_is_read_as_of_its_end(vhost_url: str, tmp_path: Path) -> None:
    readers = {kind: ScriptedModel("{}") for kind in (TaskManagerWorker, ContextManagerWorker, MoodWatcherWorker)}
    late = [two_days_late(kind, kind.name, model) for kind, model in readers.items()]
    ended_at = datetime.now(UTC).replace(second=0, microsecond=0)
    fragment = a_fragment(1, "anna", ["Завтра сдаю отчёт по каталогу, напомни утром."], ended_at)
    async with fleet_of(FLEET["storage"], *late, settings=dialogue_settings(vhost_url, tmp_path)) as fleet:
        await fleet.bus.publish(fragment, trace=conversation_trace("anna"))
        await until(lambda: all(model.asked for model in readers.values()), 60, "all agents to read")

    assert [moment_told(model) for model in readers.values()] == [ended_at] * 3


async def test_a_task_is_done_as_of_its_sending(vhost_url: str, tmp_path: Path) -> None:
    model = ScriptedModel("Готово.")
    name = service_of("analytic")
    late = two_days_late(lambda context, model: FileSubagent(context, "analytic", model), name, model)
    order = ExecuteTask(task="Какое завтра число?", chat_id="anna", delegation_id="dlg_1")
    async with fleet_of(FLEET["storage"], late, settings=dialogue_settings(vhost_url, tmp_path)) as fleet:
        await fleet.bus.request(order, to=name, trace=conversation_trace("anna"))

    assert abs(moment_told(model) - datetime.now(UTC)) < LATE / 2
