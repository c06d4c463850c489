"""`python -m benchmarks.floors` fails where something has become many times as slow, on any machine, in a minute.

Every measure is a small one of a benchmark of its own, divided by the time of a calibration loop that runs before and
after it, so that neither a slow machine nor a busy one counts. A limit is some four times what was measured when it was
set: noise stays below it, a tenfold loss does not.
"""

import argparse
import asyncio
import hashlib
import json
import math
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import episodes, screen_data
from benchmarks.dialogue import talk
from benchmarks.echo_role import ROLE
from benchmarks.fleet import Shell
from benchmarks.measurements import Measurement
from benchmarks.runs import ECHO, Runs, put_brief
from benchmarks.runs_peers import STEPS, many
from benchmarks.screens import measure_screens
from benchmarks.servers.workers import workers_of
from benchmarks.storage_agent import small
from benchmarks.storage_tasks import Small
from config.settings import FleetSettings
from mindbus.bus.client import Client
from mindbus.bus.connection import connect
from mindbus.logs import configure_logs
from mindbus.sdk.artifacts import open_artifacts
from mindbus_fleet.node.private import PrivateNode
from retrieval.embedding.e5 import E5Model

_LOOPS = 4000
_DOCUMENT = {"order": [{"line": number, "note": "четыре строки", "price": 9.5} for number in range(8)]}
_SERVICES = ("storage", "history", "dialogue", "orchestrator", "tracker")
_REPLY = "The tram of line 12 left the depot on 3 May 1931, and the whole town had come to see it go by. " * 6

# Most calibration loops of each: four times and more of what was measured on two busy virtual cores.
LIMITS = {
    "bus, a message": 50,
    "bus, a request": 500,
    "storage, a small artifact": 1000,
    "dialogue, an answer": 3000,
    "runs, a step": 4000,
    "embedding, a word": 40,
    "long-term memory, a search": 900,
    "fleet, up": 1_400_000,
    "fleet, down": 700_000,
    "fleet, a command": 60_000,
    "fleet, the slowest screen": 200_000,
}


@dataclass
class Floors:
    """Seconds of each measure, and how many calibration loops would have run meanwhile."""

    seconds: dict[str, float] = field(default_factory=dict)
    loops: dict[str, float] = field(default_factory=dict)

    def missed(self) -> set[str]:
        """Measures that took more than they may."""
        return {name for name, loops in self.loops.items() if loops > LIMITS[name]}

    def as_json(self) -> dict[str, Any]:
        seconds = {name: float(f"{value:.3g}") for name, value in self.seconds.items()}
        loops = {name: float(f"{value:.3g}") for name, value in self.loops.items()}
        return {"seconds": seconds, "loops": loops, "limits": LIMITS, "missed": sorted(self.missed())}

    async def add(self, *names: str, measure: Callable[[], Awaitable[tuple[float, ...]]]) -> None:
        """Seconds of what `measure` measures, in the order of the names; what is missed is measured once more."""
        await self._add(names, measure)
        if not self.missed().isdisjoint(names):
            await self._add(names, measure)

    async def _add(self, names: tuple[str, ...], measure: Callable[[], Awaitable[tuple[float, ...]]]) -> None:
        before = calibrate()
        taken = await measure()
        loop_s = median((before, calibrate()))
        for name, seconds in zip(names, taken, strict=True):
            loops = seconds / loop_s
            print(f"{name}: {loops:.0f} of at most {LIMITS[name]} loops", file=sys.stderr)
            if loops < self.loops.get(name, math.inf):
                self.seconds[name], self.loops[name] = seconds, loops


def calibrate() -> float:
    """Seconds of a loop that writes, reads and hashes a document."""
    began = time.perf_counter()
    for _ in range(_LOOPS):
        hashlib.sha256(json.dumps(json.loads(json.dumps(_DOCUMENT))).encode()).digest()
    return (time.perf_counter() - began) / _LOOPS


