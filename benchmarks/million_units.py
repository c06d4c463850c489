"""`python -m benchmarks.million_units` stores a million units in shared memory, opens it anew, asks for what is near.

Without the bus and without the peer, with which it would take hours. They are opened by a process of its own, whose
memory has nothing else in it.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select

from benchmarks.memory import Report, ask_inside, opened, say, store_inside, weigh
from benchmarks.memory_units import questions
from benchmarks.servers.cpu_time import memory_mib
from config.settings import FleetSettings
from memory.glm.service import GlobalMemory
from memory.glm.tables import KemRow
from mindbus.logs import configure_logs
from mindbus.worker_host import spare_collections

_ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Extent:
    """How many units, how often each question is asked."""

    units: int
    times: int


FULL = Extent(units=1_000_000, times=50)
QUICK = Extent(units=1000, times=3)


@dataclass
class Opening:
    """Seconds and CPU until a process answers; MiB it has then: resident, not mapped from files, at its heaviest.

    `asked_ms` are p50 and p99 of each question in the worker and in its index.
    """

    start_s: float
    start_cpu_s: float
    memory_mib: dict[str, float] = field(default_factory=dict)
    asked_ms: dict[str, Any] = field(default_factory=dict)


async def opening(folder: Path, extent: Extent) -> Opening:
    """In this process, which has not done anything else."""
    settings, report = FleetSettings(data_dir=folder / "inside", log_level="ERROR"), Report()
    before_s = time.process_time()
    async with opened(settings, report) as memory:
        found = Opening(round(report.start_s, 2), round(time.process_time() - before_s, 2), memory_mib())
        await ask_inside(memory, questions(await _middle(memory, extent.units)), extent.times, report)
    found.asked_ms = report.asked_ms
    return found


async def _middle(memory: GlobalMemory, units: int) -> datetime:
    """When half of the units were there."""
    async with memory.database.reading() as session:
        query = select(KemRow.created_at).order_by(KemRow.created_at).offset(units // 2).limit(1)
        return (await session.scalars(query)).one()


def measure(extent: Extent, size: str) -> dict[str, Any]:
    report = Report()
    with tempfile.TemporaryDirectory(prefix="mindbus-bench-") as name:
        folder = Path(name)
        stored_per_s = asyncio.run(store_inside(folder, extent.units))
        say(f"stored inside the worker: {stored_per_s:.0f} a second")
        command = [sys.executable, "-m", "benchmarks.million_units", "--open", name, size]
        done = subprocess.run(list(filter(None, command)), cwd=_ROOT, check=True, stdout=subprocess.PIPE)
        weigh(FleetSettings(data_dir=folder / "inside"), report)
    return {
        "units": extent.units,
        "stored_per_s": round(stored_per_s, 1),
        "database_mib": report.database_mib,
        "index_mib": report.index_mib,
        **json.loads(done.stdout),
    }


def as_text(found: dict[str, Any]) -> str:
    """Tables for people."""
    lines = [
        f"{found['units']} units, {found['stored_per_s']:.0f} stored a second; "
        f"database {found['database_mib']:.0f} MiB, index {found['index_mib']:.0f} MiB"
    ]
    memory = ", ".join(f"{kind} {mib:.0f}" for kind, mib in found["memory_mib"].items())
    lines.append(f"opened in {found['start_s']:.1f} s, {found['start_cpu_s']:.1f} s of CPU; MiB then: {memory}")
    lines.append(f"{'p50 / p99 in ms':34}{'worker':>18}{'index':>18}")
    for name, by_place in found["asked_ms"].items():
        cells = (
            "{:.1f} / {:.1f}".format(*by_place[place]) if place in by_place else "" for place in ("worker", "index")
        )
        lines.append(f"  {name:32}" + "".join(f"{cell:>18}" for cell in cells))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.million_units", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a thousand units: shows that it runs, measures nothing")
    parser.add_argument("--open", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="numbers for programs")
    options = parser.parse_args()
    configure_logs("ERROR", "console")
    spare_collections()
    extent = QUICK if options.quick else FULL
    if options.open is not None:
        print(json.dumps(asdict(asyncio.run(opening(options.open, extent)))))
        return
    found = measure(extent, "--quick" if options.quick else "")
    print(json.dumps(found, indent=2) if options.json else as_text(found))


if __name__ == "__main__":
    main()
