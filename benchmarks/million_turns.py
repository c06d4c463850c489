"""`python -m benchmarks.million_turns` asks the questions of BEAM in one chat of a million turns.

BEAM's turns have the vectors that the model makes of them, and their own times. The others, over the 20 years before
the last of those, are fourteen words each, as frequent as in BEAM, with vectors drawn around those of BEAM's turns. The
same questions are asked in each chat alone, too. Nothing is packed.
"""

import argparse
import asyncio
import heapq
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.beam import BUDGETS
from benchmarks.episodes import A_TURN, CHAT, Row, cuts, filled, heaviest_mib, opened, recorded
from benchmarks.evidence import COLD_AFTER, Verdict, judge, shares
from benchmarks.locomo_baselines import messages_of
from benchmarks.locomo_data import Conversation, DatasetMissing, Question
from benchmarks.recall import chats_of
from bus_schema.episodes import raw_log_id_of
from bus_schema.ids import derived
from bus_schema.lsm_search import SearchEpisodes
from config.settings import FleetSettings
from memory.lsm.recorder import Utterance
from memory.lsm.search.search import EpisodeSearch
from memory.lsm.service import LongTermMemory
from memory.lsm.tables import MIGRATIONS
from mindbus.bus.worker import utc_now
from mindbus.logs import configure_logs
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade
from mindbus.worker_host import spare_collections
from retrieval.embedding.selection import open_embedder

DEFAULT_DATA = ("../shared/data/beam_dev_100k.json.gz", "../shared/data/beam_dev_1m.json.gz")
_GIVEN = (os.environ["MINDBUS_BEAM"],) if "MINDBUS_BEAM" in os.environ else DEFAULT_DATA
MILLION, FEW = 1_000_000, 2000
_BATCH, _EMBEDDED_AT_ONCE = 500, 32
_WORDS = 14
# A drawn vector differs from a real one by half of what two others differ by.
_APART = 0.5
_COMPARED = 500
_EXCHANGES = 200
_SEED = 6

Vectors = NDArray[np.float32]


class Turn(NamedTuple):
    """A turn with its vector, of float32."""

    said: Utterance
    vector: bytes


@dataclass
class Report:
    """`embedded` is what the model alone took, `likeness` the median cosine with the nearest real turn but itself.

    `found` has shares of the evidence by budget, in the million and in each chat alone; of `row`, `asked_ms` are the
    first budget's, whose questions are embedded, `ranked_ms` the second's.
    """

    row: Row
    embedded: dict[str, float] = field(default_factory=dict)
    likeness: dict[str, float] = field(default_factory=dict)
    imported_per_s: float = 0.0
    found: dict[str, dict[str, Any]] = field(default_factory=dict)


async def measure(chats: Sequence[Conversation], turns: int) -> Report:
    """Fill the chat up to so many turns. Each of these chats is there a second time, by itself."""
    report = Report(Row(turns))
    real = await _embedded(chats, report)
    with tempfile.TemporaryDirectory(prefix="mindbus-bench-") as name:
        settings = FleetSettings(data_dir=Path(name), log_level="ERROR")
        database = Database(settings.database_of("lsm"), "lsm")
        await upgrade(database, MIGRATIONS)
        memory = LongTermMemory(database, settings, utc_now)
        await _imported(memory, list(real.values()), report)
        for chat in chats:
            await _fill(memory, chat.chat_id, iter([real[str(each.message_id)] for each in messages_of(chat)]))
        search = await opened(memory, settings, report.row)
        await _ask_all(search, chats, report)
        report.row.process_mib = heaviest_mib()
        report.row.recorded_ms = cuts([await recorded(memory, turns, number) for number in range(_EXCHANGES)])
        await search.close()
        await database.dispose()
    return report


