"""`python -m benchmarks.working_memory` queries a working memory of 3,000 units, its own store beside Redis.

The worker `swm` is a process of its own; each query goes over the bus and returns a page. CPU is that of the worker.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

from benchmarks.rounds import in_turn, middle, shown_span, span
from benchmarks.servers.cpu_time import cpu_s
from benchmarks.servers.redis import PrivateRedis, RedisMissing
from benchmarks.servers.workers import workers_of
from bus_schema.glm import MAX_PAGE, KemPage
from bus_schema.kem import KemDraft
from bus_schema.swm import PublishKems, QuerySwm
from config.settings import FleetSettings
from mindbus.bus.client import Client
from mindbus.bus.connection import connect
from mindbus.health import HealthFolder
from mindbus.logs import configure_logs
from mindbus_fleet.node.private import PrivateNode

_SEED = 20261130
_BATCH = 200
_PAGE = 50
_PATIENCE_S = 60.0
_KINDS = ("fact", "decision", "summary", "preference", "document")
_PROJECTS = 50
_WORDS = (
    "the",
    "spare",
    "key",
    "hall",
    "is",
    "under",
    "blue",
    "pot",
    "since",
    "Monday",
    "Борис",
    "знает",
    "об",
    "этом",
)
# Filters of the queries, with the share of the units that match; every page is the first but that of the last.
QUERIES: Mapping[str, dict[str, Any]] = {
    "project (2 %)": {"metadata_filters": {"project": "project_7"}},
    "kind (20 %)": {"metadata_filters": {"kind": "decision"}},
    "kind, oldest first": {"metadata_filters": {"kind": "decision"}, "order_by": "created_at asc"},
    "all": {},
}
DEEP, WHOLE = "all, in the middle", "all, pages of 200"


class Unsound(Exception):
    """Other units came back than were published, so that the time says nothing."""


@dataclass(frozen=True)
class Extent:
    """Rounds, units, times that each query is asked in a round."""

    rounds: int
    units: int
    times: int


FULL = Extent(rounds=3, units=3000, times=300)
BAR = Extent(rounds=1, units=3000, times=100)
QUICK = Extent(rounds=1, units=300, times=3)


@dataclass
class Asked:
    """Milliseconds of one query: p50, p99 and the worker's CPU for each, by round."""

    p50_ms: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        by_name = {"p50_ms": self.p50_ms, "p99_ms": self.p99_ms, "cpu_ms": self.cpu_ms}
        return {name: middle(values, 2) for name, values in by_name.items()} | {
            f"{name}_span": span(values, 2) for name, values in by_name.items()
        }


@dataclass
class Report:
    """By store and query; why a store is left out."""

    extent: Extent
    asked: dict[str, dict[str, Asked]] = field(default_factory=dict)
    published_per_s: dict[str, float] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "units": self.extent.units,
            "rounds": self.extent.rounds,
            "published_per_s": self.published_per_s,
            "query_swm": {
                store: {name: asked.as_json() for name, asked in by_query.items()}
                for store, by_query in self.asked.items()
            },
            "left_out": self.left_out,
        }


@dataclass(frozen=True)
class Stage:
    """A client of a worker that keeps its units in one of the stores, and the worker's process."""

    bus: Client
    pid: int


async def measure(extent: Extent) -> Report:
    """Both stores side by side, in the opposite order each round."""
    report = Report(extent)
    async with AsyncExitStack() as stack:
        stages = await _stages(stack, report)
        for store, stage in stages.items():
            report.published_per_s[store] = round(await _publish(stage, extent.units), 1)
            report.asked[store] = {name: Asked() for name in (*QUERIES, DEEP, WHOLE)}
        for number in range(extent.rounds):
            for store, stage in in_turn(stages.items(), number):
                await _round(stage, extent, report.asked[store])
            print(f"round {number + 1} of {extent.rounds} done", file=sys.stderr)
    return report


async def _stages(stack: AsyncExitStack, report: Report) -> dict[str, Stage]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mindbus-bench-")))
    stages = {"default": await stack.enter_async_context(_stage(folder / "default", None))}
    try:
        server = PrivateRedis()
    except RedisMissing as missing:
        report.left_out["redis"] = str(missing)
        return stages
    stack.push_async_callback(server.remove)
    await server.start()
    return stages | {"redis": await stack.enter_async_context(_stage(folder / "redis", server.url))}


@asynccontextmanager
async def _stage(folder: Path, redis_url: str | None) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        node = PrivateNode(folder / "rabbitmq")
        await node.start()
        stack.push_async_callback(node.kill)
        settings = FleetSettings(
            amqp_url=node.amqp_url, data_dir=folder / "data", log_level="ERROR", cache_redis_url=redis_url
        )
        workers = stack.enter_context(workers_of(settings))
        await workers.start("glm", "swm")
        bus = await stack.enter_async_context(connect("agent.researcher", settings=settings))
        yield Stage(bus, HealthFolder(settings).require("swm").pid)


