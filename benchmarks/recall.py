"""`python -m benchmarks.recall` counts how often the turn that answers a question reaches the assistant's prompt.

The chats are a year old and packed away; the window of the talk holds none of their messages.
"""

import argparse
import asyncio
import gzip
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

from agents.dialogue.agent import DialogueAgent
from agents.models.language_model import ModelMessage
from agents.models.offline.model import OfflineModel
from benchmarks.locomo import long_term_memory, pack, record
from benchmarks.locomo_data import Conversation, DatasetMissing, Question
from bus_schema.dialogue import MAX_MESSAGE_CHARS, DialogueMessage
from bus_schema.episodes import raw_log_id_of
from bus_schema.history import DEFAULT_CONTEXT_TOKENS
from bus_schema.ids import derived
from bus_schema.lsm import SaidMessage
from config.settings import FleetSettings
from mindbus.bus.client import Client
from mindbus.bus.worker import utc_now
from mindbus.logs import configure_logs
from mindbus.sdk.recall import EpisodeRecall, KemRecall
from workers.dialogue.memory import MemoryLookup

DEFAULT_DATA = "../shared/data/chats_dev.json"
_PAUSE = timedelta(seconds=30)
_WITHIN_S = 60.0
_WARM_AFTER, _COLD_AFTER = timedelta(days=60), timedelta(days=365)


@dataclass
class Report:
    """Of each question: category, language, whether any and whether all of its evidence reached the prompt."""

    verdicts: list[tuple[str, str, bool, bool]] = field(default_factory=list)
    missed: list[dict[str, Any]] = field(default_factory=list)
    snippets: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    recalled_ms: list[float] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        by: defaultdict[str, list[tuple[bool, bool]]] = defaultdict(list)
        for category, language, is_any, is_all in self.verdicts:
            for name in ("all", language, category):
                by[name].append((is_any, is_all))
        cuts = quantiles(self.recalled_ms, n=100, method="inclusive")
        return {
            "questions": {name: _percent(verdicts) for name, verdicts in by.items()},
            "snippets_mean": round(fmean(self.snippets), 1),
            "memory_tokens_mean": round(fmean(self.tokens)),
            "recalled_ms": {"p50": round(cuts[49], 1), "p99": round(cuts[98], 1)},
            "missed": self.missed,
        }


def _percent(verdicts: Sequence[tuple[bool, bool]]) -> dict[str, Any]:
    any_of, all_of = fmean(each[0] for each in verdicts), fmean(each[1] for each in verdicts)
    return {"any": round(100 * any_of, 1), "all": round(100 * all_of, 1), "questions": len(verdicts)}


async def measure(chats: Sequence[Conversation], languages: Mapping[str, str], context_tokens: int) -> Report:
    report = Report()
    with tempfile.TemporaryDirectory(prefix="mindbus-bench-") as name:
        settings = FleetSettings(data_dir=Path(name) / "data", log_level="ERROR", packer_interval_s=0)
        async with long_term_memory(Path(name), settings) as bus:
            await record(bus, chats)
            for after in (_WARM_AFTER, _COLD_AFTER):
                await pack(bus, chats, after)
            prompts = Prompts(bus, DialogueAgent(OfflineModel(), context_tokens=context_tokens))
            for chat in chats:
                for question in chat.questions:
                    await _ask(prompts, chat, question, languages[chat.chat_id], report)
    return report


async def _ask(prompts: "Prompts", chat: Conversation, question: Question, language: str, report: Report) -> None:
    began = time.perf_counter()
    content, snippets, tokens = await prompts.of(chat.chat_id, question.text)
    report.recalled_ms.append(1000 * (time.perf_counter() - began))
    report.snippets.append(snippets)
    report.tokens.append(tokens)
    missing = [each for each in question.evidence if f'id="{raw_log_id_of(chat.chat_id, each)}"' not in content]
    report.verdicts.append((question.category, language, len(missing) < len(question.evidence), not missing))
    if missing:
        report.missed.append({"chat": chat.chat_id, "question": question.text, "missing": len(missing)})


