"""`python -m benchmarks.memory` stores a hundred thousand units, asks for what is near, beside Qdrant's client."""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import quantiles

from qdrant_client import AsyncQdrantClient

from benchmarks.memory_units import BATCH, SPACE, Question, asked_vectors, batches, questions
from benchmarks.servers.cpu_time import peak_mib
from benchmarks.servers.workers import workers_of
from bus_schema.embeddings import Embedding
from bus_schema.glm import BatchReport, BatchStoreKems, CheckMemory, MemoryReport, RetrieveKems
from bus_schema.identities import Principal
from config.settings import FleetSettings
from memory.glm.index_sync import VectorRelay
from memory.glm.service import GlobalMemory, database_of, open_memory
from memory.vectors.index import VectorIndex
from memory.vectors.qdrant import QdrantIndex
from mindbus.bus.client import Client
from mindbus.bus.connection import connect
from mindbus.bus.worker import utc_now
from mindbus.health import HealthFolder
from mindbus.logs import configure_logs
from mindbus_fleet.node.private import PrivateNode

HITS = 10
ASKER = Principal("agent.researcher.1")
# Over the bus, inside the worker, its index alone; beside it the peer's index.
PLACES = ("bus", "worker", "index", "qdrant")
_AT_ONCE = 4
_PATIENCE_S = 120.0

Ask = Callable[[Question, Embedding], Awaitable[int]]


class Unsound(Exception):
    """Rows and vectors differ, or something was refused, so that the time says nothing."""


@dataclass(frozen=True)
class Extent:
    """How many units, how often each question is asked; of the peer, which is slow, less often."""

    units: int
    times: int
    peer_times: int


FULL = Extent(units=100_000, times=200, peer_times=15)
QUICK = Extent(units=1000, times=3, peer_times=2)
BAR = Extent(units=20_000, times=50, peer_times=5)


@dataclass
class Report:
    """Milliseconds by question and place, p50 then p99; the worker's weight, what comes in per second."""

    stored_per_s: dict[str, float] = field(default_factory=dict)
    worker_peak_mib: float = 0.0
    start_s: float = 0.0
    database_mib: float = 0.0
    index_mib: float = 0.0
    points_per_s: dict[str, float] = field(default_factory=dict)
    asked_ms: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)

    def note(self, question: Question, place: str, took: Sequence[float]) -> None:
        cuts = quantiles(took, n=100, method="inclusive")
        self.asked_ms.setdefault(question.name, {})[place] = (round(cuts[49], 2), round(cuts[98], 2))