async def _embedded(chats: Sequence[Conversation], report: Report) -> dict[str, Turn]:
    """The chats' turns by message id, as the model sees them."""
    messages = [message for chat in chats for message in messages_of(chat)]
    embedder, made = await open_embedder(), list[bytes]()
    await embedder.query("to load it")
    began = time.perf_counter()
    for start in range(0, len(messages), _EMBEDDED_AT_ONCE):
        texts = [message.content for message in messages[start : start + _EMBEDDED_AT_ONCE]]
        made += [vector.raw for vector in await embedder.passages(texts)]
        if start % 1024 == 0:
            print(f"{start} of {len(messages)} turns are embedded", file=sys.stderr)
    took_s = time.perf_counter() - began
    await embedder.close()
    words = sum(len(message.content.split()) for message in messages)
    rates = {"turns_per_s": round(len(messages) / took_s, 1), "words_per_s": round(words / took_s)}
    report.embedded = {"turns": len(messages), "words": words, "took_s": round(took_s, 1)} | rates
    turns = map(Turn, map(Utterance.from_command, messages), made)
    return {str(turn.said.message_id): turn for turn in turns}


async def _imported(memory: LongTermMemory, real: Sequence[Turn], report: Report) -> None:
    """Real and drawn turns in the order of their times."""
    vectors = np.stack([np.frombuffer(turn.vector, np.float32) for turn in real])
    report.likeness = _likeness(vectors)
    others = _drawn(real, vectors, report.row.turns - len(real))
    began = time.perf_counter()
    in_order = sorted(real, key=_time_of)
    await _fill(memory, CHAT, heapq.merge(in_order, others, key=_time_of))
    report.imported_per_s = round(report.row.turns / (time.perf_counter() - began))


def _time_of(turn: Turn) -> Any:
    return turn.said.time


async def _fill(memory: LongTermMemory, chat_id: str, turns: Iterator[Turn]) -> None:
    there = 0
    while batch := list(islice(turns, _BATCH)):
        await filled(memory, chat_id, [turn.said for turn in batch], [turn.vector for turn in batch])
        if (there := there + len(batch)) % 100_000 == 0:
            print(f"{there} turns are there", file=sys.stderr)


def _drawn(real: Sequence[Turn], vectors: Vectors, count: int) -> Iterator[Turn]:
    """Turns with seeded words and vectors."""
    counted = Counter(word.lower() for turn in real for word in turn.said.content.split())
    words, chance = np.array(list(counted)), np.random.default_rng(_SEED)
    share = np.array(list(counted.values())) / counted.total()
    begin = max(map(_time_of, real)) - count * A_TURN
    for start in range(0, count, _BATCH):
        numbers = range(start, min(start + _BATCH, count))
        said = chance.choice(words, (len(numbers), _WORDS), p=share)
        for number, line, vector in zip(numbers, said, _around(vectors, len(numbers), chance), strict=True):
            role = ("user", "assistant")[number % 2]
            utterance = Utterance(f"msg_drawn-{number}", role, " ".join(line), begin + number * A_TURN)
            yield Turn(utterance, vector.tobytes())


def _around(vectors: Vectors, count: int, chance: np.random.Generator) -> Vectors:
    """So many vectors of length 1, each a real one moved into a direction in which real ones differ."""
    one, this, that = (vectors[chance.integers(len(vectors), size=count)] for _ in range(3))
    moved = one + _APART * (this - that)
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    return moved.astype(np.float32)


def _likeness(vectors: Vectors) -> dict[str, float]:
    chance = np.random.default_rng(_SEED)
    places = chance.choice(len(vectors), min(_COMPARED, len(vectors)), replace=False)
    among = vectors[places] @ vectors.T
    among[np.arange(len(places)), places] = -1
    drawn = _around(vectors, len(places), chance) @ vectors.T
    return {name: round(float(np.median(each.max(axis=1))), 3) for name, each in (("real", among), ("drawn", drawn))}