class Prompts:
    """Prompts as the assistant makes them, of chats whose window is empty."""

    def __init__(self, bus: Client, agent: DialogueAgent) -> None:
        kems = KemRecall(bus, 0)
        self._lookup = MemoryLookup(kems, EpisodeRecall(bus, _WITHIN_S))
        self._agent = agent

    async def of(self, user_id: str, question: str) -> tuple[str, int, int]:
        """The last message of the prompt, its number of snippets, the tokens that memory may have."""
        talk = [ModelMessage(role="user", content=question)]
        message = DialogueMessage(
            message_id=f"msg_{derived(user_id, question)}",
            user_id=user_id,
            role="user",
            content=question,
            time=utc_now(),
        )
        _, budget = self._agent.window(talk)
        memory = await self._lookup.about(message, (), budget.memory)
        prompt = self._agent.prompt(talk, memory.snippets)
        return prompt[-1].content, prompt[-1].content.count("<material "), budget.memory


def chats_of(path: Path, chosen: Sequence[int]) -> tuple[list[Conversation], dict[str, str]]:
    """The chats with these places in the file, with their answerable questions; languages by chat.

    Raises DatasetMissing.
    """
    if not path.is_file():
        raise DatasetMissing(f"there is no {path}; name the file by --data")
    content = path.read_bytes()
    raw = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    chats = [raw[place] for place in chosen] if chosen else raw
    return [_chat(each) for each in chats], {user_of(each["chat_id"]): each.get("lang", "") for each in chats}


def user_of(chat_id: str) -> str:
    return chat_id.replace("_", "-")


def _chat(raw: dict[str, Any]) -> Conversation:
    chat_id = user_of(raw["chat_id"])
    sessions = (
        tuple(
            SaidMessage(
                message_id=message_id_of(chat_id, message["id"]),
                role=message["role"],
                content=message["content"][:MAX_MESSAGE_CHARS],
                time=datetime.fromisoformat(session["time"]) + place * _PAUSE,
            )
            for place, message in enumerate(session["messages"])
        )
        for session in raw["sessions"]
    )
    return Conversation(chat_id, tuple(sessions), tuple(_questions(chat_id, raw["questions"])))


def _questions(chat_id: str, raw: Iterable[dict[str, Any]]) -> Iterable[Question]:
    for each in raw:
        if each.get("evidence"):
            evidence = frozenset(message_id_of(chat_id, message) for message in each["evidence"])
            yield Question(each["question"], each.get("category", "paraphrase"), "", evidence)


def message_id_of(chat_id: str, number: int | str) -> str:
    return f"msg_{derived(chat_id, number)}"


def with_questions(chats: Sequence[Conversation], lines: str) -> list[Conversation]:
    """The chats with the questions of JSON lines {"chat", "question", "evidence"} in place of their own."""
    asked: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in filter(str.strip, lines.splitlines()):
        each = json.loads(line)
        asked[user_of(str(each["chat"]))].append(each)
    return [
        Conversation(chat.chat_id, chat.sessions, tuple(_questions(chat.chat_id, asked[chat.chat_id])))
        for chat in chats
        if asked[chat.chat_id]
    ]


def as_text(report: Report) -> str:
    found = report.as_json()
    lines = [f"{'evidence in the prompt, %':32}{'any':>8}{'all':>8}{'questions':>12}"]
    lines += [
        f"  {name:30}{share['any']:>8}{share['all']:>8}{share['questions']:>12}"
        for name, share in found["questions"].items()
    ]
    lines.append(f"  {found['snippets_mean']} snippets within {found['memory_tokens_mean']} tokens, on average")
    lines.append(f"  recalled in {found['recalled_ms']['p50']} ms (p50), {found['recalled_ms']['p99']} ms (p99)")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MINDBUS_CHATS", DEFAULT_DATA)))
    parser.add_argument("--chats", default="", help="places of the chats in the file, such as 0,2,4; default: all")
    parser.add_argument(
        "--questions", type=Path, help="JSON lines {chat, question, evidence: [message ids]} in place of the file's own"
    )
    parser.add_argument("--context-tokens", type=int, default=DEFAULT_CONTEXT_TOKENS)
    parser.add_argument("--json", action="store_true", help="numbers for programs, with the questions that missed")
    options = parser.parse_args()
    configure_logs("ERROR", "console")
    try:
        chats, languages = chats_of(options.data, [int(each) for each in options.chats.split(",") if each])
        if options.questions:
            chats = with_questions(chats, options.questions.read_text())
    except (DatasetMissing, OSError) as error:
        sys.exit(str(error))
    report = asyncio.run(measure(chats, languages, options.context_tokens))
    print(json.dumps(report.as_json(), ensure_ascii=False) if options.json else as_text(report))


if __name__ == "__main__":
    main()
