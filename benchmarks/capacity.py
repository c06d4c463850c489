"""`python -m benchmarks.capacity` predicts what a machine carries, from costs that it has measured, and checks that.

    --calibrate FILE    measure what an answer and a run of six steps cost in each process, alone and among many
    --predict FILE      what the model says of loads that were not measured, and of so many users
    --check FILE        measure these loads, beside what is predicted of them

All workers have a process of their own, as they have in containers; the offline model answers.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count, cycle, islice
from pathlib import Path
from statistics import median

from pydantic import BaseModel

from benchmarks.capacity_model import BROKER, Cost, CostCurve, Load, Machine, Outcome, servers_for
from benchmarks.dialogue import TEXTS, world
from benchmarks.echo_role import ROLE
from benchmarks.runs import ECHO, Runs, put_brief
from benchmarks.servers.cpu_time import cpu_s
from benchmarks.servers.workers import workers_of
from bus_schema.dialogue import Invoke, conversation_trace
from mindbus.broker_url import with_login
from mindbus.bus.client import Client
from mindbus.bus.connection import connect
from mindbus.logs import configure_logs
from mindbus.management import Management
from mindbus.registry import installed_workers
from mindbus.sdk.artifacts import open_artifacts

_SECONDS = 45.0
_WARM_UP_S = 10.0
_LOOK_S, _SETTLES_WITHIN_S, _COUNTED_WITHIN_S = 3.0, 240.0, 3.0
_SIMULATED_S = 300.0
_SEED = 20261127
_ANSWER_WITHIN_S = 120.0
AMONG_FEW, AMONG_MANY = 4, 20
# Measured after the prediction of them is in the history: other mixes, another concurrency.
CHECKS: Mapping[str, Load] = {
    "40 users talk": Load(("answer",), users=40),
    "24 users start a run after every 8 answers": Load(("answer",) * 8 + ("run",), users=24),
    "12 users start a run after every 2 answers": Load(("answer",) * 2 + ("run",), users=12),
}
# What a user does a day, and how much of that falls into the busiest hour.
_ANSWERS_A_DAY, _RUNS_A_DAY, _BUSIEST_HOUR = 20, 0.5, 0.15
_BUSY_SHARE = 0.6
_USERS = (1_000, 10_000, 100_000, 1_000_000)


class Calibration(BaseModel):
    """Costs of an operation among few and among many of its kind, and the machine."""

    cores: int
    loop_s: float
    costs: dict[str, CostCurve]

    def predicted(self, load: Load) -> dict[str, Outcome]:
        return Machine(self.costs, self.cores, _SEED).run([load], _SIMULATED_S)


@dataclass
class Fleet:
    """A fleet, a process for each worker, with what makes load on it."""

    bus: Client
    runs: Runs
    pids: dict[str, int]
    management: Management
    idle: dict[str, float] = field(default_factory=dict)

    def cpu_s(self) -> dict[str, float]:
        """Of each process so far; the client that makes the load, whose children they are, is one of them."""
        return {"client": time.process_time(), **{name: cpu_s([pid]) for name, pid in self.pids.items()}}

    async def answer(self, user: str, number: int) -> None:
        """One question with its answer."""
        asked = Invoke(user_id=user, message=f"{number}: {TEXTS[number % len(TEXTS)]}")
        await self.bus.request(asked, trace=conversation_trace(user), timeout_s=_ANSWER_WITHIN_S)

    async def load(self, load: Load, seconds: float, tag: str) -> dict[str, Outcome]:
        """Outcome of each kind, once the load has warmed up."""
        took: dict[str, list[tuple[float, float]]] = {kind: [] for kind in load.kinds}
        ends = time.perf_counter() + _WARM_UP_S + seconds

        async def user(each: int) -> None:
            first, said = each * len(load.kinds) // load.users, count()
            for kind in islice(cycle(load.kinds), first, None):
                began = time.perf_counter()
                if began >= ends:
                    return
                await (self.answer(f"{tag}-{each}", next(said)) if kind == "answer" else self.runs.one())
                took[kind].append((time.perf_counter(), time.perf_counter() - began))

        await asyncio.gather(*map(user, range(load.users)))
        await self.runs.check()
        return {kind: _outcome(found, ends - seconds, ends) for kind, found in took.items()}

    async def cost(self, kind: str, among: int) -> Cost:
        """Of an operation among so many, by process: until it is answered, and what follows until all are idle."""
        before, sent, began = self.cpu_s(), await self._published(), time.perf_counter()
        found = (await self.load(Load((kind,), users=among), seconds=_SECONDS, tag=f"cost-{among}"))[kind]
        done = found.per_s * (time.perf_counter() - began)
        answered, messages = self.cpu_s(), await self._published() - sent
        idle_s = await self.settle()
        later = {
            name: now - answered[name] - self.idle[name] * idle_s
            for name, now in self.cpu_s().items()
            if name != "client"
        }
        return Cost(
            cpu_s={name: (now - before[name]) / done for name, now in answered.items() if now - before[name] > 0.1},
            later_cpu_s={name: spent / done for name, spent in later.items() if spent > 0.1},
            messages=messages / done,
        )

    async def settle(self) -> float:
        """Seconds until the fleet does no more than when nobody asked anything."""
        began, allowed = time.perf_counter(), 1.5 * sum(self.idle.values()) + 0.1
        while time.perf_counter() - began < _SETTLES_WITHIN_S:
            if sum((await self.look()).values()) < allowed:
                break
        return time.perf_counter() - began

    async def look(self) -> dict[str, float]:
        """CPU seconds a second, of each process, for a while."""
        before = self.cpu_s()
        await asyncio.sleep(_LOOK_S)
        return {name: (now - before[name]) / _LOOK_S for name, now in self.cpu_s().items()}

    async def _published(self) -> int:
        """Messages that the broker has taken so far."""
        await asyncio.sleep(_COUNTED_WITHIN_S)
        return int((await self.management.overview())["message_stats"]["publish"])


def _outcome(took: list[tuple[float, float]], began: float, ended: float) -> Outcome:
    counted = [latency for at, latency in took if began <= at < ended]
    return Outcome(len(counted) / (ended - began), median(counted))


@asynccontextmanager
async def fleet() -> AsyncIterator[Fleet]:
    """All of MindBus's workers, and the role that echoes."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mindbus-bench-")))
        settings, node = await world(stack, folder)
        workers = stack.enter_context(workers_of(settings))
        names = [name for name in installed_workers().own if name != ROLE]
        await workers.start(*names)
        await workers.start_together(**{ROLE: ECHO})
        bus = await stack.enter_async_context(connect("user.local", settings=settings))
        artifacts = await stack.enter_async_context(open_artifacts(bus, settings))
        runs = Runs(bus, await put_brief(artifacts))
        listening = asyncio.create_task(runs.listen())
        stack.callback(listening.cancel)
        pids = {name: workers.pid_of(name) for name in (*names, ROLE)}
        management = Management(with_login(node.address.management_url, node.address.username, node.address.password))
        made = Fleet(bus, runs, {**pids, BROKER: node.pid}, management)
        await made.load(Load(("answer", "run"), users=4), seconds=_LOOK_S, tag="warm-up")
        await asyncio.sleep(_WARM_UP_S)
        made.idle = await made.look()
        yield made


