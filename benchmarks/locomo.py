"""`python -m benchmarks.locomo` asks long-term memory LoCoMo's questions, of episodes that are packed away by then."""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

from benchmarks.locomo_baselines import baselines
from benchmarks.locomo_data import CATEGORIES, Conversation, DatasetMissing, Question, conversations
from benchmarks.servers.workers import workers_of
from bus_schema.episodes import WarmContent
from bus_schema.lsm import MAX_RECORDED, GetEpisode, RecordExchange, SaidMessage
from bus_schema.lsm_search import FoundEpisodes, SearchEpisodes
from bus_schema.lsm_statistics import GetEpisodeStats
from bus_schema.packer import RunPacking
from config.settings import FleetSettings
from language.words import stems
from mindbus.bus.client import Client
from mindbus.bus.connection import connect
from mindbus.logs import configure_logs
from mindbus_fleet.node.private import PrivateNode

BUDGETS = (600, 1200, 2400)
DEFAULT_DATA = "../shared/data/locomo_dev.json"
# A fact counts as told where so many of its words are there.
_TOLD = 0.8
_WARM_AFTER, _COLD_AFTER = timedelta(days=60), timedelta(days=122)
_PATIENCE_S = 600.0

Recall = dict[str, Any]


@dataclass
class Report:
    """Recall by budget; where single-hop answers are; in which layer each turn was when it was found."""

    recall: dict[str, Recall] = field(default_factory=dict)
    baselines: dict[str, dict[str, Recall]] = field(default_factory=dict)
    answers: dict[str, float] = field(default_factory=dict)
    layers: dict[str, int] = field(default_factory=dict)
    layers_at_hit: Counter[str] = field(default_factory=Counter)
    asked_ms: tuple[float, float] = (0.0, 0.0)

    def as_json(self) -> dict[str, Any]:
        """Budgets first."""
        return self.recall | {
            "baselines": self.baselines,
            "answers": self.answers,
            "layers": self.layers,
            "layers_at_hit": self.layers_at_hit,
            "asked_ms": {"p50": self.asked_ms[0], "p99": self.asked_ms[1]},
        }


async def measure(talks: Sequence[Conversation], budgets: Sequence[int], *, packed: bool = True) -> Report:
    report = Report()
    with tempfile.TemporaryDirectory(prefix="mindbus-bench-") as name:
        settings = FleetSettings(data_dir=Path(name) / "data", log_level="ERROR", packer_interval_s=0)
        async with long_term_memory(Path(name), settings) as bus:
            raw_ids = await record(bus, talks)
            if packed:
                await pack(bus, talks, _WARM_AFTER)
                report.answers = await _answers(bus, talks)
                await pack(bus, talks, _COLD_AFTER)
            stats = await bus.request(GetEpisodeStats(), timeout_s=_PATIENCE_S)
            report.layers = {layer.value: each.episodes for layer, each in stats.layers.items()}
            for budget in budgets:
                report.recall[str(budget)] = await _recall(bus, talks, budget, raw_ids, report)
        _say("asked; now the baselines")
        for kind, found in (await baselines(settings, talks, raw_ids, budgets)).items():
            report.baselines[kind] = {str(budget): recall_of(each) for budget, each in found.items()}
    return report


async def record(bus: Client, talks: Sequence[Conversation]) -> dict[str, str]:
    """The raw log's id of each message, once every turn has its vector."""
    ids: dict[str, str] = {}
    for talk in talks:
        for said in (part for session in talk.sessions for part in parts_of(session)):
            recorded = await bus.request(RecordExchange(chat_id=talk.chat_id, messages=said), timeout_s=_PATIENCE_S)
            for message, raw_log_id in zip(said, recorded.raw_log_ids, strict=True):
                ids[str(message.message_id)] = raw_log_id
    _say(f"{len(ids)} turns recorded")
    while waiting := (await bus.request(GetEpisodeStats(), timeout_s=_PATIENCE_S)).waiting_for_vectors:
        _say(f"{waiting} turns wait for their vectors")
        await asyncio.sleep(5)
    return ids


def parts_of(session: Sequence[SaidMessage]) -> Iterator[Sequence[SaidMessage]]:
    """A session in as many messages as are recorded at once."""
    for begin in range(0, len(session), MAX_RECORDED):
        yield session[begin : begin + MAX_RECORDED]


async def pack(bus: Client, talks: Sequence[Conversation], after: timedelta) -> None:
    await pack_at(bus, max(talk.ended_at for talk in talks) + after)


async def pack_at(bus: Client, at: datetime) -> None:
    """Pack what is due at a time, however many steps it takes."""
    while not (run := await bus.request(RunPacking(at=at), timeout_s=_PATIENCE_S)).is_done:
        _say(f"packed {run.warm} warm, {run.cold} cold")


async def _recall(
    bus: Client, talks: Sequence[Conversation], budget: int, raw_ids: dict[str, str], report: Report
) -> Recall:
    verdicts, took = [], []
    for talk in talks:
        for question in talk.questions:
            began = time.perf_counter()
            found = await _asked(bus, talk, question, budget)
            took.append(1000 * (time.perf_counter() - began))
            turns = {turn.raw_log_id for episode in found.episodes for turn in episode.turns}
            verdicts.append(verdict(question, turns, raw_ids))
            report.layers_at_hit.update(each.layer.value for each in found.episodes for _ in each.turns)
    cuts = quantiles(took, n=100, method="inclusive")
    report.asked_ms = (round(cuts[49], 1), round(cuts[98], 1))
    _say(f"asked at {budget} words")
    return recall_of(verdicts)


