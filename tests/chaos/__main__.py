"""`python -m tests.chaos` breaks everything under a fleet while traffic flows; fails where anything is lost, doubled,
or stuck.
"""

import argparse
import asyncio
import json
import logging
import os
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mindbus.logs import configure_logs
from mindbus.tasks import run_until_stopped
from tests.chaos import sabotage
from tests.chaos.campaign import Campaign, Row, as_text, say
from tests.chaos.faults.fault import Fault, all_faults
from tests.chaos.testbed import LONG, QUICK, Pace, Testbed, own_testbed, shared_testbed

_SEED = 20261124
# One of each family: what CI has the time for. `make chaos` inflicts all.
_A_DOZEN = (
    *("connection_reset", "cut_after_bytes", "broker_killed", "group_killed", "workers_frozen", "duplicated"),
    *("commits_cut", "redis_killed", "disk_full", "clock_ahead_hours", "poison_frames", "outbox_row_unreadable"),
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short heartbeats, about a hundred operations a fault")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    parser.add_argument(
        "--seed", type=int, default=_SEED, help="of the order of operations, and of where a link is cut"
    )
    parser.add_argument("--only", help="these faults alone, by commas")
    parser.add_argument("--dozen", action="store_true", help="twelve faults that stand for the others, as CI has them")
    parser.add_argument("--without", default="", help="not these parts: postgres, redis, s3, disk, by commas")
    parser.add_argument("--keep", type=Path, help="folder for the data and logs of the fleets, which are kept then")
    parser.add_argument("--sabotage", choices=sabotage.CHOICES, help="break a guarantee on purpose: it has to be seen")
    return parser.parse_args()


def chosen(only: str | None, broken: str | None, *, a_dozen: bool) -> dict[str, Fault]:
    """Faults by name. Raises SystemExit where there is none of a name."""
    faults = all_faults()
    if a_dozen:
        only = ",".join(_A_DOZEN)
    if broken is not None and only is None:
        only = sabotage.SHOWN_BY[broken]
    names = list(faults) if only is None else only.split(",")
    if unknown := set(names) - set(faults):
        raise SystemExit(f"no such fault: {', '.join(sorted(unknown))}; there are {', '.join(faults)}")
    return {name: faults[name] for name in names}


async def inflict_all(faults: Mapping[str, Fault], folder: Path, pace: Pace, options: argparse.Namespace) -> list[Row]:
    """The faults of each testbed in turn."""
    rows: list[Row] = []
    for is_own in (False, True):
        of_bed = {name: fault for name, fault in faults.items() if fault.has_own_fleet is is_own}
        if not of_bed:
            continue
        async with _testbed(folder, pace, options, is_own=is_own) as bed:
            campaign = Campaign(bed)
            for name, fault in of_bed.items():
                began = time.monotonic()
                row = await campaign.suffer(name, fault)
                say(f"{as_text([row]).splitlines()[-1]}   ({time.monotonic() - began:.0f} s)")
            await campaign.recount()
            rows += campaign.rows
    return rows


@asynccontextmanager
async def _testbed(folder: Path, pace: Pace, options: argparse.Namespace, *, is_own: bool) -> AsyncIterator[Testbed]:
    where = folder / ("own" if is_own else "shared")
    where.mkdir()
    if is_own:
        async with own_testbed(where, pace, options.seed, options.sabotage) as bed:
            yield bed
        return
    without = [part for part in options.without.split(",") if part]
    async with shared_testbed(where, pace, options.seed, options.sabotage, without) as bed:
        yield bed


def report(rows: list[Row], seed: int, took_s: float) -> dict[str, Any]:
    """Everything, with the sums."""
    suffered = [row for row in rows if not row.skipped]
    return {
        "faults": [row.as_json() for row in rows],
        "lost": sum(row.lost for row in suffered),
        "doubled": sum(row.doubled for row in suffered),
        "stuck": sum(row.stuck for row in suffered),
        "late": [row.name for row in suffered if row.recovery_s is None or row.is_late],
        "seed": seed,
        "took_s": round(took_s),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}",
    }


def main() -> None:
    options = arguments()
    configure_logs("CRITICAL", "console")
    # The ledger's library says much of a broker that is away.
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    faults = chosen(options.only, options.sabotage, a_dozen=options.dozen)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mindbus-chaos-", ignore_cleanup_errors=True) as name:
        folder = options.keep or Path(name)
        folder.mkdir(exist_ok=True, parents=True)
        inflicting = inflict_all(faults, folder, QUICK if options.quick else LONG, options)
        # Whoever stops it leaves no broker behind.
        rows = asyncio.run(run_until_stopped(inflicting))
    if rows is None:
        sys.exit(1)
    found = report(rows, options.seed, time.monotonic() - began)
    print(json.dumps(found, indent=2) if options.json else as_text(rows))
    for row in rows:
        for example in row.examples:
            say(f"{row.name}: {example}")
    has_failed = any(row.failure for row in rows)
    sys.exit(1 if has_failed or found["lost"] or found["doubled"] or found["stuck"] else 0)


if __name__ == "__main__":
    main()