async def _publish(stage: Stage, units: int) -> float:
    """Units a second."""
    chance = random.Random(_SEED)
    drafts = [_draft(number, chance) for number in range(units)]
    began = time.perf_counter()
    for first in range(0, units, _BATCH):
        batch = PublishKems(kems=tuple(drafts[first : first + _BATCH]))
        done = await stage.bus.request(batch, timeout_s=_PATIENCE_S)
        if wrong := {item.status for item in done.items} - {"stored"}:
            raise Unsound(f"{Unsound.__doc__} ({wrong})")
    return units / (time.perf_counter() - began)


def _draft(number: int, chance: random.Random) -> KemDraft:
    metadata = {"project": f"project_{number % _PROJECTS}", "kind": _KINDS[number // 7 % len(_KINDS)]}
    content = " ".join(chance.choices(_WORDS, k=40))
    return KemDraft(id=f"kem_{number:032x}", is_new=True, content=content, metadata=metadata)


async def _round(stage: Stage, extent: Extent, asked: dict[str, Asked]) -> None:
    for name, wanted in QUERIES.items():
        await _ask(stage, _query(wanted), extent.times, asked[name])
    cursor = None
    for _ in range(extent.units // 2 // _PAGE):
        cursor = (await _page(stage, _query({}, cursor))).next_cursor
    await _ask(stage, _query({}, cursor), extent.times, asked[DEEP])
    await _ask_for_all(stage, extent, asked[WHOLE])


def _query(wanted: dict[str, Any], cursor: str | None = None, page_size: int = _PAGE) -> QuerySwm:
    return QuerySwm.model_validate({"query": wanted, "cursor": cursor, "page_size": page_size})


async def _page(stage: Stage, query: QuerySwm) -> KemPage:
    found = await stage.bus.request(query, timeout_s=_PATIENCE_S)
    if not found.items:
        raise Unsound(f"{Unsound.__doc__} ({query})")
    return found


async def _ask(stage: Stage, query: QuerySwm, times: int, asked: Asked) -> None:
    """The same query again and again; the first time does not count."""
    await _page(stage, query)
    took, before = list[float](), cpu_s([stage.pid])
    for _ in range(times):
        began = time.perf_counter()
        await _page(stage, query)
        took.append(1000 * (time.perf_counter() - began))
    _note(asked, took, cpu_s([stage.pid]) - before)


async def _ask_for_all(stage: Stage, extent: Extent, asked: Asked) -> None:
    """Every unit, page after page; each page is a query. Raises Unsound where one is missing or comes twice."""
    took, before = list[float](), cpu_s([stage.pid])
    for _ in range(max(1, extent.times // 10)):
        cursor, ids = None, list[str]()
        while True:
            began = time.perf_counter()
            page = await _page(stage, _query({}, cursor, MAX_PAGE))
            took.append(1000 * (time.perf_counter() - began))
            ids += [item.kem.id for item in page.items]
            if (cursor := page.next_cursor) is None:
                break
        if len(ids) != extent.units or len(set(ids)) != extent.units:
            raise Unsound(f"{Unsound.__doc__} ({len(ids)} units, {len(set(ids))} of {extent.units} distinct)")
    _note(asked, took, cpu_s([stage.pid]) - before)


def _note(asked: Asked, took_ms: list[float], spent_s: float) -> None:
    cuts = quantiles(took_ms, n=100, method="inclusive")
    asked.p50_ms.append(cuts[49])
    asked.p99_ms.append(cuts[98])
    asked.cpu_ms.append(1000 * spent_s / len(took_ms))


def as_text(report: Report) -> str:
    """A table for people."""
    found = report.as_json()
    lines = [
        f"working memory of {found['units']} units, pages of {_PAGE}, over the bus; "
        f"medians of {found['rounds']} rounds (lowest-highest)",
        f"{'':32}{'p50, ms':>24}{'p99, ms':>24}{'CPU of the worker, ms':>28}",
    ]
    for store, by_query in found["query_swm"].items():
        lines.append(f"{store}: {found['published_per_s'][store]:.0f} units published a second")
        for name, row in by_query.items():
            cells = [f"{row[key]:.2f} {shown_span(row[f'{key}_span'])}" for key in ("p50_ms", "p99_ms", "cpu_ms")]
            lines.append(f"  {name:30}{cells[0]:>24}{cells[1]:>24}{cells[2]:>28}")
    return "\n".join([*lines, *(f"left out: {store}: {reason}" for store, reason in found["left_out"].items())])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.working_memory", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a few units: shows that it runs, measures nothing")
    size.add_argument("--bar", action="store_true", help="one round")
    parser.add_argument("--rounds", type=int, help=f"instead of {FULL.rounds}")
    parser.add_argument("--json", action="store_true", help="numbers for programs")
    options = parser.parse_args()
    configure_logs("ERROR", "console")
    extent = QUICK if options.quick else BAR if options.bar else FULL
    report = asyncio.run(measure(Extent(options.rounds or extent.rounds, extent.units, extent.times)))
    print(json.dumps(report.as_json(), indent=2) if options.json else as_text(report))


if __name__ == "__main__":
    main()
