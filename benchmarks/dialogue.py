"""`python -m benchmarks.dialogue` measures how long users wait for an answer, alone and among many.

With `--fleet` the whole fleet runs as `mindbus up` starts it, and the CPU that an answer costs is measured: in the
workers, in the broker, and in the workers after the last answer, until they are idle.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from agents.dialogue.agent import DialogueAgent
from agents.models.language_model import ModelMessage
from agents.models.offline.model import OfflineModel
from benchmarks.rounds import in_turn, middle, shown_span, span
from benchmarks.servers.cpu_time import cpu_s
from benchmarks.servers.workers import workers_of
from bus_schema.conversations import GetMessages
from bus_schema.dialogue import Invoke, conversation_trace
from config.settings import FleetSettings
from mindbus.bus.client import Client
from mindbus.bus.connection import connect
from mindbus.logs import configure_logs
from mindbus.registry import installed_workers
from mindbus_fleet.cli.fleet import groups_of
from mindbus_fleet.node.private import PrivateNode
from mindbus_fleet.supervision.supervisor import Supervisor, fleet_up

TEXTS = (
    "Борис, подготовь договор с поставщиком до пятницы, бюджет 500 тысяч рублей.",
    "What did we decide about the release date, and who is in charge of the tests?",
    "Спасибо! Всё получилось, клиент доволен.",
    "The build is broken again, I am tired of it. Please remind Alice to look at it tomorrow.",
)
_ANSWER_WITHIN_S = 120.0
# Idle is a fleet that takes no more than half as much again as before the first message.
_LOOK_S, _IDLE_WITHIN_S, _IDLE_SHARE, _IDLE_MARGIN = 3.0, 180.0, 1.5, 0.05


class Unsound(Exception):
    """Messages were lost, doubled or out of order, so that the time says nothing."""


@dataclass(frozen=True)
class Extent:
    """How many users say how much, how often it is measured."""

    rounds: int
    users: int
    messages: int


FULL = Extent(rounds=3, users=50, messages=2000)
FLEET = Extent(rounds=3, users=20, messages=200)
QUICK = Extent(rounds=1, users=5, messages=20)


@dataclass(frozen=True)
class Stage:
    """Whoever works: a client among them, the processes of the workers, the broker's."""

    bus: Client
    workers: tuple[int, ...]
    broker: int
    is_fleet: bool