@dataclass(frozen=True)
class Services:
    """A private broker, and the workers of a dialogue and of a run in one process."""

    settings: FleetSettings
    folder: Path
    bus: Client
    runs: Runs

    async def bus_messages(self) -> tuple[float, ...]:
        mindbus = Measurement(str(self.settings.amqp_url), self.folder, "mindbus")
        row = await mindbus.end_to_end(2000) | await mindbus.requests(300)
        return 1 / row["end_to_end"], row["request_p50_ms_1"] / 1000

    async def artifacts(self) -> tuple[float, ...]:
        took = await small(self.settings, Small(artifacts=400, agents=20))
        return (took.seconds / took.artifacts,)

    async def answers(self) -> tuple[float, ...]:
        users, each, number = 10, 5, time.monotonic_ns()
        began = time.perf_counter()
        await asyncio.gather(*(talk(self.bus, f"user_{number}_{user}", each) for user in range(users)))
        return ((time.perf_counter() - began) / users / each,)

    async def steps(self) -> tuple[float, ...]:
        runs = 10
        await many(self.runs.one, 2, 2)
        began = time.perf_counter()
        await many(self.runs.one, runs, runs)
        return ((time.perf_counter() - began) / runs / STEPS,)


@asynccontextmanager
async def services(folder: Path) -> AsyncIterator[Services]:
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(PrivateNode(folder / "rabbitmq"))
        settings = FleetSettings(amqp_url=node.amqp_url, data_dir=folder / "services", log_level="ERROR")
        await stack.enter_context(workers_of(settings)).start_together(*_SERVICES, **{ROLE: ECHO})
        bus = await stack.enter_async_context(connect("user.local", settings=settings))
        artifacts = await stack.enter_async_context(open_artifacts(bus, settings))
        runs = Runs(bus, await put_brief(artifacts))
        listening = asyncio.create_task(runs.listen())
        stack.callback(listening.cancel)
        yield Services(settings, folder, bus, runs)


async def embedded_words() -> tuple[float, ...]:
    model, texts = E5Model(), [f"{number}: {_REPLY}" for number in range(8)]
    model.passages(["warm-up"])
    began = time.perf_counter()
    model.passages(texts)
    return ((time.perf_counter() - began) / sum(len(text.split()) for text in texts),)


async def searches() -> tuple[float, ...]:
    report = await episodes.measure(episodes.QUICK)
    return (report.rows[-1].asked_ms[0] / 1000,)


async def fleet(folder: Path) -> tuple[float, ...]:
    """`up`, `down`, a command, the slowest screen."""
    settings = FleetSettings(data_dir=Path(tempfile.mkdtemp(dir=folder)) / "data", gateway_port=0, log_level="ERROR")
    await screen_data.fill(settings, screen_data.QUICK)
    shell = Shell(settings.data_dir)
    up_s = await asyncio.to_thread(shell.time_s, "up", "-d")
    try:
        command_s = median([await asyncio.to_thread(shell.time_s, "counters", "get", "drafts") for _ in range(3)])
        await screen_data.put_artifacts(settings)
        screens = await asyncio.to_thread(measure_screens, shell.gateway_url(), rounds=1)
    finally:
        down_s = await asyncio.to_thread(shell.time_s, "down")
    return up_s, down_s, command_s, max(screens.values())


async def measure() -> Floors:
    floors = Floors()
    with tempfile.TemporaryDirectory(prefix="mindbus-bench-") as name:
        folder = Path(name)
        async with services(folder) as here:
            await floors.add("bus, a message", "bus, a request", measure=here.bus_messages)
            await floors.add("storage, a small artifact", measure=here.artifacts)
            await floors.add("dialogue, an answer", measure=here.answers)
            await floors.add("runs, a step", measure=here.steps)
        await floors.add("embedding, a word", measure=embedded_words)
        await floors.add("long-term memory, a search", measure=searches)
        names = ("fleet, up", "fleet, down", "fleet, a command", "fleet, the slowest screen")
        await floors.add(*names, measure=lambda: fleet(folder))
    return floors


def as_text(floors: Floors) -> str:
    lines = [f"{'':28}{'seconds':>12}{'loops':>12}{'limit':>12}"]
    for name, seconds in floors.seconds.items():
        verdict = "  MISSED" if name in floors.missed() else ""
        lines.append(f"{name:28}{seconds:>12.5f}{floors.loops[name]:>12.0f}{LIMITS[name]:>12}{verdict}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.floors", description=__doc__)
    parser.add_argument("--json", action="store_true", help="numbers for programs")
    given = parser.parse_args()
    configure_logs("ERROR", "console")
    floors = asyncio.run(measure())
    print(json.dumps(floors.as_json(), indent=2, ensure_ascii=False) if given.json else as_text(floors))
    return 1 if floors.missed() else 0


if __name__ == "__main__":
    sys.exit(main())
