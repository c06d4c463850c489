"""`python -m benchmarks.runs` measures runs of a card of six steps whose role echoes, alone and many at once."""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from benchmarks.echo_role import PRODUCES, ROLE
from benchmarks.rounds import in_turn, middle, shown_span, span
from benchmarks.runs_peers import PEERS, STEPS, TEXT, Found, many, measure_runs
from benchmarks.servers.workers import workers_of
from bus_schema.artifacts import ArtifactRef
from bus_schema.cards import BRIEF, Card, CardStep
from bus_schema.ids import mint
from bus_schema.process import GetProcess, ProcessCompleted, StartProcess
from bus_schema.runs import RunStatus
from config.settings import FleetSettings
from mindbus.bus.client import Client
from mindbus.bus.connection import connect
from mindbus.logs import configure_logs
from mindbus.registry import installed_workers
from mindbus.sdk.artifacts import Artifacts, open_artifacts
from mindbus_fleet.cli.fleet import groups_of
from mindbus_fleet.node.private import PrivateNode

T = TypeVar("T")
ECHO = "benchmarks.echo_role:EchoWorker"
# What a run needs besides its role.
_SERVICES = ("storage", "orchestrator", "tracker")
_WITHIN_S = 300.0


class Unsound(Exception):
    """A run did not end as it should, so that the time says nothing."""


@dataclass(frozen=True)
class Extent:
    """Rounds, and runs by how many of them are under way at once."""

    rounds: int
    runs: dict[int, int]


FULL = Extent(rounds=3, runs={1: 10, 20: 60, 100: 100})
BAR = replace(FULL, rounds=1)
QUICK = Extent(rounds=1, runs={1: 2, 20: 4, 100: 4})


def card() -> Card:
    """Six steps, each of which echoes the one before."""
    names = [BRIEF, *(f"echo{number}" for number in range(1, STEPS + 1))]
    steps = tuple(
        CardStep(id=name, role=ROLE, instructions="Echo it.", inputs=(before,), produces=PRODUCES)
        for before, name in pairwise(names)
    )
    return Card(name="echo", steps=steps, result=names[-1])


class Runs:
    """Starts runs, and hears of their ends."""

    def __init__(self, bus: Client, brief: ArtifactRef) -> None:
        self._bus, self._brief, self._card = bus, brief, card()
        self._ended: dict[str, asyncio.Event] = {}

    async def listen(self) -> None:
        async with self._bus.subscribe(ProcessCompleted) as events:
            async for event in events:
                if (ended := self._ended.get(event.run_id)) is not None:
                    ended.set()

    async def one(self) -> None:
        """From the start to the event of the end."""
        run_id = mint("run")
        ended = self._ended[run_id] = asyncio.Event()
        await self._bus.request(
            StartProcess(run_id=run_id, card=self._card, inputs=(self._brief,)), trace=run_id, timeout_s=_WITHIN_S
        )
        async with asyncio.timeout(_WITHIN_S):
            await ended.wait()

    async def check(self) -> None:
        """Read back the runs so far. Raises Unsound."""
        for run_id in self._ended:
            await self._check(run_id)
        self._ended.clear()

    async def _check(self, run_id: str) -> None:
        run = await self._bus.request(GetProcess(run_id=run_id))
        outcome = (run.status, run.result and run.result.sha256, {step.attempt for step in run.steps})
        first = run.steps[0].artifact
        if outcome != (RunStatus.COMPLETED, first and first.sha256, {1}):
            raise Unsound(f"{Unsound.__doc__} ({run_id}: {outcome})")


async def put_brief(artifacts: Artifacts) -> ArtifactRef:
    """The text that all runs begin with."""
    put = await artifacts.put(
        TEXT.encode(), artifact_type=BRIEF, trace="run_briefs", content_type="text/markdown", visibility="public"
    )
    return put.ref


@asynccontextmanager
async def fleet(folder: Path, *, whole: bool) -> AsyncIterator[tuple[Runs, dict[str, int]]]:
    """Runs on a fleet of its own, with the process ids of its parts."""
    async with AsyncExitStack() as stack:
        node = PrivateNode(folder / "rabbitmq")
        await node.start()
        stack.push_async_callback(node.kill)
        settings = FleetSettings(amqp_url=node.amqp_url, data_dir=folder / "data", log_level="ERROR")
        workers = stack.enter_context(workers_of(settings))
        for group in _groups(whole=whole):
            own = {ROLE: ECHO} if ROLE in group else {}
            await workers.start_together(*(name for name in group if name != ROLE), **own)
        bus = await stack.enter_async_context(connect("user.local", settings=settings))
        artifacts = await stack.enter_async_context(open_artifacts(bus, settings))
        runs = Runs(bus, await put_brief(artifacts))
        listening = asyncio.create_task(runs.listen())
        stack.callback(listening.cancel)
        yield runs, {"broker": node.pid, "workers": workers.pid_of(ROLE), "client": os.getpid()}