async def calibrate() -> Calibration:
    before_s = _loop_s()
    async with fleet() as measured:
        costs = {
            kind: CostCurve(among={among: await measured.cost(kind, among) for among in (AMONG_FEW, AMONG_MANY)})
            for kind in ("answer", "run")
        }
    return Calibration(cores=os.cpu_count() or 1, loop_s=(before_s + _loop_s()) / 2, costs=costs)


def _loop_s() -> float:
    """How fast this machine is today: seconds of ten million additions."""
    began, total = time.perf_counter(), 0
    for number in range(10_000_000):
        total += number
    return round(time.perf_counter() - began, 3)


async def check(calibration: Calibration, rounds: int) -> None:
    """Print what is measured beside what was predicted, and medians of so many rounds, each of them with all loads."""
    found: dict[tuple[str, str], list[float]] = {}
    async with fleet() as measured:
        for number in range(rounds):
            for name, load in CHECKS.items():
                for kind, off in (await _checked(measured, calibration, load, f"{name} {number}")).items():
                    found.setdefault((name, kind), []).append(off)
    for (name, kind), offs in found.items():
        print(f"{name}: {kind}s predicted {median(offs):+.0%} ({', '.join(f'{off:+.0%}' for off in offs)})")


async def _checked(measured: Fleet, calibration: Calibration, load: Load, name: str) -> dict[str, float]:
    """By how much of what was measured the prediction is above it, by kind."""
    await measured.settle()
    before_s = _loop_s()
    found = await measured.load(load, seconds=_SECONDS, tag=name.replace(" ", "-"))
    # What has been put off is a part of what the machine carries for long.
    put_off = 1 + (await measured.settle() - _LOOK_S) / (_WARM_UP_S + _SECONDS)
    # Of a machine that is half as fast half as much is to be expected.
    slower = (before_s + _loop_s()) / 2 / calibration.loop_s
    predicted, off = calibration.predicted(load), {}
    for kind, outcome in found.items():
        expected, lasting = predicted[kind].per_s / slower, outcome.per_s / put_off
        off[kind] = expected / lasting - 1
        print(
            f"{name}: {_as_text(kind, outcome)}, with what was put off {lasting:.2f}/s; predicted "
            f"{_as_text(kind, predicted[kind])}, machine {slower:.2f} times as slow, so {expected:.2f}/s, "
            f"{off[kind]:+.0%}",
            flush=True,
        )
    return off