@dataclass
class Report:
    """Milliseconds from the question to the whole answer; medians over the rounds."""

    alone_p50_ms: list[float] = field(default_factory=list)
    alone_p99_ms: list[float] = field(default_factory=list)
    together_p50_ms: list[float] = field(default_factory=list)
    together_p99_ms: list[float] = field(default_factory=list)
    together_per_second: list[float] = field(default_factory=list)
    model_p50_ms: list[float] = field(default_factory=list)
    cpu_ms_per_answer: list[float] = field(default_factory=list)
    broker_cpu_ms_per_answer: list[float] = field(default_factory=list)
    later_cpu_ms_per_answer: list[float] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Medians over the rounds; `spans` has the lowest and the highest of each."""
        measured = {name: values for name, values in asdict(self).items() if values}
        medians = {name: middle(values, 2) for name, values in measured.items()}
        return medians | {"spans": {name: span(values, 2) for name, values in measured.items()}}


async def measure(extent: Extent, *, is_fleet: bool) -> Report:
    report = Report()
    with tempfile.TemporaryDirectory(prefix="mindbus-bench-") as folder:
        async with (_fleet if is_fleet else _services)(Path(folder)) as stage:
            idle = await _load(stage.workers)
            await talk(stage.bus, "warm-up", len(TEXTS))
            await asyncio.gather(*(talk(stage.bus, f"warm-up-{user}", 2) for user in range(extent.users)))
            for number in range(extent.rounds):
                await _round(stage, extent, number, report, idle)
                print(f"round {number + 1} of {extent.rounds} done", file=sys.stderr)
    return report


async def _round(stage: Stage, extent: Extent, number: int, report: Report, idle: float) -> None:
    """The model alone, one user, all of them; the other way round in every odd round."""
    if stage.is_fleet:
        await _until_idle(stage.workers, idle)
    each = extent.messages // extent.users

    async def by_the_model() -> None:
        report.model_p50_ms.append(median(await _model_alone(each)))

    async def by_one_user() -> None:
        p50, p99 = _percentiles(await talk(stage.bus, f"alone-{number}", each))
        report.alone_p50_ms.append(p50)
        report.alone_p99_ms.append(p99)

    async def by_all() -> None:
        await _together(stage, extent, number, report, idle)

    for measured in in_turn((by_the_model, by_one_user, by_all), number):
        await measured()


async def _together(stage: Stage, extent: Extent, number: int, report: Report, idle: float) -> None:
    """All users at once, and what their answers cost; with a fleet, until it is idle again."""
    each = extent.messages // extent.users
    in_workers, in_broker = cpu_s(stage.workers), cpu_s([stage.broker])
    began = time.perf_counter()
    took = await asyncio.gather(*(talk(stage.bus, f"u{number}-{user}", each) for user in range(extent.users)))
    report.together_per_second.append(extent.users * each / (time.perf_counter() - began))
    answers, answered = extent.users * each, cpu_s(stage.workers)
    report.cpu_ms_per_answer.append(1000 * (answered - in_workers) / answers)
    report.broker_cpu_ms_per_answer.append(1000 * (cpu_s([stage.broker]) - in_broker) / answers)
    if stage.is_fleet:
        waited_s = await _until_idle(stage.workers, idle)
        report.later_cpu_ms_per_answer.append(1000 * (cpu_s(stage.workers) - answered - idle * waited_s) / answers)
    p50, p99 = _percentiles([one for of_user in took for one in of_user])
    report.together_p50_ms.append(p50)
    report.together_p99_ms.append(p99)


async def talk(bus: Client, user_id: str, messages: int) -> list[float]:
    """One user, who waits for each answer."""
    took = []
    for number in range(messages):
        began = time.perf_counter()
        invoke = Invoke(user_id=user_id, message=f"{number}: {TEXTS[number % len(TEXTS)]}")
        await bus.request(invoke, trace=conversation_trace(user_id), timeout_s=_ANSWER_WITHIN_S)
        took.append(1000 * (time.perf_counter() - began))
    kept = (await bus.request(GetMessages(user_id=user_id, limit=200))).items
    said = [int((message.content or "").split(":")[0]) for message in kept if message.role == "user"]
    if said != list(range(messages)) or len(kept) != 2 * messages:
        raise Unsound(f"{Unsound.__doc__} ({user_id})")
    return took


async def _model_alone(messages: int) -> list[float]:
    """What of it is thinking: the offline model with as much of a talk before it, nothing in between."""
    agent, said, took = DialogueAgent(OfflineModel()), list[ModelMessage](), []
    for number in range(messages):
        said.append(ModelMessage(role="user", content=f"{number}: {TEXTS[number % len(TEXTS)]}"))
        began = time.perf_counter()
        answer = "".join([piece async for piece in agent.answer(said[-40:])])
        took.append(1000 * (time.perf_counter() - began))
        said.append(ModelMessage(role="assistant", content=answer))
    return took


async def _load(workers: Iterable[int]) -> float:
    """CPU seconds a second."""
    began, before = time.perf_counter(), cpu_s(workers)
    await asyncio.sleep(_LOOK_S)
    return (cpu_s(workers) - before) / (time.perf_counter() - began)


async def _until_idle(workers: Iterable[int], idle: float) -> float:
    """Seconds until they work no more than when they were idle."""
    began = time.perf_counter()
    while await _load(workers) > idle * _IDLE_SHARE + _IDLE_MARGIN:
        if time.perf_counter() - began > _IDLE_WITHIN_S:
            break
    return time.perf_counter() - began


def _percentiles(took: list[float]) -> tuple[float, float]:
    cuts = quantiles(took, n=100, method="inclusive")
    return cuts[49], cuts[98]


@asynccontextmanager
async def _services(folder: Path) -> AsyncIterator[Stage]:
    """Storage, history and dialogue, each in a process of its own."""
    async with AsyncExitStack() as stack:
        settings, node = await world(stack, folder)
        workers = stack.enter_context(workers_of(settings))
        await workers.start("storage", "history", "dialogue")
        bus = await stack.enter_async_context(connect("user.local", settings=settings))
        yield Stage(bus, tuple(workers.pids), node.pid, is_fleet=False)


@asynccontextmanager
async def _fleet(folder: Path) -> AsyncIterator[Stage]:
    """All workers of MindBus in the processes in which `mindbus up` has them."""
    async with AsyncExitStack() as stack:
        settings, node = await world(stack, folder)
        groups, broken = groups_of(installed_workers().checked(apart=True), None, isolate=False)
        state = await stack.enter_async_context(fleet_up(Supervisor(settings, groups, broken, folder / "logs")))
        bus = await stack.enter_async_context(connect("user.local", settings=settings))
        pids = tuple(process.pid for process in state.workers if process.pid is not None)
        yield Stage(bus, pids, node.pid, is_fleet=True)


async def world(stack: AsyncExitStack, folder: Path) -> tuple[FleetSettings, PrivateNode]:
    """A broker, and the settings of a fleet on it."""
    node = PrivateNode(folder / "rabbitmq")
    await node.start()
    stack.push_async_callback(node.kill)
    settings = FleetSettings(
        amqp_url=node.amqp_url,
        data_dir=folder / "data",
        log_level="ERROR",
        dialogue_max_messages=1000,
        gateway_port=0,
    )
    return settings, node


def _as_text(report: Report, extent: Extent) -> str:
    found = report.as_json()
    rate = f"{found['together_per_second']:.1f} {shown_span(found['spans']['together_per_second'])} answers/s"
    alone = f"p50 {found['alone_p50_ms']:8.2f} ms   p99 {found['alone_p99_ms']:8.2f} ms"
    together = f"p50 {found['together_p50_ms']:8.2f} ms   p99 {found['together_p99_ms']:8.2f} ms"
    lines = (
        f"{extent.users} users, {extent.messages} messages, offline model",
        f"  medians of {extent.rounds} rounds (lowest-highest)",
        f"  the model alone            p50 {found['model_p50_ms']:8.2f} ms",
        f"  invoke, one user           {alone}",
        f"  invoke, {extent.users:3} users at once  {together}   {rate}",
        f"  CPU an answer              workers {found['cpu_ms_per_answer']:.1f} ms   broker"
        f" {found['broker_cpu_ms_per_answer']:.1f} ms   workers later {found.get('later_cpu_ms_per_answer', 0):.1f} ms",
        "  nothing lost, doubled or out of order",
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few messages, to see that it works")
    parser.add_argument("--fleet", action="store_true", help="the whole fleet, 20 users with ten messages each")
    parser.add_argument("--bar", action="store_true", help="one round at full size")
    parser.add_argument("--rounds", type=int, help=f"instead of {FULL.rounds}")
    parser.add_argument("--json", action="store_true", help="numbers for programs")
    options = parser.parse_args()
    configure_logs("ERROR", "console")
    extent = QUICK if options.quick else FLEET if options.fleet else FULL
    extent = replace(extent, rounds=options.rounds or (1 if options.bar else extent.rounds))
    report = asyncio.run(measure(extent, is_fleet=options.fleet))
    print(json.dumps(report.as_json()) if options.json else _as_text(report, extent))


if __name__ == "__main__":
    main()
