"""Layout of a conversation in a prompt.

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
from typing import Literal

from agents.models import prompt
from agents.models.language_model import ModelMessage
from agents.models.prompt import Material

TASK = "reply"
# A kind of material: another conversation, out of which the task of this one comes.
TALK = "talk"

_TAG = re.compile(r"<(?=\s*/?\s*(?:material|instruction)\b)", re.IGNORECASE)
_INSTRUCTION = re.compile(r"^<instruction>\n(.*?)\n</instruction>$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class ChatTurn:
    """A message of either side."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True)
class Conversation:
    """A parsed conversation: the user's last message, or an instruction that came last, with what precedes it.

    `results` are what tools have said since then.
    """

    words: str
    instruction: str | None = None
    memory: tuple[Material, ...] = ()
    results: tuple[ModelMessage, ...] = ()
    earlier: tuple[ChatTurn, ...] = field(default=())


def chat_prompt(system: str, said: Iterable[ModelMessage], memory: Iterable[Material] = ()) -> tuple[ModelMessage, ...]:
    """The messages that ask for the next turn; turns of one side are joined, since models expect them to alternate.

    What the system says in between is an instruction. Calls of tools stay as they are, each with its results.
    """
    joined: list[ModelMessage] = []
    for message in map(_laid_out, said):
        last = joined[-1] if joined else None
        if last and last.role == message.role in ("user", "assistant") and not (last.tool_calls or message.tool_calls):
            joined[-1] = last.model_copy(update={"content": f"{last.content}\n\n{message.content}"})
        else:
            joined.append(message)
    remembered = prompt.blocks(memory)
    if remembered and joined:
        last = joined[-1]
        joined[-1] = last.model_copy(update={"content": "\n\n".join((*remembered, last.content))})
    return (ModelMessage(role="system", content=f"Task: {TASK}\n\n{system}"), *joined)


def parse_conversation(messages: Sequence[ModelMessage]) -> Conversation:
    """The conversation in such messages."""
    said, since = since_user(messages)
    turns = [message for message in said if message.role in ("user", "assistant") and message.content]
    last = turns[-1].content if turns else ""
    asked = prompt.read([ModelMessage(role="user", content=last)])
    instructions = _INSTRUCTION.findall(asked.instructions)
    is_last = asked.instructions.endswith("</instruction>")
    return Conversation(
        words=_INSTRUCTION.sub("", asked.instructions).strip(),
        instruction=instructions[-1] if instructions and is_last else None,
        memory=asked.materials,
        results=tuple(message for message in since if message.role == "tool"),
        earlier=tuple(
            ChatTurn("assistant" if turn.role == "assistant" else "user", _INSTRUCTION.sub("", turn.content).strip())
            for turn in turns[:-1]
        ),
    )


def since_user(messages: Sequence[ModelMessage]) -> tuple[Sequence[ModelMessage], Sequence[ModelMessage]]:
    """Messages up to the user's last one, and those after it."""
    last = max((place for place, message in enumerate(messages) if message.role == "user"), default=len(messages) - 1)
    return messages[: last + 1], messages[last + 1 :]


def _laid_out(message: ModelMessage) -> ModelMessage:
    if message.role == "system":
        return ModelMessage(role="user", content=f"<instruction>\n{_TAG.sub('‹', message.content)}\n</instruction>")
    return message.model_copy(update={"content": _TAG.sub("‹", message.content)})
