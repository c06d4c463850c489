"""`python -m benchmarks.episodes` searches one chat of a hundred thousand turns, weighs it, records into it."""

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import quantiles

import numpy as np
from sqlalchemy import insert

from bus_schema.lsm_search import SearchEpisodes
from config.settings import FleetSettings
from memory.lsm.recorder import Utterance
from memory.lsm.search.search import EpisodeSearch
from memory.lsm.service import LongTermMemory
from memory.lsm.tables import MIGRATIONS, TurnVectorRow
from mindbus.bus.worker import utc_now
from mindbus.logs import configure_logs
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade
from mindbus.worker_host import spare_collections
from retrieval.embedding.selection import open_embedder

CHAT = "bench"
BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
_DIM = 384
_BATCH = 500
A_TURN = timedelta(minutes=11)
_VOCABULARY = 30_000
_WORDS = 14
# A word of these is several tokens: so many are as long for the model as a question of people, about 17.
_ASKED_WORDS = 5
# So many are about equally frequent.
_EVEN = 20
_MILLION = 1_000_000
_SEED = 6


@dataclass(frozen=True)
class Extent:
    """Sizes of the chat, one after the other; how many questions at each."""

    sizes: tuple[int, ...]
    questions: int


FULL = Extent(sizes=(50_000, 100_000), questions=200)
QUICK = Extent(sizes=(500, 1000), questions=5)


@dataclass
class Row:
    """At one size: milliseconds as p50, p99; seconds, MiB.

    `opened_s` is until a first answer where the index is built, `mapped_s` where it is mapped from its snapshot of
    `snapshot_mib`; smaller indexes have none.
    """

    turns: int
    asked_ms: tuple[float, float] = (0.0, 0.0)
    ranked_ms: tuple[float, float] = (0.0, 0.0)
    recorded_ms: tuple[float, float] = (0.0, 0.0)
    opened_s: float = 0.0
    mapped_s: float | None = None
    snapshot_mib: float | None = None
    index_mib: float = 0.0
    process_mib: float = 0.0


@dataclass
class Report:
    """Every size, then what a million would take if it goes on like this."""

    rows: list[Row] = field(default_factory=list)
    million: dict[str, float] = field(default_factory=dict)


async def measure(extent: Extent) -> Report:
    report = Report()
    with tempfile.TemporaryDirectory(prefix="mindbus-bench-") as name:
        settings = FleetSettings(data_dir=Path(name), log_level="ERROR")
        database = Database(settings.database_of("lsm"), "lsm")
        await upgrade(database, MIGRATIONS)
        there = 0
        for size in extent.sizes:
            # Each size has an index of its own.
            memory = LongTermMemory(database, settings, utc_now)
            await _filled(memory, there, size)
            there = size
            print(f"{size} turns are there", file=sys.stderr)
            report.rows.append(await _measured(memory, settings, size, extent.questions))
        await database.dispose()
    if len(report.rows) > 1:
        report.million = _extrapolated(report.rows)
    return report


async def _measured(memory: LongTermMemory, settings: FleetSettings, size: int, questions: int) -> Row:
    row = Row(size)
    search = await opened(memory, settings, row)
    asked = [" ".join(_text(10_000_000 + number, _ASKED_WORDS)) for number in range(questions)]
    row.asked_ms = cuts([await _ask(search, question, size, number) for number, question in enumerate(asked, 1)])
    # The same again: their vectors are known by now.
    again = asked[-min(questions, 200) :]
    row.ranked_ms = cuts([await _ask(search, question, size, questions + n) for n, question in enumerate(again, 1)])
    row.process_mib = heaviest_mib()
    row.recorded_ms = cuts([await recorded(memory, size, number) for number in range(questions)])
    await search.close()
    return row


async def opened(memory: LongTermMemory, settings: FleetSettings, row: Row) -> EpisodeSearch:
    """The search, its index built and weighed; where it is large enough for a snapshot, mapped from that."""
    search = await _new_search(memory, settings)
    row.opened_s = await _opened_s(search, row.turns, 0)
    row.index_mib = round(search.indexes.size_bytes(CHAT) / 2**20, 1)
    await search.indexes.save()
    if snapshots := list(search.indexes.snapshots.folder.glob("*")):
        row.snapshot_mib = round(sum(each.stat().st_blocks * 512 for each in snapshots) / 2**20, 1)
        await search.close()
        search = await _new_search(memory, settings)
        row.mapped_s = await _opened_s(search, row.turns, -1)
    return search


async def _new_search(memory: LongTermMemory, settings: FleetSettings) -> EpisodeSearch:
    search = EpisodeSearch(memory, settings, open_embedder)
    search.embeddings.embedder = await open_embedder()
    return search


