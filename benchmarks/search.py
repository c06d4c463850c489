"""`python -m benchmarks.search` measures pages of a hundred thousand manifests, at any depth, on either database."""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.catalogue import BEGIN, fill, hidden_manifests, manifests, members, trace_of
from benchmarks.servers.postgres import PostgresMissing, PrivatePostgres, create_database
from bus_schema.identities import Principal
from bus_schema.storage import SearchArtifacts
from mindbus.logs import configure_logs
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade
from storage_service.catalog import Catalog
from storage_service.tables import MIGRATIONS

CORPORA = {"everyday": manifests, "hidden": hidden_manifests}


@dataclass(frozen=True)
class Extent:
    """How many manifests, how often each page is asked for."""

    manifests: int
    times: int


FULL = Extent(manifests=100_000, times=40)
QUICK = Extent(manifests=500, times=2)


@dataclass(frozen=True)
class Question:
    """What somebody looks for."""

    corpus: str
    name: str
    principal: Principal
    wanted: dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """How long one page took, in milliseconds."""

    database: str
    corpus: str
    question: str
    asker: str
    depth: float
    items: int
    p50_ms: float
    p95_ms: float


DEPTHS = (0.0, 0.5, 0.95)


def questions(count: int) -> Iterator[Question]:
    """Each filter alone, then some together; by one who may read most, by one who may read little, by a stranger."""
    middle = BEGIN + timedelta(minutes=count // 2)
    day = timedelta(days=1)
    everyday: dict[str, dict[str, Any]] = {
        "nothing": {},
        "trace": {"trace_id": trace_of(count // 2)},
        "agent": {"agent": "agent.critic"},
        "step": {"step_id": "research"},
        "type": {"artifact_type": "draft"},
        "made after": {"created_after": middle},
        "made before": {"created_before": middle},
        "made within a day": {"created_after": middle, "created_before": middle + day},
        "type, step": {"artifact_type": "draft", "step_id": "research"},
        "agent, type, made after": {"agent": "agent.critic", "artifact_type": "draft", "created_after": middle},
    }
    for principal in (Principal("agent.critic.1", trace_of(1)), Principal("user.7"), Principal("agent.stranger.1")):
        for name, wanted in everyday.items():
            yield Question("everyday", name, principal, wanted)
    hermit = {"trace": {"trace_id": "run_hidden"}, "agent": {"agent": "agent.hermit"}}
    for name, wanted in (everyday | hermit).items():
        of_hermit = wanted | (hermit["agent"] if "agent" in wanted else {})
        yield Question("hidden", name, Principal("agent.stranger.1", "run_hidden"), of_hermit)


async def measure(database: Database, kind: str, corpus: str, extent: Extent) -> list[Answer]:
    """Each question at each depth, in turn, so that noise falls on all alike."""
    catalog = Catalog(database)
    asked = [question for question in questions(extent.manifests) if question.corpus == corpus]
    pages = [(question, depth) for question in asked for depth in DEPTHS]
    took: dict[int, list[float]] = {number: [] for number in range(len(pages))}
    items: dict[int, int] = {}
    for turn in range(extent.times + 1):
        for number, (question, depth) in enumerate(pages):
            wanted = SearchArtifacts(cursor=str(int(depth * extent.manifests)), **question.wanted)
            began = time.perf_counter()
            page = await catalog.search(wanted, question.principal)
            if turn:
                took[number].append((time.perf_counter() - began) * 1000)
            items[number] = len(page.items)
    return [
        Answer(
            *(kind, corpus, question.name, question.principal.identity, depth, items[number]),
            *(round(median(took[number]), 1), round(quantiles(took[number], n=20)[-1], 1)),
        )
        for number, (question, depth) in enumerate(pages)
    ]


async def filled(database: Database, corpus: str, count: int) -> None:
    """A database without tables, with all manifests afterwards."""
    await upgrade(database, MIGRATIONS)
    await fill(database, CORPORA[corpus](count), members(count))


@asynccontextmanager
async def _databases(folder: Path) -> AsyncIterator[Iterator[tuple[str, str, Database]]]:
    """One of each kind for each corpus; PostgreSQL where there is one."""
    found = [("sqlite", corpus, Database(f"sqlite+aiosqlite:///{folder / corpus}.db", "storage")) for corpus in CORPORA]
    server = None
    try:
        server = PrivatePostgres()
        await server.start()
        found += [("postgresql", corpus, Database(create_database(server.url), "storage")) for corpus in CORPORA]
    except PostgresMissing as missing:
        print(missing, file=sys.stderr)
    yield iter(found)
    for _kind, _corpus, database in found:
        await database.dispose()
    if server is not None:
        await server.remove()


async def measure_all(extent: Extent) -> list[Answer]:
    """On both databases."""
    answers: list[Answer] = []
    with tempfile.TemporaryDirectory(prefix="mindbus-bench-") as name:
        async with _databases(Path(name)) as databases:
            for kind, corpus, database in databases:
                await filled(database, corpus, extent.manifests)
                answers += await measure(database, kind, corpus, extent)
                print(f"{kind}, {corpus} done", file=sys.stderr)
    return answers


def as_text(answers: list[Answer]) -> str:
    """A line for each question, p50 (p95) at each depth."""
    lines: dict[tuple[str, str, str, str], list[str]] = {}
    for each in answers:
        key = (each.database, each.corpus, each.asker, each.question)
        lines.setdefault(key, []).append(f"{each.p50_ms:6.1f} ({each.p95_ms:5.1f})")
    head = f"{'p50 (p95) in ms, at depth':64}" + "".join(f"{depth:>15.0%}" for depth in DEPTHS)
    body = [f"{d:11}{c:10}{a:20}{q:23}" + " ".join(cells) for (d, c, a, q), cells in lines.items()]
    return "\n".join([head, *body])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small catalogue: shows that it runs, measures nothing")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    configure_logs("ERROR", "console")
    answers = asyncio.run(measure_all(QUICK if arguments.quick else FULL))
    print(json.dumps([asdict(each) for each in answers], indent=2) if arguments.json else as_text(answers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
