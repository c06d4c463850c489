"""`python -m benchmarks.dialogue` measures how long users wait for an answer, alone and among fifty."""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median, quantiles

from agents.dialogue.agent import DialogueAgent
from agents.models.language_model import ModelMessage
from agents.models.offline.model import OfflineModel
from benchmarks.servers.workers import workers_of
from bus_schema.conversations import GetMessages
from bus_schema.dialogue import Invoke, conversation_trace
from config.settings import FleetSettings
from mindbus.bus.client import Client
from mindbus.bus.connection import connect
from mindbus.logs import configure_logs
from mindbus_fleet.node.private import PrivateNode

_TEXTS = (
    "Борис, подготовь договор с поставщиком до пятницы, бюджет 500 тысяч рублей.",
    "What did we decide about the release date, and who is in charge of the tests?",
    "Спасибо! Всё получилось, клиент доволен.",
    "The build is broken again, I am tired of it. Please remind Alice to look at it tomorrow.",
)
_ANSWER_WITHIN_S = 120.0


class Unsound(Exception):
    """Messages were lost, doubled or out of order, so that the time says nothing."""


@dataclass(frozen=True)
class Extent:
    """How many users say how much, how often it is measured."""

    rounds: int
    users: int
    messages: int


FULL = Extent(rounds=3, users=50, messages=2000)
QUICK = Extent(rounds=1, users=5, messages=20)


@dataclass
class Report:
    """Milliseconds from the question to the whole answer; medians over the rounds."""

    alone_p50_ms: list[float] = field(default_factory=list)
    alone_p99_ms: list[float] = field(default_factory=list)
    together_p50_ms: list[float] = field(default_factory=list)
    together_p99_ms: list[float] = field(default_factory=list)
    together_per_second: list[float] = field(default_factory=list)
    model_p50_ms: list[float] = field(default_factory=list)

    def medians(self) -> dict[str, float]:
        return {name: round(median(values), 2) for name, values in asdict(self).items()}


async def measure(extent: Extent) -> Report:
    report = Report()
    with tempfile.TemporaryDirectory(prefix="mindbus-bench-") as folder:
        async with _at_work(Path(folder)) as bus:
            await _talk(bus, "warm-up", 3)
            for number in range(extent.rounds):
                await _round(bus, extent, number, report)
                print(f"round {number + 1} of {extent.rounds} done", file=sys.stderr)
    return report


async def _round(bus: Client, extent: Extent, number: int, report: Report) -> None:
    each = extent.messages // extent.users
    report.model_p50_ms.append(median(await _model_alone(each)))
    p50, p99 = _percentiles(await _talk(bus, f"alone-{number}", each))
    report.alone_p50_ms.append(p50)
    report.alone_p99_ms.append(p99)
    began = time.perf_counter()
    took = await asyncio.gather(*(_talk(bus, f"u{number}-{user}", each) for user in range(extent.users)))
    report.together_per_second.append(extent.users * each / (time.perf_counter() - began))
    p50, p99 = _percentiles([one for of_user in took for one in of_user])
    report.together_p50_ms.append(p50)
    report.together_p99_ms.append(p99)


async def _talk(bus: Client, user_id: str, messages: int) -> list[float]:
    """One user, who waits for each answer."""
    took = []
    for number in range(messages):
        began = time.perf_counter()
        invoke = Invoke(user_id=user_id, message=f"{number}: {_TEXTS[number % len(_TEXTS)]}")
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
        said.append(ModelMessage(role="user", content=f"{number}: {_TEXTS[number % len(_TEXTS)]}"))
        began = time.perf_counter()
        answer = "".join([piece async for piece in agent.answer(said[-40:])])
        took.append(1000 * (time.perf_counter() - began))
        said.append(ModelMessage(role="assistant", content=answer))
    return took


def _percentiles(took: list[float]) -> tuple[float, float]:
    cuts = quantiles(took, n=100, method="inclusive")
    return cuts[49], cuts[98]


@asynccontextmanager
async def _at_work(folder: Path) -> AsyncIterator[Client]:
    async with AsyncExitStack() as stack:
        node = PrivateNode(folder / "rabbitmq")
        await node.start()
        stack.push_async_callback(node.kill)
        settings = FleetSettings(
            amqp_url=node.amqp_url, data_dir=folder / "data", log_level="ERROR", dialogue_max_messages=1000
        )
        workers = stack.enter_context(workers_of(settings))
        await workers.start("storage", "history", "dialogue")
        yield await stack.enter_async_context(connect("user.local", settings=settings))


def _as_text(report: Report, extent: Extent) -> str:
    found = report.medians()
    alone = f"p50 {found['alone_p50_ms']:8.2f} ms   p99 {found['alone_p99_ms']:8.2f} ms"
    together = f"p50 {found['together_p50_ms']:8.2f} ms   p99 {found['together_p99_ms']:8.2f} ms"
    lines = (
        f"{extent.users} users, {extent.messages} messages, offline model, medians of {extent.rounds} rounds",
        f"  the model alone            p50 {found['model_p50_ms']:8.2f} ms",
        f"  invoke, one user           {alone}",
        f"  invoke, {extent.users:3} users at once  {together}   {found['together_per_second']:.1f} answers/s",
        "  nothing lost, doubled or out of order",
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few messages, to see that it works")
    parser.add_argument("--json", action="store_true", help="numbers for programs")
    options = parser.parse_args()
    configure_logs("ERROR", "console")
    extent = QUICK if options.quick else FULL
    report = asyncio.run(measure(extent))
    print(json.dumps(report.medians()) if options.json else _as_text(report, extent))


if __name__ == "__main__":
    main()