def heaviest_mib() -> float:
    """Of this process, so far."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


async def _opened_s(search: EpisodeSearch, size: int, number: int) -> float:
    began = time.perf_counter()
    await _ask(search, "to open it", size, number)
    return round(time.perf_counter() - began, 2)


async def _ask(search: EpisodeSearch, question: str, size: int, number: int) -> float:
    """Until there is an answer; what it leaves behind is written before the next one."""
    query = SearchEpisodes(query=question, chat_id=CHAT, budget_words=1200)
    at, search_id = utc_now(), f"srch_{size}-{number}"
    began = time.perf_counter()
    await search.find(query, at, search_id, "user.bench")
    took_s = time.perf_counter() - began
    await search.log.write(search_id)
    return 1000 * took_s


async def recorded(memory: LongTermMemory, size: int, number: int) -> float:
    """Milliseconds for an exchange of somebody else's, so that the chat stays as large as it is."""
    at = BEGIN + number * A_TURN
    said = [
        Utterance(f"msg_{size}-{number}-{role}", role, " ".join(_text(number)), at) for role in ("user", "assistant")
    ]
    began = time.perf_counter()
    async with memory.database.at_hand():
        await memory.recorder.record("other", said)
    return 1000 * (time.perf_counter() - began)


async def _filled(memory: LongTermMemory, there: int, size: int) -> None:
    chance = np.random.default_rng(_SEED + there)
    for start in range(there, size, _BATCH):
        said = [_said(number) for number in range(start, min(start + _BATCH, size))]
        vectors = chance.standard_normal((len(said), _DIM), dtype=np.float32)
        await filled(memory, CHAT, said, [vector.tobytes() for vector in vectors])


async def filled(memory: LongTermMemory, chat_id: str, said: Sequence[Utterance], vectors: Sequence[bytes]) -> None:
    """Record turns with their vectors, of 384 numbers of float32."""
    async with memory.database.at_hand() as transaction:
        session = transaction.session
        ids = (await memory.recorder.record(chat_id, said)).raw_log_ids
        rows = [
            {"raw_log_id": key, "model": "multilingual-e5-small", "data": vector}
            for key, vector in zip(ids, vectors, strict=True)
        ]
        await session.execute(insert(TurnVectorRow), rows)


def _said(number: int) -> Utterance:
    role = ("user", "assistant")[number % 2]
    return Utterance(f"msg_{number}", role, " ".join(_text(number)), BEGIN + number * A_TURN)


def _text(number: int, words: int = _WORDS) -> Iterator[str]:
    """Words as frequent as those are that mean something: the most frequent one is in a tenth of the turns."""
    chance = np.random.default_rng([_SEED, number]).random(words)
    for rank in _EVEN * (_VOCABULARY / _EVEN + 1) ** chance - _EVEN:
        yield f"word{int(rank)}"


def cuts(took: Sequence[float]) -> tuple[float, float]:
    """p50 and p99."""
    hundredths = quantiles(took, n=100, method="inclusive")
    return round(hundredths[49], 1), round(hundredths[98], 1)


def _extrapolated(rows: Sequence[Row]) -> dict[str, float]:
    """On the line through the first size and the last."""
    first, last = rows[0], rows[-1]

    def at_a_million(before: float, after: float) -> float:
        slope = (after - before) / (last.turns - first.turns)
        return round(after + slope * (_MILLION - last.turns), 1)

    return {
        "ranked_p50_ms": at_a_million(first.ranked_ms[0], last.ranked_ms[0]),
        "opened_s": at_a_million(first.opened_s, last.opened_s),
        "index_mib": at_a_million(first.index_mib, last.index_mib),
    }


def as_text(report: Report) -> str:
    guess = "1000000, at a guess" if report.million else ""
    lines = [f"{'p50 / p99':34}" + "".join(f"{row.turns:>18}" for row in report.rows) + f"{guess:>22}"]
    kinds = {
        "asked, embedding included, ms": [row.asked_ms for row in report.rows],
        "asked, vector known, ms": [row.ranked_ms for row in report.rows],
        "exchange recorded, ms": [row.recorded_ms for row in report.rows],
    }
    for name, cells in kinds.items():
        lines.append(f"  {name:32}" + "".join(f"{p50:.1f} / {p99:.1f}".rjust(18) for p50, p99 in cells))
    lines[2] += f"{report.million.get('ranked_p50_ms', ''):>22}"
    names = {
        "index built, first answer, s": "opened_s",
        "snapshot mapped, first answer, s": "mapped_s",
        "index as it was built, MiB": "index_mib",
        "snapshot, MiB": "snapshot_mib",
    }
    for name, key in names.items():
        cells_of = "".join(f"{getattr(row, key) or '-':>18}" for row in report.rows)
        lines.append(f"  {name:32}{cells_of}{report.million.get(key, ''):>22}")
    lines.append(f"  {'process at its heaviest, MiB':32}" + "".join(f"{row.process_mib:>18}" for row in report.rows))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.episodes", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few turns: shows that it runs, measures nothing")
    parser.add_argument("--json", action="store_true", help="numbers for programs")
    options = parser.parse_args()
    configure_logs("ERROR", "console")
    spare_collections()
    report = asyncio.run(measure(QUICK if options.quick else FULL))
    print(json.dumps(asdict(report)) if options.json else as_text(report))


if __name__ == "__main__":
    main()
