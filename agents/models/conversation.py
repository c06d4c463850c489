"""How a conversation is laid out, so that any model understands it.

The system message opens with `Task: reply`. Users' and assistant's turns follow as they were said; an instruction to
the assistant stands in a turn of the user, since not every model takes system messages later on:

    <instruction>
    ...
    </instruction>

What is remembered precedes the last turn's own words, as material (see `agents.models.prompt`). Users cannot write
either kind of block: in their words the tags are taken apart.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from agents.models import prompt
from agents.models.language_model import Message
from agents.models.prompt import Material

TASK = "reply"

_TAG = re.compile(r"<(?=\s*/?\s*(?:material|instruction)\b)", re.IGNORECASE)
_INSTRUCTION = re.compile(r"^<instruction>\n(.*?)\n</instruction>$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Turn:
    """Something that was said, or an instruction to the assistant."""

    role: Literal["user", "assistant"]
    text: str
    is_instruction: bool = False


@dataclass(frozen=True)
class Conversation:
    """What a model is to answer: the last words of the user, or an instruction if one came last."""

    words: str
    instruction: str | None = None
    memory: tuple[Material, ...] = ()
    earlier: tuple[Turn, ...] = field(default=())


def lay_out_conversation(system: str, turns: Iterable[Turn], memory: Iterable[Material]) -> tuple[Message, ...]:
    """The messages that ask for the next turn; turns of one side are joined, since models expect them to alternate."""
    joined = [
        Message(role=role, content="\n\n".join(_shown(turn) for turn in said))
        for role, said in groupby(turns, key=lambda turn: turn.role)
    ]
    remembered = prompt.blocks(memory)
    if remembered and joined:
        last = joined[-1]
        joined[-1] = last.model_copy(update={"content": "\n\n".join((*remembered, last.content))})
    return (Message(role="system", content=f"Task: {TASK}\n\n{system}"), *joined)


def read_conversation(messages: Sequence[Message]) -> Conversation:
    """What such messages ask for."""
    turns = [message for message in messages if message.role != "system"]
    last = turns[-1].content if turns else ""
    asked = prompt.read([Message(role="user", content=last)])
    instructions = _INSTRUCTION.findall(asked.instructions)
    is_last = asked.instructions.endswith("</instruction>")
    return Conversation(
        words=_INSTRUCTION.sub("", asked.instructions).strip(),
        instruction=instructions[-1] if instructions and is_last else None,
        memory=asked.materials,
        earlier=tuple(
            Turn("assistant" if turn.role == "assistant" else "user", _INSTRUCTION.sub("", turn.content).strip())
            for turn in turns[:-1]
        ),
    )


def _shown(turn: Turn) -> str:
    text = _TAG.sub("‹", turn.text)
    return f"<instruction>\n{text}\n</instruction>" if turn.is_instruction else text