def _groups(*, whole: bool) -> list[tuple[str, ...]]:
    if not whole:
        return [(*_SERVICES, ROLE)]
    groups, _ = groups_of(installed_workers(), None, isolate=False)
    return [group.workers for group in groups]


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def mindbus_round(runs: Runs, pids: dict[str, int], extent: Extent) -> tuple[Found, dict[str, float]]:
    """A round, and the milliseconds of CPU that each process spent on a step of it."""
    before = {name: cpu_s(pid) for name, pid in pids.items()}
    found = await measure_runs(runs.one, extent.runs)
    steps = sum(extent.runs.values()) * STEPS
    spent = {name: 1000 * (cpu_s(pid) - before[name]) / steps for name, pid in pids.items()}
    await runs.check()
    return found, spent


async def peer_round(name: str, folder: Path, extent: Extent) -> Found:
    """A round of a peer, in a process and on a database of its own."""
    own = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=folder))
    arguments = ("-m", "benchmarks.runs_peers", name, str(own), json.dumps(extent.runs))
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    return Found.model_validate_json(out)


async def measure(extent: Extent, *, whole: bool, where: Path | None) -> dict[str, Any]:
    """Everybody once a round, in the opposite order each, so that noise falls on all alike."""
    found: dict[str, list[Found]] = {name: [] for name in ("mindbus", *PEERS)}
    spent: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="mindbus-bench-", dir=where) as name:
        async with fleet(Path(name), whole=whole) as (runs, pids):
            await many(runs.one, 4, 2)
            for number in range(extent.rounds):
                for contestant in in_turn(found, number):
                    if contestant == "mindbus":
                        round_, cpu_ms = await mindbus_round(runs, pids, extent)
                        spent.append(cpu_ms)
                    else:
                        round_ = await peer_round(contestant, Path(name), extent)
                    found[contestant].append(round_)
                print(f"round {number + 1} of {extent.rounds} done", file=sys.stderr)
    peers = {name: _medians(found[name]) for name in PEERS}
    return _medians(found["mindbus"]) | peers | {"cpu_ms_per_step": _by_name(middle, spent), "rounds": extent.rounds}


def _medians(rounds: Sequence[Found]) -> dict[str, Any]:
    """Medians over the rounds, with the lowest and the highest; a run alone is the median of its round."""
    alone_s, rates = [median(each.alone_s) for each in rounds], [each.steps_per_s for each in rounds]
    return {
        "one_run_s": middle(alone_s, 3),
        "one_run_s_span": span(alone_s, 3),
        "steps_per_s": _by_name(middle, rates),
        "steps_per_s_span": _by_name(span, rates),
    }


def _by_name(of_rounds: Callable[[Iterable[float], int], T], found: Sequence[dict[str, float]]) -> dict[str, T]:
    return {name: of_rounds([each[name] for each in found], 1) for name in found[0]}


def as_text(report: dict[str, Any]) -> str:
    """A table for people."""
    lines = [f"{'':12}{'one run, s':>22}" + "".join(f"{at_once + ' at once':>24}" for at_once in report["steps_per_s"])]
    for name in ("mindbus", *PEERS):
        of = report if name == "mindbus" else report[name]
        one_run = f"{of['one_run_s']:.3f} {shown_span(of['one_run_s_span'])}"
        rates = (f"{rate:.1f} {shown_span(of['steps_per_s_span'][key])}" for key, rate in of["steps_per_s"].items())
        lines.append(f"{name:12}{one_run:>22}" + "".join(f"{rate:>24}" for rate in rates))
    spent = ", ".join(f"{name} {ms:.1f}" for name, ms in report["cpu_ms_per_step"].items())
    rounds = f"medians of {report['rounds']} rounds (lowest-highest)"
    explained = f"steps per second, of runs of six steps, by runs at once; {rounds}"
    return "\n".join([*lines, explained, f"CPU, ms a step: {spent}"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.runs", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a few runs: shows that it works, measures nothing")
    size.add_argument("--bar", action="store_true", help="one round")
    parser.add_argument("--json", action="store_true", help="numbers for programs")
    parser.add_argument("--fleet", action="store_true", help="every shipped worker, not only those that a run needs")
    parser.add_argument("--rounds", type=int, help=f"instead of {FULL.rounds}")
    parser.add_argument("--folder", type=Path, help="where to work; default: the folder for temporary files")
    given = parser.parse_args()
    configure_logs("ERROR", "console")
    extent = QUICK if given.quick else BAR if given.bar else FULL
    extent = replace(extent, rounds=given.rounds or extent.rounds)
    report = asyncio.run(measure(extent, whole=given.fleet, where=given.folder))
    print(json.dumps(report, indent=2) if given.json else as_text(report))


if __name__ == "__main__":
    main()
