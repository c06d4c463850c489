"""Evidence of questions among the turns of a search: how much of it is returned within a budget of words."""

import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

from benchmarks.locomo import long_term_memory, pack, pack_at, record
from benchmarks.locomo_baselines import messages_of, ranked_turns
from benchmarks.locomo_data import Conversation, Question
from bus_schema.lsm_search import FoundEpisodes, SearchEpisodes
from config.settings import FleetSettings
from memory.lsm.archived_texts import ArchivedTexts
from memory.lsm.search.index_cache import ChatIndexCache
from memory.lsm.search.index_snapshots import IndexSnapshots
from mindbus.bus.client import Client
from mindbus.sql.database import Database
from retrieval.embedding.selection import open_embedder

WAYS = ("bm25_turns", "dense_turns", "dense_user_turns")
WARM_AFTER, COLD_AFTER = timedelta(days=60), timedelta(days=365)
_PATIENCE_S = 600.0
# So many words of a turn are enough to answer from; of a shorter one all of them, or this share.
_ENOUGH_WORDS, _ENOUGH_SHARE = 60, 0.6


@dataclass(frozen=True)
class Verdict:
    """Of each turn of a question's evidence, whether enough of it was returned, and whether all of it was."""

    category: str
    enough: tuple[bool, ...]
    whole: tuple[bool, ...]


def judge(question: Question, returned: Mapping[str, str], texts: Mapping[str, str]) -> Verdict:
    """Compare the returned texts, by message id, with those of the messages."""
    enough, whole = [], []
    for message_id in question.evidence:
        words, there = len(texts[message_id].split()), len(returned.get(message_id, "").split())
        whole.append(0 < words <= there)
        enough.append(whole[-1] or there >= min(_ENOUGH_WORDS, _ENOUGH_SHARE * words, words))
    return Verdict(question.category, tuple(enough), tuple(whole))


def shares(verdicts: Sequence[Verdict], *, whole: bool = False) -> dict[str, Any]:
    """Percent of the questions with any and with all of their evidence, mean percent of the evidence."""
    found = [each.whole if whole else each.enough for each in verdicts]
    return {
        "any": _percent(map(any, found)),
        "all": _percent(map(all, found)),
        "evidence": _percent(fmean(each) for each in found),
        "questions": len(found),
    }


def _percent(values: Any) -> float:
    return round(100 * fmean(values), 1)


@dataclass
class EvidenceReport:
    """Verdicts by way and budget; `mindbus` is long-term memory over the bus, everything packed cold.

    `degraded` is the number of its searches that went by words alone.
    """

    verdicts: dict[str, dict[int, list[Verdict]]] = field(default_factory=lambda: defaultdict(dict))
    asked_ms: tuple[float, float] = (0.0, 0.0)
    import_s: float = 0.0
    index_mb: float = 0.0
    degraded: int = 0
    confidences: list[tuple[bool, str]] = field(default_factory=list)

    def as_json(self, *, whole: bool = False) -> dict[str, Any]:
        """Budgets first; with `whole` only uncut turns count, otherwise both are told."""
        ways = {
            way: {str(budget): self._of_budget(each, whole=whole) for budget, each in by_budget.items()}
            for way, by_budget in self.verdicts.items()
        }
        return ways.pop("mindbus") | {
            "baselines": ways,
            "asked_ms": {"p50": self.asked_ms[0], "p99": self.asked_ms[1]},
            "import_s": self.import_s,
            "index_mb": self.index_mb,
            "degraded": self.degraded,
        }

    @staticmethod
    def _of_budget(verdicts: Sequence[Verdict], *, whole: bool) -> dict[str, Any]:
        by_category: defaultdict[str, list[Verdict]] = defaultdict(list)
        for each in verdicts:
            by_category[each.category].append(each)
        categories = {name: shares(each, whole=whole) for name, each in sorted(by_category.items())}
        uncut = {} if whole else {"whole": shares(verdicts, whole=True)}
        return shares(verdicts, whole=whole) | {"by_category": categories} | uncut


async def measure(
    chats: Sequence[Conversation],
    budgets: Sequence[int],
    unanswerable: Mapping[str, Sequence[str]],
    when_packed: Callable[[Client], Awaitable[None]] | None = None,
    when_cold: Callable[[Client], Awaitable[None]] | None = None,
) -> EvidenceReport:
    """Record, pack until all is cold, ask; then the baselines. `unanswerable` are questions by chat, too.

    `when_packed` is called after the packing that follows each session by two months, when it is warm; `when_cold`
    after the questions.
    """
    report = EvidenceReport()
    with tempfile.TemporaryDirectory(prefix="mindbus-bench-") as name:
        settings = FleetSettings(data_dir=Path(name) / "data", log_level="ERROR", packer_interval_s=0)
        async with long_term_memory(Path(name), settings) as bus:
            began = time.perf_counter()
            raw_ids = await record(bus, chats)
            report.import_s = round(time.perf_counter() - began, 1)
            ends = sorted({session[-1].time for chat in chats for session in chat.sessions}) if when_packed else []
            for end in ends:
                await pack_at(bus, end + WARM_AFTER)
                if when_packed is not None:
                    await when_packed(bus)
            await pack(bus, chats, COLD_AFTER)
            await _ask(bus, chats, budgets, raw_ids, report)
            await _ask_in_vain(bus, chats, budgets[0], unanswerable, report)
            if when_cold is not None:
                await when_cold(bus)
        print("asked; now the baselines", file=sys.stderr)
        await _search_as_usual(settings, chats, budgets, raw_ids, report)
        report.index_mb = await _index_mb(settings, chats)
    return report


