"""The questions of LoCoMo, read as they were meant."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bus_schema.ids import derived
from bus_schema.lsm import SaidMessage

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_PAUSE = timedelta(seconds=30)
# «D8:6; D9:17» are two, «D:11:26» and «D30:05» are D11:26, D30:5; a few name turns that there are not.
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


class DatasetMissing(Exception):
    """The file of LoCoMo's conversations is not there; name it by --data or MINDBUS_LOCOMO."""


@dataclass(frozen=True)
class Question:
    """`evidence` are the message ids of the turns that answer it."""

    text: str
    category: str
    answer: str
    evidence: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    """Its sessions, in their order."""

    chat_id: str
    sessions: tuple[tuple[SaidMessage, ...], ...]
    questions: tuple[Question, ...]

    @property
    def ended_at(self) -> datetime:
        return max(session[-1].time for session in self.sessions)


def conversations(path: Path) -> list[Conversation]:
    """Those questions only that have evidence. Raises DatasetMissing."""
    if not path.is_file():
        raise DatasetMissing(f"{DatasetMissing.__doc__} ({path})")
    return [_conversation(each) for each in json.loads(path.read_text())]


def _conversation(raw: dict[str, Any]) -> Conversation:
    chat_id = f"locomo-{raw['sample_id']}"
    talk = raw["conversation"]
    numbers = sorted(int(key.split("_")[1]) for key in talk if re.fullmatch(r"session_\d+", key))
    sessions = [_session(chat_id, talk, number) for number in numbers if talk[f"session_{number}"]]
    known = {message.message_id for session in sessions for message in session}
    asked = (_question(chat_id, each, known) for each in raw["qa"])
    return Conversation(chat_id, tuple(sessions), tuple(each for each in asked if each.evidence))


def _session(chat_id: str, talk: dict[str, Any], number: int) -> tuple[SaidMessage, ...]:
    begins = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    return tuple(
        SaidMessage(
            message_id=_message_id(chat_id, turn["dia_id"]),
            role="user" if turn["speaker"] == talk["speaker_a"] else "assistant",
            speaker=turn["speaker"],
            content=_said(turn),
            time=begins + place * _PAUSE,
        )
        for place, turn in enumerate(talk[f"session_{number}"])
    )


def _said(turn: dict[str, Any]) -> str:
    """With what can be seen in the picture, if the turn shows one."""
    caption = turn.get("blip_caption")
    return f"{turn['text']} [image: {caption}]" if caption else str(turn["text"])


def _question(chat_id: str, raw: dict[str, Any], known: set[str | None]) -> Question:
    named = (_EVIDENCE.findall(each) for each in raw.get("evidence") or ())
    ids = {_message_id(chat_id, f"D{int(session)}:{int(turn)}") for pairs in named for session, turn in pairs}
    answer = raw.get("answer", raw.get("adversarial_answer", ""))
    return Question(raw["question"], CATEGORIES[raw["category"]], str(answer), frozenset(ids & known))


def _message_id(chat_id: str, turn: str) -> str:
    return f"msg_{derived(chat_id, turn)}"
