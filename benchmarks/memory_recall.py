"""`python -m benchmarks.memory_recall` asks memories for turns of talks, MindBus's beside others with the same vectors.

Each memory stores every turn of every talk, then gets the questions that others have asked about them. The vectors are
made beforehand, so that no memory's time has the embedding in it.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

from benchmarks.locomo import DEFAULT_DATA
from benchmarks.locomo_baselines import messages_of
from benchmarks.locomo_data import Conversation
from benchmarks.memory_peers import CONTESTANTS, DURABILITY, Asked, CannotRun, Contestant
from benchmarks.memory_table import as_text
from benchmarks.memory_turns import KnownVectors, talks_of, turns_of
from benchmarks.rounds import in_turn, middle, span
from mindbus.logs import configure_logs
from retrieval.embedding.selection import open_embedder

COUNTS = (5, 10)


@dataclass(frozen=True)
class Extent:
    """Rounds, talks, questions of each talk; None: all."""

    rounds: int
    talks: int | None
    questions: int | None


FULL = Extent(rounds=3, talks=None, questions=None)
BAR = Extent(rounds=1, talks=2, questions=100)
QUICK = Extent(rounds=1, talks=1, questions=5)


@dataclass
class Row:
    """One memory's: turns stored per second and milliseconds (p50, p99) of each round; shares found by question."""

    stored_per_s: list[float] = field(default_factory=list)
    asked_ms: list[tuple[float, float]] = field(default_factory=list)
    recall: dict[int, list[float]] = field(default_factory=lambda: {count: [] for count in COUNTS})

    def as_json(self, name: str) -> dict[str, Any]:
        """Medians over the rounds; recall is the mean share of the evidence among the first turns, in percent."""
        p50, p99 = ([cuts[place] for cuts in self.asked_ms] for place in (0, 1))
        return {
            "recall": {str(count): round(100 * fmean(shares), 1) for count, shares in self.recall.items()},
            "p50_ms": middle(p50, 2),
            "p50_ms_span": span(p50, 2),
            "p99_ms": middle(p99, 2),
            "p99_ms_span": span(p99, 2),
            "stored_per_s": middle(self.stored_per_s, 1),
            "stored_per_s_span": span(self.stored_per_s, 1),
            "durability": DURABILITY[name],
        }


@dataclass
class Report:
    """Whose talks they are, how many; a row by memory; why those cannot run here that are left out."""

    data: str
    turns: int
    questions: int
    rounds: int
    embedded_per_s: float = 0.0
    rows: dict[str, Row] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        facts = ("data", "turns", "questions", "rounds", "embedded_per_s", "left_out")
        found: dict[str, Any] = {name: getattr(self, name) for name in facts}
        return found | {"memories": {name: row.as_json(name) for name, row in self.rows.items()}}


async def measure(data: Path, extent: Extent) -> Report:
    name, talks = talks_of(data, extent.talks)
    questions = sum(len(talk.questions[: extent.questions]) for talk in talks)
    turns = sum(len(messages_of(talk)) for talk in talks)
    report = Report(name, turns, questions, extent.rounds)
    embedder = await open_embedder()
    vectors = KnownVectors(embedder)
    try:
        report.embedded_per_s = await _embedded(vectors, talks, extent)
        with tempfile.TemporaryDirectory(prefix="mindbus-bench-") as folder:
            # Episodes are embedded with what surrounds them, so that their texts are known only by doing it once.
            async with CONTESTANTS["mindbus lsm"](Path(folder) / "first", vectors) as first:
                await first.fill(talks)
            vectors.is_sealed = True
            for number in range(extent.rounds):
                for contestant in in_turn(CONTESTANTS, number):
                    await _round(contestant, Path(folder) / f"{number}-{contestant}", vectors, (talks, extent), report)
    finally:
        await embedder.close()
    return report


async def _embedded(vectors: KnownVectors, talks: Sequence[Conversation], extent: Extent) -> float:
    """Turns a second; the questions are embedded besides."""
    texts = [turn.text for talk in talks for turn in turns_of(talk)]
    began = time.perf_counter()
    await vectors.passages(texts)
    rate = len(texts) / (time.perf_counter() - began)
    for talk in talks:
        for question in talk.questions[: extent.questions]:
            await vectors.query(question.text)
    return round(rate, 1)


async def _round(
    name: str, folder: Path, vectors: KnownVectors, scope: tuple[Sequence[Conversation], Extent], report: Report
) -> None:
    if name in report.left_out:
        return
    talks, extent = scope
    try:
        async with CONTESTANTS[name](folder, vectors) as contestant:
            row = report.rows.setdefault(name, Row())
            row.stored_per_s.append(report.turns / await contestant.fill(talks))
            await _ask_all(contestant, talks, extent, row)
    except CannotRun as reason:
        report.left_out[name] = str(reason)
        print(f"{name} is left out: {reason}", file=sys.stderr)
    else:
        print(f"{name}: {row.stored_per_s[-1]:.0f} stored a second, p50 {row.asked_ms[-1][0]:.1f} ms", file=sys.stderr)


async def _ask_all(contestant: Contestant, talks: Sequence[Conversation], extent: Extent, row: Row) -> None:
    """Every question, for each number of turns; times are those of the largest. The first of each talk warms up."""
    took: list[float] = []
    is_first_round = not row.asked_ms
    for talk in talks:
        words = fmean(len(message.content.split()) for message in messages_of(talk))
        for place, question in enumerate([talk.questions[0], *talk.questions[: extent.questions]]):
            # Fewer turns are asked for once: what is found does not change from round to round.
            for count in COUNTS if is_first_round else COUNTS[-1:]:
                asked = Asked(talk.chat_id, question.text, count, round(count * words))
                turns, seconds = await contestant.ask(asked)
                if place and count == COUNTS[-1]:
                    took.append(1000 * seconds)
                if place and is_first_round:
                    row.recall[count].append(len(question.evidence & set(turns)) / len(question.evidence))
    cuts = quantiles(took, n=100, method="inclusive")
    row.asked_ms.append((cuts[49], cuts[98]))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory_recall", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a few questions: shows that it runs, measures nothing")
    size.add_argument("--bar", action="store_true", help="one round of a hundred questions of two talks each")
    given = os.environ.get("MINDBUS_LOCOMO", DEFAULT_DATA)
    parser.add_argument(
        "--data", type=Path, default=Path(given), help="LoCoMo's talks, or chats as for recall, as JSON"
    )
    parser.add_argument("--rounds", type=int, help=f"instead of {FULL.rounds}")
    parser.add_argument("--json", action="store_true", help="numbers for programs")
    options = parser.parse_args()
    configure_logs("ERROR", "console")
    extent = QUICK if options.quick else BAR if options.bar else FULL
    extent = Extent(options.rounds or extent.rounds, extent.talks, extent.questions)
    report = asyncio.run(measure(options.data, extent))
    found = report.as_json()
    print(json.dumps(found, indent=2, ensure_ascii=False) if options.json else as_text(found))


if __name__ == "__main__":
    main()