async def _asked(bus: Client, talk: Conversation, question: Question, budget: int, **how: Any) -> FoundEpisodes:
    at = how.pop("at", talk.ended_at + _COLD_AFTER)
    query = SearchEpisodes(query=question.text, chat_id=talk.chat_id, budget_words=budget, at=at, touch=False, **how)
    return await bus.request(query, timeout_s=_PATIENCE_S)


def verdict(question: Question, turns: Collection[str], raw_ids: dict[str, str]) -> tuple[str, bool, bool]:
    """The category; whether any, whether all of the evidence is there."""
    there = [raw_ids[message_id] in turns for message_id in question.evidence]
    return question.category, any(there), all(there)


def recall_of(verdicts: Sequence[tuple[str, bool, bool]]) -> Recall:
    """Percent of the questions."""
    by_category = defaultdict(list)
    for each in verdicts:
        by_category[each[0]].append(each)
    return _percent(verdicts) | {
        "by_category": {name: _percent(by_category[name]) for name in CATEGORIES.values() if by_category[name]}
    }


def _percent(verdicts: Sequence[tuple[str, bool, bool]]) -> Recall:
    any_of, all_of = fmean(each[1] for each in verdicts), fmean(each[2] for each in verdicts)
    return {"any": round(100 * any_of, 1), "all": round(100 * all_of, 1), "questions": len(verdicts)}


async def _answers(bus: Client, talks: Sequence[Conversation]) -> dict[str, float]:
    """The share of single-hop answers that are told by what is returned of warm episodes."""
    told: dict[str, list[bool]] = defaultdict(list)
    for talk in talks:
        warm: dict[str, WarmContent | None] = {}
        at = talk.ended_at + _WARM_AFTER
        for question in (each for each in talk.questions if each.category == "single-hop" and each.answer):
            briefly = await _asked(bus, talk, question, 1200, at=at, depth="summary")
            for episode_id in (each.episode_id for each in briefly.episodes if each.episode_id not in warm):
                content = (await bus.request(GetEpisode(episode_id=episode_id, at=at))).content
                warm[episode_id] = content if isinstance(content, WarmContent) else None
            packs = [pack for each in briefly.episodes if (pack := warm[each.episode_id]) is not None]
            fully = await _asked(bus, talk, question, 1200, at=at)
            told["warm summary alone"].append(_tells(question, (pack.summary for pack in packs)))
            told["warm key points alone"].append(
                _tells(question, (point for pack in packs for point in pack.key_points))
            )
            told["warm text"].append(_tells(question, (each.text or "" for each in briefly.episodes)))
            turns = (turn.content for each in fully.episodes for turn in each.turns)
            told["lazy unpacking"].append(_tells(question, turns))
    _say("asked of warm episodes")
    return {name: round(100 * fmean(each), 1) for name, each in told.items()}


def _tells(question: Question, texts: Any) -> bool:
    wanted = set(stems(question.answer))
    there = {stem for text in texts for stem in stems(text)}
    return len(wanted & there) >= _TOLD * len(wanted)


@asynccontextmanager
async def long_term_memory(folder: Path, settings: FleetSettings) -> AsyncIterator[Client]:
    """Long-term memory with its packer, each a process, on a broker of their own."""
    async with AsyncExitStack() as stack:
        node = PrivateNode(folder / "rabbitmq")
        await node.start()
        stack.push_async_callback(node.kill)
        settings = settings.model_copy(update={"amqp_url": node.amqp_url})
        workers = stack.enter_context(workers_of(settings))
        await workers.start("lsm", "packer")
        yield await stack.enter_async_context(connect(settings=settings))


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def as_text(report: Report) -> str:
    """Any / all, in percent, by budget."""
    kinds: dict[str, dict[str, Recall]] = {"mindbus": report.recall} | report.baselines
    lines = [f"{'any / all in %':28}" + "".join(f"{budget + ' words':>18}" for budget in report.recall)]
    lines += [_line(kind, list(found.values())) for kind, found in kinds.items()]
    for name in CATEGORIES.values():
        of_category = [each["by_category"][name] for each in report.recall.values() if name in each["by_category"]]
        lines.append(_line(f"  {name}", of_category))
    lines += [f"single-hop answers told by {name}: {share} %" for name, share in report.answers.items()]
    lines.append(f"episodes by layer {report.layers}, turns found by layer {dict(report.layers_at_hit)}")
    lines.append("over the bus, p50 {:.1f} ms, p99 {:.1f} ms".format(*report.asked_ms))
    return "\n".join(lines)


def _line(name: str, found: Sequence[Recall]) -> str:
    return f"{name:28}" + "".join(f"{each['any']:.1f} / {each['all']:.1f}".rjust(18) for each in found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.locomo", description=__doc__)
    given = os.environ.get("MINDBUS_LOCOMO", DEFAULT_DATA)
    parser.add_argument("--data", type=Path, default=Path(given), help="LoCoMo's conversations, as JSON")
    parser.add_argument("--budget-words", type=int, action="append", help="may be given several times")
    parser.add_argument("--conversations", type=int, default=None, help="only so many of them")
    parser.add_argument("--hot", action="store_true", help="without packing anything")
    parser.add_argument("--json", action="store_true", help="numbers for programs")
    options = parser.parse_args()
    configure_logs("ERROR", "console")
    try:
        talks = conversations(options.data)[: options.conversations]
    except DatasetMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    report = asyncio.run(measure(talks, options.budget_words or BUDGETS, packed=not options.hot))
    print(json.dumps(report.as_json()) if options.json else as_text(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
