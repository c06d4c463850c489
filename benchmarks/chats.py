"""`python -m benchmarks.chats` asks long-term memory about labelled chats of a person with an assistant.

Beside the evidence of questions, as in `benchmarks.beam`: how sure it is where there is no answer, and which of the
labelled decisions and entities are in the warm packs. A decision is found where one item of a pack cites one of its
messages and shares half of the label's content stems, one item for one label; an entity by equal stems. Of what has
changed, whether the latest word comes before the earlier one where the newest are asked for first.
"""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.evidence import EvidenceReport, as_text, ask, measure
from benchmarks.locomo_data import DatasetMissing
from benchmarks.recall import DEFAULT_DATA, chats_of, message_id_of, user_of
from bus_schema.episodes import Decision, Entity, Layer, WarmContent, raw_log_id_of
from bus_schema.lsm import GetEpisode, ListEpisodes
from language.words import stem_key, terms
from mindbus.bus.client import Client
from mindbus.logs import configure_logs

BUDGETS = (300, 600)
_SHARED = 0.5
_UNLABELLED = ("date", "amount")


@dataclass
class PackReport:
    """Of each label whether it was found, of each item of a pack whether it is labelled.

    `superseded_shown` are superseded decisions that are in a pack without what superseded them.
    """

    decisions: list[bool] = field(default_factory=list)
    superseded_shown: int = 0
    superseded: int = 0
    decision_items: list[bool] = field(default_factory=list)
    entities: list[bool] = field(default_factory=list)
    entity_items: list[bool] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "decisions": {
                "recall": _percent(self.decisions),
                "precision": _percent(self.decision_items),
                "superseded_shown": self.superseded_shown,
                "superseded": self.superseded,
            },
            "entities": {"recall": _percent(self.entities), "precision": _percent(self.entity_items)},
        }

    def add_decisions(self, chat_id: str, labels: Sequence[Mapping[str, Any]], items: Sequence[Decision]) -> None:
        left = list(items)
        for label in labels:
            cited = {raw_log_id_of(chat_id, message_id_of(chat_id, each)) for each in label["messages"]}
            wanted = set(terms(label["text"]))
            item = next((each for each in left if cited & set(each.raw_log_ids) and _share(wanted, each.text)), None)
            self.decisions.append(item is not None)
            self.superseded += label["superseded_by"] is not None
            stands = item is not None and not item.superseded_by
            self.superseded_shown += label["superseded_by"] is not None and stands
            if item is not None:
                left.remove(item)
        self.decision_items += [each not in left for each in items]

    def add_entities(self, labels: Sequence[Mapping[str, Any]], items: Sequence[Entity]) -> None:
        wanted = {stem_key(each["name"]) for each in labels}
        there = {stem_key(each.name) for each in items if each.kind not in _UNLABELLED}
        self.entities += [each in there for each in wanted]
        self.entity_items += [each in wanted for each in there]


@dataclass
class ChangeReport:
    """Of each question about what has changed: whether earlier and later words are found, and the latest first."""

    both_shown: list[bool] = field(default_factory=list)
    newest_first: list[bool] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        numbers = {"both_shown": _percent(self.both_shown), "newest_first": _percent(self.newest_first)}
        return {"changes": numbers | {"questions": len(self.both_shown)}}

    def add(self, found: Sequence[str], old: set[str], new: set[str]) -> None:
        """Add an answer: the raw ids of its turns in order, and those of the label."""
        places = {raw_id: place for place, raw_id in enumerate(found)}
        earlier, later = ([places[each] for each in ids if each in places] for ids in (old, new))
        self.both_shown.append(bool(earlier and later))
        self.newest_first.append(bool(earlier and later) and min(later) < min(earlier))


def changes_of(labels: Mapping[str, Mapping[str, Any]], path: Path | None) -> list[dict[str, Any]]:
    """Questions about what has changed: those of a file, else the topics of the labelled updates."""
    if path is not None:
        return [each | {"chat_id": user_of(each["chat_id"])} for each in json.loads(path.read_text())]
    topics = ((chat_id, each) for chat_id, of_chat in labels.items() for each in of_chat["updates"])
    return [{"chat_id": chat_id, "question": each["topic"], **each} for chat_id, each in topics]