def predict(calibration: Calibration) -> None:
    """Print what the model says."""
    for name, load in CHECKS.items():
        for kind, outcome in calibration.predicted(load).items():
            print(f"{name}: {_as_text(kind, outcome)}")
    for users in _USERS:
        per_s = {
            "answer": users * _ANSWERS_A_DAY * _BUSIEST_HOUR / 3600,
            "run": users * _RUNS_A_DAY * _BUSIEST_HOUR / 3600,
        }
        costs = {kind: _without_client(curve.at(AMONG_MANY)) for kind, curve in calibration.costs.items()}
        needed = servers_for(per_s, costs, _BUSY_SHARE)
        most = sorted(needed.items(), key=lambda item: -item[1])[:6]
        busiest = ", ".join(f"{name} {cores:.2f}" for name, cores in most)
        rates = f"{per_s['answer']:.1f} answers/s, {per_s['run']:.2f} runs/s"
        print(f"{users:,} users: {rates}, {sum(needed.values()):.1f} cores; busiest: {busiest}")
    for kind, curve in calibration.costs.items():
        millions = 1e6 * _without_client(curve.at(AMONG_MANY)).total_cpu_s / 3600
        print(f"a million of {kind}: {millions:.0f} hours of a core")


def _without_client(cost: Cost) -> Cost:
    """The fleet's part of it."""
    return cost.model_copy(update={"cpu_s": {name: spent for name, spent in cost.cpu_s.items() if name != "client"}})


def _as_text(kind: str, outcome: Outcome) -> str:
    return f"{outcome.per_s:.2f} {kind}s/s, p50 {1000 * outcome.p50_s:.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.capacity", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    for name in ("calibrate", "predict", "check"):
        what.add_argument(f"--{name}", type=Path, metavar="FILE")
    parser.add_argument("--rounds", type=int, default=3, help="of --check; their medians count (3)")
    given = parser.parse_args()
    configure_logs("ERROR", "console")
    if given.calibrate:
        found = asyncio.run(calibrate())
        given.calibrate.write_text(found.model_dump_json(indent=2) + "\n")
        print(f"costs are in {given.calibrate}", file=sys.stderr)
        return
    calibration = Calibration.model_validate(json.loads((given.predict or given.check).read_text()))
    if given.predict:
        predict(calibration)
    else:
        asyncio.run(check(calibration, given.rounds))


if __name__ == "__main__":
    main()