async def measure(extent: Extent) -> Report:
    report = Report()
    with tempfile.TemporaryDirectory(prefix="mindbus-bench-") as name:
        folder = Path(name)
        settings = FleetSettings(data_dir=folder / "data", log_level="ERROR")
        asked = await _over_the_bus(folder, settings, extent, report)
        weigh(settings, report)
        say(f"stored over the bus: {report.stored_per_s['bus']:.0f} a second, {report.worker_peak_mib:.0f} MiB; asked")
        report.stored_per_s["worker"] = await store_inside(folder, extent.units // 5)
        say(f"stored inside the worker: {report.stored_per_s['worker']:.0f} a second")
        async with opened(settings, report) as memory:
            await ask_inside(memory, asked, extent.times, report)
            say("asked inside the worker")
            report.points_per_s["embedded"] = await _filled_per_s(memory, memory.index)
            client = AsyncQdrantClient(path=str(folder / "qdrant"))
            peer = QdrantIndex(client, memory.index.space, is_server=False)
            report.points_per_s["qdrant"] = await _filled_per_s(memory, peer)
            say("Qdrant's client filled")
            await _ask_index(peer, "qdrant", asked, extent.peer_times, report)
            await peer.close()
    return report


def weigh(settings: FleetSettings, report: Report) -> None:
    def mib(files: Iterable[Path]) -> float:
        return round(sum(file.stat().st_size for file in files) / 2**20, 1)

    report.database_mib = mib(settings.data_dir.glob("glm.db*"))
    report.index_mib = mib(settings.vectors_folder.iterdir())


async def _over_the_bus(folder: Path, settings: FleetSettings, extent: Extent, report: Report) -> list[Question]:
    async with _worker(folder, settings) as (bus, pid):
        report.stored_per_s["bus"], middle = await _stored(bus, extent.units)
        asked = questions(middle)
        principal = bus.acting_as(ASKER.identity)

        async def ask(question: Question, vector: Embedding) -> int:
            query = RetrieveKems(query=question.asked(vector), page_size=HITS)
            return len((await principal.request(query, timeout_s=_PATIENCE_S)).items)

        await _ask_all(ask, "bus", asked, extent.times, report)
        report.worker_peak_mib = peak_mib(pid)
    return asked


async def _stored(bus: Client, units: int) -> tuple[float, datetime]:
    """How many per second, until the last vector is in its index; when half of them were there."""
    took, middle = 0.0, utc_now()
    waiting = list[Awaitable[BatchReport]]()
    for number, (owner, drafts) in enumerate(batches(units)):
        waiting.append(bus.acting_as(owner).request(BatchStoreKems(kems=drafts), timeout_s=_PATIENCE_S))
        if len(waiting) == _AT_ONCE or (number + 1) * BATCH >= units:
            # Only what a client does is on the clock, not the making of units.
            began = time.perf_counter()
            _require_stored(await asyncio.gather(*waiting))
            took += time.perf_counter() - began
            waiting.clear()
        if (number + 1) * BATCH <= units // 2:
            middle = utc_now()
    began = time.perf_counter()
    _require_sound(await bus.request(CheckMemory(), timeout_s=_PATIENCE_S), units)
    return units / (took + time.perf_counter() - began), middle


def _require_stored(reports: Sequence[BatchReport]) -> None:
    if wrong := {item.status for report in reports for item in report.items} - {"stored"}:
        raise Unsound(f"{Unsound.__doc__} ({wrong})")


def _require_sound(found: MemoryReport, units: int) -> None:
    if not found.is_clean or {found.kems, found.vectors} != {units}:
        raise Unsound(f"{Unsound.__doc__} ({found})")


async def store_inside(folder: Path, units: int) -> float:
    """As the worker stores them, into a memory of their own; vectors are on the clock, messages are not."""
    settings = FleetSettings(data_dir=folder / "inside", log_level="ERROR")
    took = 0.0
    async with opened(settings, Report()) as memory:
        for owner, drafts in batches(units):
            began = time.perf_counter()
            async with memory.database.at_hand():
                await memory.store.store_all(drafts, Principal(owner))
            await memory.relay.relay()
            took += time.perf_counter() - began
        _require_sound(await memory.relay.check(), units)
    return units / took


async def ask_inside(memory: GlobalMemory, asked: Sequence[Question], times: int, report: Report) -> None:
    async def ask(question: Question, vector: Embedding) -> int:
        query = RetrieveKems(query=question.asked(vector), page_size=HITS)
        return len((await memory.search.page(query, ASKER)).items)

    await _ask_all(ask, "worker", asked, times, report)
    await _ask_index(memory.index, "index", asked, times, report)


async def _ask_index(index: VectorIndex, place: str, asked: Sequence[Question], times: int, report: Report) -> None:
    async def ask(question: Question, vector: Embedding) -> int:
        return len(await index.nearest(vector.raw, question.asked(vector), ASKER, HITS))

    await _ask_all(ask, place, [each for each in asked if each.is_measured], times, report)


async def _ask_all(ask: Ask, place: str, asked: Sequence[Question], times: int, report: Report) -> None:
    """All questions in turn, so that noise falls on all alike; the first turn does not count."""
    took: dict[str, list[float]] = {question.name: [] for question in asked}
    for turn, vector in enumerate(asked_vectors(times + 1)):
        for question in asked:
            began = time.perf_counter()
            found = await ask(question, vector)
            if turn:
                took[question.name].append(1000 * (time.perf_counter() - began))
            if found != HITS:
                raise Unsound(f"{Unsound.__doc__} ({place}, {question.name}: {found})")
    for question in asked:
        report.note(question, place, took[question.name])


async def _filled_per_s(memory: GlobalMemory, index: VectorIndex) -> float:
    """The index made anew from the rows."""
    began = time.perf_counter()
    count = await VectorRelay(memory.database, index).rebuild()
    return count / (time.perf_counter() - began)


@asynccontextmanager
async def _worker(folder: Path, settings: FleetSettings) -> AsyncIterator[tuple[Client, int]]:
    """The global memory as a process of its own, with a client."""
    async with AsyncExitStack() as stack:
        node = PrivateNode(folder / "rabbitmq")
        await node.start()
        stack.push_async_callback(node.kill)
        settings = settings.model_copy(update={"amqp_url": node.amqp_url})
        workers = stack.enter_context(workers_of(settings))
        await workers.start("glm")
        bus = await stack.enter_async_context(connect(settings=settings))
        yield bus, HealthFolder(settings).require("glm").pid


@asynccontextmanager
async def opened(settings: FleetSettings, report: Report) -> AsyncIterator[GlobalMemory]:
    """The same memory in this process, since nobody else has it any more."""
    database = database_of(settings)
    began = time.perf_counter()
    memory = await open_memory(database, settings, utc_now)
    report.start_s = time.perf_counter() - began
    yield memory
    await memory.close()
    await database.dispose()


def say(what: str) -> None:
    print(what, file=sys.stderr)


def as_text(report: Report, extent: Extent) -> str:
    """A line for each question, p50 / p99 in each place."""
    numbers = {
        "stored over the bus, units/s": report.stored_per_s.get("bus"),
        "stored inside the worker": report.stored_per_s["worker"],
        "index made anew, points/s": report.points_per_s.get("embedded"),
        "the same, Qdrant's client": report.points_per_s.get("qdrant"),
        "database, MiB": report.database_mib,
        "index, MiB": report.index_mib,
        "process at its heaviest, MiB": report.worker_peak_mib,
        "start with all of them, s": report.start_s,
    }
    lines = [f"{extent.units} units, {SPACE.dim} dimensions"]
    lines += [f"  {name:30}{number:8.1f}" for name, number in numbers.items() if number]
    lines.append(f"{'p50 / p99 in ms':26}" + "".join(f"{place:>17}" for place in PLACES))
    for name, by_place in report.asked_ms.items():
        cells = ("{:.1f} / {:.1f}".format(*by_place[place]) if place in by_place else "" for place in PLACES)
        lines.append(f"  {name:24}" + "".join(f"{cell:>17}" for cell in cells))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a few units: shows that it runs, measures nothing")
    size.add_argument("--bar", action="store_true", help="20,000 units")
    parser.add_argument("--json", action="store_true", help="numbers for programs")
    options = parser.parse_args()
    configure_logs("ERROR", "console")
    extent = QUICK if options.quick else BAR if options.bar else FULL
    report = asyncio.run(measure(extent))
    print(json.dumps(asdict(report)) if options.json else as_text(report, extent))


if __name__ == "__main__":
    main()