def _share(wanted: set[str], text: str) -> bool:
    return len(wanted & set(terms(text))) >= _SHARED * len(wanted)


def _percent(found: Sequence[bool]) -> float:
    return round(100 * fmean(found), 1) if found else 0.0


def read_labels(path: Path) -> dict[str, dict[str, Any]]:
    """Labels of each chat by its id."""
    return {user_of(each["chat_id"]): each for each in json.loads(path.read_text())}


async def run(
    path: Path, budgets: Sequence[int], questions: Path | None = None
) -> tuple[EvidenceReport, PackReport, ChangeReport]:
    """Ask about the chats, and about what has changed in them. Raises DatasetMissing."""
    chats, _ = chats_of(path, ())
    labels, packs, changes = read_labels(path), PackReport(), ChangeReport()

    warm: dict[str, dict[str, WarmContent]] = {chat.chat_id: {} for chat in chats}

    async def read_packs(bus: Client) -> None:
        for chat_id, found in warm.items():
            found |= await _warm(bus, chat_id)

    async def ask_of_changes(bus: Client) -> None:
        by_id = {chat.chat_id: chat for chat in chats}
        for asked in changes_of(labels, questions):
            chat_id = asked["chat_id"]
            found = await ask(bus, by_id[chat_id], asked["question"], max(budgets), newest_first=True)
            turns = [turn.raw_log_id for episode in found.episodes for turn in episode.turns]
            old, new = (
                {raw_log_id_of(chat_id, message_id_of(chat_id, each)) for each in asked[name]}
                for name in ("old", "new")
            )
            changes.add(turns, old, new)

    unanswerable = {
        chat_id: [each["question"] for each in of_chat["questions"] if not each["evidence"]]
        for chat_id, of_chat in labels.items()
    }
    report = await measure(chats, budgets, unanswerable, read_packs, ask_of_changes)
    for chat_id, found in warm.items():
        packs.add_decisions(
            chat_id, labels[chat_id]["decisions"], [each for pack in found.values() for each in pack.decisions]
        )
        packs.add_entities(labels[chat_id]["entities"], [each for pack in found.values() for each in pack.entities])
    return report, packs, changes


async def _warm(bus: Client, chat_id: str) -> dict[str, WarmContent]:
    """Packs of the episodes of a chat that are warm now, by episode."""
    cursor, packs = None, dict[str, WarmContent]()
    while True:
        page = await bus.request(ListEpisodes(chat_id=chat_id, layers=(Layer.WARM,), cursor=cursor))
        for head in page.items:
            content = (await bus.request(GetEpisode(episode_id=head.id))).content
            packs |= {head.id: content} if isinstance(content, WarmContent) else {}
        if (cursor := page.next_cursor) is None:
            return packs


def abstention(report: EvidenceReport) -> dict[str, float]:
    """Percent of the questions whose confidence is `nothing`: those without an answer, and those with one."""
    return {
        name: _percent([said == "nothing" for is_known, said in report.confidences if is_known is has_answer])
        for name, has_answer in (("unanswerable", False), ("answerable", True))
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.chats", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MINDBUS_CHATS", DEFAULT_DATA)))
    parser.add_argument("--budget-words", type=int, action="append", help="may be given several times")
    parser.add_argument(
        "--changes", type=Path, help="questions about what has changed: a list of chat_id, question, old and new ids"
    )
    parser.add_argument("--json", action="store_true", help="numbers for programs")
    options = parser.parse_args()
    configure_logs("ERROR", "console")
    try:
        report, packs, changes = asyncio.run(run(options.data, options.budget_words or BUDGETS, options.changes))
    except DatasetMissing as error:
        sys.exit(str(error))
    beside = {"abstention": abstention(report), **packs.as_json(), **changes.as_json()}
    if options.json:
        print(json.dumps(report.as_json() | beside))
    else:
        print(as_text(report))
        print("\n".join(f"{name}: {numbers}" for name, numbers in beside.items()))


if __name__ == "__main__":
    main()
