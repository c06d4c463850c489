"""Conversations of models: layout in a prompt, conversion from and to histories.

The system message opens with `Task: reply`. Users' and assistant's turns follow as they were said; an instruction to
the assistant stands in a turn of the user, since not every model takes system messages later on:

    <instruction>
    ...
    </instruction>

The present (see `agents.present`) and memory, as material (see `agents.models.prompt`), precede the last turn's own
words. Users cannot write such blocks: in their words the tags are taken apart.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Literal

from agents.models import prompt
from agents.models.language_model import ModelMessage, ToolCall
from agents.models.prompt import Material
from agents.present import Present, parse_present
from bus_schema.history import ChatMessage, FunctionCall, HistoryToolCall, sanitise_text
from language.words import MESSAGE_TOKENS, estimated_tokens, without_gaps

TASK = "reply"
# A kind of material: another conversation, out of which the task of this one comes.
TALK = "talk"
_TAG = re.compile(r"<(?=\s*/?\s*(?:material|instruction|present)\b)", re.IGNORECASE)
_INSTRUCTION = re.compile(r"^<instruction>\n(.*?)\n</instruction>$", re.DOTALL | re.MULTILINE)
_WRITTEN_CALL = re.compile(r'"name"\s*:\s*"\w+"\s*,\s*"arguments"')
# What else a model calls in one breath is left out.
MOST_AT_ONCE = 16
_LONGEST_ID = 64
_LONGEST_NAME = 64
_LONGEST_ARGUMENTS = 40_000
# Of a message, characters that rules read, its end among them: whoever pastes a text asks before or after it.
_LONGEST_READ, _END_READ = 8000, 2000
# Of calls that rules make, or that small models write; those of clients' tools are `ask_…`.
_OWN_ID = re.compile(r"(?:call|ask)_(?:[0-9]+(?:_[0-9]+)?|written)")
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


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
    before: Sequence[ModelMessage] = ()
    present: Present | None = None

    @cached_property
    def earlier(self) -> tuple[ChatTurn, ...]:
        """Turns before the last message, without instructions."""
        return tuple(
            ChatTurn("assistant" if turn.role == "assistant" else "user", _for_rules(turn.content))
            for turn in self.before
        )


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
    said, since = since_user(messages)
    turns = [message for message in said if message.role in ("user", "assistant") and message.content]
    last = turns[-1].content if turns else ""
    asked = prompt.read([ModelMessage(role="user", content=last)])
    instructions = _INSTRUCTION.findall(asked.instructions)
    is_last = asked.instructions.endswith("</instruction>")
    return Conversation(
        words=_for_rules(asked.instructions),
        instruction=instructions[-1] if instructions and is_last else None,
        memory=asked.materials,
        results=tuple(message for message in since if message.role == "tool"),
        before=turns[:-1],
        present=parse_present(last),
    )


def _for_rules(content: str) -> str:
    """A message without instructions as rules read it: without long gaps, the middle of a long one left out."""
    text = without_gaps(_INSTRUCTION.sub("", content))
    return text if len(text) <= _LONGEST_READ else f"{text[: _LONGEST_READ - _END_READ]}\n{text[-_END_READ:]}"


def since_user(messages: Sequence[ModelMessage]) -> tuple[Sequence[ModelMessage], Sequence[ModelMessage]]:
    """Messages up to the user's last one, and those after it."""
    last = max((place for place, message in enumerate(messages) if message.role == "user"), default=len(messages) - 1)
    return messages[: last + 1], messages[last + 1 :]


def _laid_out(message: ModelMessage) -> ModelMessage:
    if message.role == "system":
        return ModelMessage(role="user", content=f"<instruction>\n{without_tags(message.content)}\n</instruction>")
    content = without_tags(message.content)
    return message if content == message.content else message.model_copy(update={"content": content})


def without_tags(text: str) -> str:
    """A text that cannot pass for a block of the prompt."""
    return _TAG.sub("‹", text)


def model_messages(said: Iterable[ChatMessage]) -> list[ModelMessage]:
    """Messages of a history as a model is shown them."""
    return [
        ModelMessage(
            role=each.role,
            content=each.content or "",
            name=each.name,
            tool_calls=tuple(
                ToolCall(id=call.id, name=call.function.name, arguments=call.function.arguments)
                for call in each.tool_calls or ()
            ),
            tool_call_id=each.tool_call_id,
        )
        for each in said
    ]