async def _ask(
    bus: Client, chats: Sequence[Conversation], budgets: Sequence[int], raw_ids: dict[str, str], report: EvidenceReport
) -> None:
    message_ids, took = {raw_id: key for key, raw_id in raw_ids.items()}, []
    for budget in budgets:
        verdicts = []
        for chat in chats:
            texts = _texts(chat)
            for question in chat.questions:
                began = time.perf_counter()
                found = await ask(bus, chat, question.text, budget)
                took.append(1000 * (time.perf_counter() - began))
                report.degraded += found.is_degraded
                turns = (turn for episode in found.episodes for turn in episode.turns)
                returned = {message_ids[turn.raw_log_id]: turn.content for turn in turns}
                verdicts.append(judge(question, returned, texts))
                if budget == budgets[0]:
                    report.confidences.append((True, found.confidence))
        report.verdicts["mindbus"][budget] = verdicts
    cuts = quantiles(took, n=100, method="inclusive")
    report.asked_ms = round(cuts[49], 1), round(cuts[98], 1)


async def _ask_in_vain(
    bus: Client,
    chats: Sequence[Conversation],
    budget: int,
    unanswerable: Mapping[str, Sequence[str]],
    report: EvidenceReport,
) -> None:
    for chat in chats:
        for question in unanswerable.get(chat.chat_id, ()):
            found = await ask(bus, chat, question, budget)
            report.confidences.append((False, found.confidence))


async def ask(
    bus: Client, chat: Conversation, question: str, budget: int, *, newest_first: bool = False
) -> FoundEpisodes:
    """Search a chat that ended a year ago."""
    query = SearchEpisodes(
        query=question,
        chat_id=chat.chat_id,
        budget_words=budget,
        at=chat.ended_at + COLD_AFTER,
        touch=False,
        newest_first=newest_first,
    )
    return await bus.request(query, timeout_s=_PATIENCE_S)


async def _search_as_usual(
    settings: FleetSettings,
    chats: Sequence[Conversation],
    budgets: Sequence[int],
    raw_ids: dict[str, str],
    report: EvidenceReport,
) -> None:
    for way in WAYS:
        report.verdicts[way] = {budget: [] for budget in budgets}
    async for ranked in ranked_turns(settings, chats, raw_ids):
        texts = _texts(ranked.talk)
        for way in WAYS:
            for budget in budgets:
                found = {str(each.message_id): each.content for each in ranked.found(way, budget)}
                report.verdicts[way][budget].append(judge(ranked.question, found, texts))


def _texts(chat: Conversation) -> dict[str, str]:
    return {str(message.message_id): message.content for message in messages_of(chat)}


async def _index_mb(settings: FleetSettings, chats: Sequence[Conversation]) -> float:
    """Memory of the chats' indexes, built anew."""
    embedder = await open_embedder()
    database = Database(settings.database_of("lsm"), "lsm")
    gap = timedelta(minutes=settings.lsm_gap_minutes)
    indexes = ChatIndexCache(
        database, gap, sys.maxsize, IndexSnapshots(database, settings.data_dir / "none"), ArchivedTexts(database, None)
    )
    for chat in chats:
        async with indexes.index(chat.chat_id, embedder.space.model):
            pass
    await embedder.close()
    await database.dispose()
    return round(indexes.size_bytes() / 2**20, 1)


def as_text(report: EvidenceReport) -> str:
    """Any / all / mean share of the evidence, in percent, by budget."""
    budgets = list(report.verdicts["mindbus"])
    lines = [f"{'any / all / evidence, %':30}" + "".join(f"{f'{budget} words':>24}" for budget in budgets)]
    for way, by_budget in report.verdicts.items():
        lines.append(f"{way:30}" + "".join(_cell(shares(by_budget[budget])) for budget in budgets))
    ours = report.verdicts["mindbus"]
    uncut = "".join(_cell(shares(each, whole=True)) for each in ours.values())
    lines.append(f"{'mindbus, uncut turns alone':30}{uncut}")
    for name in sorted({each.category for each in ours[budgets[0]]}):
        of_category = [[each for each in verdicts if each.category == name] for verdicts in ours.values()]
        lines.append(f"  {name:28}" + "".join(_cell(shares(each)) for each in of_category))
    lines.append("asked over the bus in {:.1f} ms (p50), {:.1f} ms (p99)".format(*report.asked_ms))
    lines.append(f"imported in {report.import_s} s, index {report.index_mb} MiB")
    if report.degraded:
        lines.append(f"{report.degraded} searches by words alone: the vectors were missing, or late")
    return "\n".join(lines)


def _cell(found: Mapping[str, Any]) -> str:
    return f"{found['any']:.1f} / {found['all']:.1f} / {found['evidence']:.1f}".rjust(24)
