"""`python -m benchmarks.bus` measures MindBus beside FastStream, both beside bare aio-pika."""

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.jobs import NAMES, Name
from benchmarks.measurements import Measurement, Row, Unsound
from benchmarks.report import Report, as_text
from config.settings import FleetSettings
from mindbus.logs import configure_logs
from mindbus_fleet.node.private import PrivateNode

_SEED = 20261121


@dataclass(frozen=True)
class Extent:
    """How much to measure; bounded, so that a slow machine is done in the end."""

    rounds: int
    messages: int
    requests: int


FULL = Extent(rounds=9, messages=2000, requests=500)
BAR = Extent(rounds=1, messages=20_000, requests=500)
QUICK = Extent(rounds=1, messages=150, requests=50)


async def measure(extent: Extent) -> Report:
    """All measurements in rounds, in another order each round, so that noise falls on everybody alike."""
    report = Report()
    order = random.Random(_SEED)
    async with _broker() as (amqp_url, folder):
        for number in range(1, extent.rounds + 1):
            work = [(name, kind) for name in NAMES for kind in _KINDS]
            order.shuffle(work)
            rows: dict[Name, Row] = {name: {} for name in NAMES}
            for name, kind in work:
                try:
                    rows[name] |= await _KINDS[kind](Measurement(amqp_url, folder, name), extent)
                except Unsound as unsound:
                    report.refused.append(f"round {number}, {name}, {kind}: {unsound}")
            report.add(rows)
            print(f"round {number} of {extent.rounds} done", file=sys.stderr)
    return report


_KINDS: dict[str, Callable[[Measurement, Extent], Awaitable[Row]]] = {
    "end to end": lambda measurement, extent: measurement.end_to_end(extent.messages),
    "backlog": lambda measurement, extent: measurement.backlog(extent.messages),
    "requests": lambda measurement, extent: measurement.requests(extent.requests),
}


@asynccontextmanager
async def _broker() -> AsyncIterator[tuple[str, Path]]:
    """The broker that MINDBUS_AMQP_URL names, else one that lives as long as the benchmark."""
    named = FleetSettings().amqp_url
    with tempfile.TemporaryDirectory(prefix="mindbus-bench-") as name:
        folder = Path(name)
        if named:
            yield named, folder
        else:
            async with PrivateNode(folder / "rabbitmq") as node:
                yield node.amqp_url, folder


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bus", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="one small round: shows that it runs, measures nothing")
    size.add_argument("--bar", action="store_true", help="one round of 20,000 messages")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--rounds", type=int, help=f"instead of {FULL.rounds}")
    arguments = parser.parse_args()
    configure_logs("ERROR", "console")
    extent = QUICK if arguments.quick else BAR if arguments.bar else FULL
    if arguments.rounds:
        extent = Extent(arguments.rounds, extent.messages, extent.requests)
    report = asyncio.run(measure(extent))
    print(json.dumps(report.as_json(), indent=2) if arguments.json else as_text(report))
    return 1 if report.refused else 0


if __name__ == "__main__":
    sys.exit(main())