async def _ask_all(search: EpisodeSearch, chats: Sequence[Conversation], report: Report) -> None:
    """Every question in the million, with one budget after the other, then in its own chat."""
    took: dict[tuple[str, int], list[float]] = {}
    for where in ("million", "alone"):
        for budget in BUDGETS:
            verdicts, took_ms = list[Verdict](), took.setdefault((where, budget), [])
            for chat in chats:
                asked = _Asked(search, chat, CHAT if where == "million" else chat.chat_id, budget)
                verdicts += [await asked.judged(question, took_ms) for question in chat.questions]
            report.found.setdefault(where, {})[str(budget)] = shares(verdicts)
    report.row.asked_ms, report.row.ranked_ms = (cuts(took["million", budget]) for budget in BUDGETS)


class _Asked:
    """Questions about a chat's turns, asked in the chat `where` they are."""

    def __init__(self, search: EpisodeSearch, chat: Conversation, where: str, budget: int) -> None:
        self._search, self._chat, self._where, self._budget = search, chat, where, budget
        self._texts = {str(message.message_id): message.content for message in messages_of(chat)}
        self._message_ids = {raw_log_id_of(where, key): key for key in self._texts}

    async def judged(self, question: Question, took_ms: list[float]) -> Verdict:
        """What is found; what the search leaves behind is written before the next one."""
        query = SearchEpisodes(query=question.text, chat_id=self._where, budget_words=self._budget, touch=False)
        search_id = f"srch_{derived(self._where, self._budget, question.text)}"
        began = time.perf_counter()
        found = await self._search.find(query, self._chat.ended_at + COLD_AFTER, search_id, "user.bench")
        took_ms.append(1000 * (time.perf_counter() - began))
        await self._search.log.write(search_id)
        turns = (turn for episode in found.episodes for turn in episode.turns)
        ids = self._message_ids
        returned = {ids[turn.raw_log_id]: turn.content for turn in turns if turn.raw_log_id in ids}
        return judge(question, returned, self._texts)


def as_text(report: Report) -> str:
    row = report.row
    lines = [
        f"{row.turns} turns, {report.embedded['turns']} of them real",
        "  the model alone: {turns_per_s} turns/s, {words_per_s} words/s".format(**report.embedded),
        f"  imported without it: {report.imported_per_s:.0f} turns/s",
        "  cosine with the nearest real turn: {real} (real), {drawn} (drawn)".format(**report.likeness),
        "  asked {:.1f} / {:.1f} ms (p50 / p99)".format(*row.asked_ms),
        "  with the vector known {:.1f} / {:.1f} ms".format(*row.ranked_ms),
        "  exchange recorded {:.1f} / {:.1f} ms".format(*row.recorded_ms),
        f"  index {row.index_mib} MiB, built in {row.opened_s} s",
        f"  snapshot {row.snapshot_mib} MiB, mapped in {row.mapped_s} s",
        f"  process at its heaviest {row.process_mib} MiB",
    ]
    for where, by_budget in report.found.items():
        for budget, each in by_budget.items():
            shown = f"{each['any']} / {each['all']} / {each['evidence']}"
            lines.append(f"  any / all / evidence, {where}, {budget} words, %: {shown}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.million_turns",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, action="append", help="BEAM's chats; may be given several times")
    parser.add_argument("--quick", action="store_true", help=f"{FEW} turns more than BEAM has: shows that it runs")
    parser.add_argument("--json", action="store_true", help="numbers for programs")
    options = parser.parse_args()
    configure_logs("ERROR", "console")
    spare_collections()
    try:
        chats = [chat for path in options.data or map(Path, _GIVEN) for chat in chats_of(path, ())[0]]
    except DatasetMissing as error:
        sys.exit(str(error))
    there = sum(len(messages_of(chat)) for chat in chats)
    report = asyncio.run(measure(chats, there + FEW if options.quick else MILLION))
    print(json.dumps(asdict(report)) if options.json else as_text(report))


if __name__ == "__main__":
    main()
