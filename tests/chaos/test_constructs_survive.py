"""Whoever is killed within a construct of a card: every step is made once, and no finished call is paid again."""

import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from agents.processes.cards import parse_card
from benchmarks.runs import put_brief
from benchmarks.servers.workers import Workers, workers_of
from bus_schema.artifacts import ArtifactRef
from bus_schema.cards import Card
from bus_schema.ids import mint
from bus_schema.process import GetProcess, StartProcess
from bus_schema.run_control import ApproveStep
from bus_schema.runs import Run, RunStatus, Step, StepStatus
from bus_schema.storage import SearchArtifacts
from config.settings import FleetSettings
from mindbus import BusUnavailable, Client, ReplyError, connect
from mindbus.sdk.artifacts import open_artifacts
from mindbus.testing.wait import until
from tests.chaos.construct_role import CALLS_FILE, ITEMS

pytestmark = [pytest.mark.chaos, pytest.mark.rabbit]

INNER = """\
name: inner
result: weigh
steps:
  - {id: look, role: critic, produces: critique, instructions: Look at it.}
  - {id: weigh, role: critic, produces: critique, instructions: Weigh it., inputs: [brief, look]}
"""
CARD = """\
name: constructs
result: end
steps:
  - {id: draft, role: critic, produces: critique, instructions: Write it.}
  - id: judge
    role: critic
    produces: critique
    instructions: Judge.
    inputs: [draft]
    repeat: {back_to: draft, until: judge.satisfied, max_rounds: 4}
  - {id: plan, role: critic, produces: critique, instructions: List., inputs: [judge]}
  - {id: read, role: critic, produces: critique, instructions: Read., inputs: [plan], for_each: plan.items}
  - {id: inner, card: inner, inputs: [read]}
  - {id: rest, wait: 2s, inputs: [inner]}
  - {id: ask, approve: "May it end?", inputs: [inner, rest]}
  - {id: end, role: critic, produces: critique, instructions: End., inputs: [inner, ask]}
"""
ROLES = {"critic": ("critique",)}
VICTIMS = ("orchestrator", "storage", "critic")
# In the order of the card; the place in it at which somebody is killed is drawn.
MOMENTS: dict[str, Callable[..., bool]] = {
    "loop": lambda run, parts: step_of(run, "judge").attempt >= 1 + parts % 2,
    "fan-out": lambda run, parts: parts_made(run) >= parts,
    "sub-card": lambda run, parts: step_of(run, "inner-look").attempt >= 1,
    "timer": lambda run, parts: step_of(run, "rest").status is not StepStatus.PENDING,
    "approval": lambda run, parts: step_of(run, "ask").status is StepStatus.WAITING,
}


def step_of(run: Run, name: str) -> Step:
    return next(step for step in run.steps if step.step_id == name)


def parts_made(run: Run) -> int:
    return sum(step.of == "read" and step.status is StepStatus.COMPLETED for step in run.steps)


@dataclass
class Fleet:
    """Storage, orchestrator and a role, each in a process of its own, with what the model was asked."""

    workers: Workers
    bus: Client
    brief: ArtifactRef
    card: Card
    calls: Path

    async def start(self) -> str:
        run_id = mint("run")
        await self.bus.request(StartProcess(run_id=run_id, card=self.card, inputs=(self.brief,)), trace=run_id)
        return run_id

    async def run_when(self, run_id: str, holds: Callable[[Run], bool]) -> Run:
        async def look() -> Run | None:
            with suppress(BusUnavailable, ReplyError):
                run = await self.bus.request(GetProcess(run_id=run_id), timeout_s=2)
                return run if holds(run) else None
            return None

        found = await until(look, 90, f"{run_id} is so")
        assert isinstance(found, Run)
        return found


@pytest.fixture
async def fleet(vhost_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Fleet]:
    (tmp_path / "config/cards").mkdir(parents=True)
    (tmp_path / "config/cards/inner.yaml").write_text(INNER)
    monkeypatch.setenv("MINDBUS_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv(CALLS_FILE, str(tmp_path / "calls"))
    card = parse_card(CARD.encode(), "card.yaml", ROLES)
    settings = FleetSettings(amqp_url=vhost_url, data_dir=tmp_path / "data", log_level="ERROR", heartbeat_s=1)
    with workers_of(settings, str(Path.cwd())) as workers:
        await workers.start_together(critic="tests.chaos.construct_role:ConstructRole")
        await workers.start("storage", "orchestrator")
        async with connect("user.local", settings=settings) as bus, open_artifacts(bus, settings) as artifacts:
            yield Fleet(workers, bus, await put_brief(artifacts), card, tmp_path / "calls")


async def made_once(fleet: Fleet, run: Run) -> None:
    """Each step has one artifact for each of its rounds, and one attempt for each artifact."""
    assert run.status is RunStatus.COMPLETED, run.reason
    found = await fleet.bus.request(SearchArtifacts(trace_id=run.run_id, limit=200), trace=run.run_id)
    made = Counter(manifest.step_id for manifest in found.items)
    by_role = {step.step_id: step for step in run.steps if step.role == "critic" and step.step_id != "read"}
    assert made == {name: step.round for name, step in by_role.items()}
    assert {name: step.attempt for name, step in by_role.items()} == made
    assert (step_of(run, "draft").round, step_of(run, "judge").round, parts_made(run)) == (2, 2, ITEMS)


@pytest.mark.timeout(900)
# By seed 2 each of the victims is killed.
@pytest.mark.parametrize("seeds", [(2,), pytest.param((0, 1, *range(3, 28)), marks=pytest.mark.proof)], ids=["1", "27"])
async def test_somebody_is_killed_within_every_construct(fleet: Fleet, seeds: tuple[int, ...]) -> None:
    for seed in seeds:
        dice = random.Random(seed)
        fleet.calls.write_text("")
        run_id = await fleet.start()
        victims = []
        for moment in MOMENTS.values():
            await fleet.run_when(run_id, partial(moment, parts=dice.randrange(ITEMS)))
            victims.append(dice.choice(VICTIMS))
            fleet.workers.strike(victims[-1])
        await fleet.bus.request(ApproveStep(run_id=run_id, step_id="ask"), trace=run_id, timeout_s=30)
        run = await fleet.run_when(run_id, lambda run: run.status in (RunStatus.COMPLETED, RunStatus.FAILED))

        await made_once(fleet, run)
        paid_again = [digest for digest, times in Counter(fleet.calls.read_text().split()).items() if times > 1]
        # Calls that were under way when the role died: it works on eight orders at once.
        assert len(paid_again) <= 8 * victims.count("critic"), (seed, victims)