def history_calls(calls: Iterable[ToolCall]) -> tuple[HistoryToolCall, ...]:
    """Calls as a history keeps them."""
    return tuple(
        HistoryToolCall(id=call.id, function=FunctionCall(name=call.name, arguments=call.arguments)) for call in calls
    )


def last_complete(said: Sequence[ChatMessage], most: int) -> tuple[ChatMessage, ...]:
    """The last so many messages, beginning with the user; no result of a tool is cut off from its call."""
    end = list(said[-most:]) if most else []
    while end and end[0].role != "user":
        end.pop(0)
    return tuple(end)


def message_groups(said: Sequence[ModelMessage]) -> list[list[ModelMessage]]:
    """Messages grouped: a tool call with its results, every other message alone."""
    grouped: list[list[ModelMessage]] = []
    for message in said:
        if message.role == "tool" and grouped:
            grouped[-1].append(message)
        else:
            grouped.append([message])
    return grouped


def fit_window(said: Sequence[ModelMessage], budget_tokens: int) -> tuple[list[ModelMessage], int]:
    """The end of the talk that fits by estimated tokens, and how many are left; it begins with the user.

    The last message is shown in any case.
    """
    window: list[tuple[list[ModelMessage], int]] = []
    room = budget_tokens
    for block in reversed(message_groups(said)):
        tokens = sum(map(_message_tokens, block))
        if window and tokens > room:
            break
        window.append((block, tokens))
        room -= tokens
    # Some models refuse a conversation that the assistant begins.
    while len(window) > 1 and window[-1][0][0].role not in ("user", "system"):
        room += window.pop()[1]
    return [message for block, _ in reversed(window) for message in block], room


def _message_tokens(message: ModelMessage) -> int:
    """Estimated tokens of a message with its calls."""
    tokens = MESSAGE_TOKENS + estimated_tokens(message.content)
    for call in message.tool_calls:
        tokens += estimated_tokens(call.arguments)
    return tokens


def is_written_call(text: str) -> bool:
    """Whether a text has a call that a small model has written instead of making it."""
    return _WRITTEN_CALL.search(text) is not None


def written_call(text: str) -> ToolCall | None:
    """The call that a text has instead of making it; None where it cannot be read."""
    found = _WRITTEN_CALL.search(text)
    if found is None or (start := text.rfind("{", 0, found.start())) < 0:
        return None
    try:
        call, _ = json.JSONDecoder().raw_decode(text[start:])
    except ValueError:
        return None
    if not {"name", "arguments"} <= call.keys():
        return None
    arguments = call["arguments"]
    given = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(id="call_written", name=str(call["name"]), arguments=given)


def with_unique_ids(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The messages, no two calls with the same id; ours get one of nine letters and digits, as the strictest demand.

    Claude refuses a request with an id twice, Mistral's endpoint any other form; servers' own ids stay as they are.
    """
    used, now = set[str](), dict[str, str]()
    shown = []
    for place, message in enumerate(messages):
        if message.tool_calls:
            now = {
                call.id: _id_at(place, call.id) if call.id in used or _OWN_ID.fullmatch(call.id) else call.id
                for call in message.tool_calls
            }
            used |= now.keys()
            calls = tuple(call.model_copy(update={"id": now[call.id]}) for call in message.tool_calls)
            message = message.model_copy(update={"tool_calls": calls})
        elif message.tool_call_id in now:
            message = message.model_copy(update={"tool_call_id": now[message.tool_call_id]})
        shown.append(message)
    return shown


def _id_at(place: int, call_id: str) -> str:
    return sha256(f"{place} {call_id}".encode()).hexdigest()[:9]


def normalise_calls(calls: Sequence[ToolCall], prefix: str) -> tuple[ToolCall, ...]:
    """The calls, each with an id of its own by which its result finds it, each with a name."""
    known: set[str] = set()
    made = []
    for number, call in enumerate(calls[:MOST_AT_ONCE]):
        call_id = call.id if 0 < len(call.id) <= _LONGEST_ID and call.id not in known else f"{prefix}_{number}"
        known.add(call_id)
        name = _NOT_IN_A_NAME.sub("_", call.name)[:_LONGEST_NAME] or "unnamed"
        made.append(ToolCall(id=call_id, name=name, arguments=sanitise_text(call.arguments)[:_LONGEST_ARGUMENTS]))
    return tuple(made)
