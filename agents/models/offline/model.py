"""The language model that needs none: it organises the material that it is given, in that material's own words."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

from pydantic import BaseModel

from agents.models import conversation, prompt
from agents.models.errors import NeedsLanguageModel
from agents.models.explicit_calls import next_task_call, next_tool, planned_delegations
from agents.models.language_model import (
    DEFAULTS,
    Chunk,
    Completion,
    ModelMessage,
    ModelParams,
    TokenUsage,
    Tool,
    ToolCall,
)
from agents.models.offline.phrases import phrase
from agents.models.offline.replies import knows_answer, reply_to
from agents.models.offline.source import heaviest, read_source
from agents.models.offline.writer import TASKS, Writer
from agents.models.prompt import Verdict
from language.markdown import quoted
from language.words import language_of, word_count

NAME = "offline-extractive-1"
# Streamed a few words at a time.
_PIECE = re.compile(r"(?:\S+\s*){1,3}|\s+")
_DIGEST_QUOTES = 3
_SHORT_CHARS = 8000


class OfflineModel:
    """Deterministic: the same prompt gets the same answer.

    It reads prompts laid out as `agents.models.prompt` says. In conversation it calls the tools that it is told to use
    in so many words; sampling parameters are ignored; a token is a word.
    """

    @property
    def name(self) -> str:
        return NAME

    async def complete(
        self,
        messages: Sequence[ModelMessage],
        *,
        tools: Sequence[Tool] = (),
        schema: type[BaseModel] | None = None,
        params: ModelParams = DEFAULTS,
    ) -> Completion:
        began = time.monotonic()
        # A brief takes a second, a short talk a millisecond.
        is_short = sum(len(message.content) for message in messages) <= _SHORT_CHARS
        asked = (messages, tools, schema)
        turn = next_turn(*asked) if is_short else await asyncio.to_thread(next_turn, *asked)
        text, calls = (turn, ()) if isinstance(turn, str) else ("", (turn,))
        return Completion(
            text=text,
            tool_calls=calls,
            finish_reason="tool_calls" if calls else "stop",
            usage=TokenUsage(
                prompt_tokens=sum(word_count(message.content) for message in messages),
                completion_tokens=word_count(text),
            ),
            model_name=NAME,
            took=timedelta(seconds=time.monotonic() - began),
        )

    async def stream(
        self, messages: Sequence[ModelMessage], *, tools: Sequence[Tool] = (), params: ModelParams = DEFAULTS
    ) -> AsyncIterator[Chunk]:
        completion = await self.complete(messages, tools=tools, params=params)
        for piece in _PIECE.findall(completion.text):
            yield Chunk(text=piece)
        yield Chunk(completion=completion)

    async def aclose(self) -> None:
        """Holds nothing."""


def next_turn(
    messages: Sequence[ModelMessage], tools: Sequence[Tool] = (), schema: type[BaseModel] | None = None
) -> ToolCall | str:
    """The text of the answer; before there is anything to answer, the call that a conversation asks for.

    Raises NeedsLanguageModel for a schema other than Verdict.
    """
    request = prompt.read(messages)
    if schema is not None or request.task != conversation.TASK:
        return _written(request, schema)
    asked = conversation.parse_conversation(messages)
    call = _next_call(asked, conversation.since_user(messages)[1], tools) if tools else None
    return call or reply_to(asked)


def _next_call(
    asked: conversation.Conversation, since: Sequence[ModelMessage], tools: Sequence[Tool]
) -> ToolCall | None:
    called = sum(len(message.tool_calls) for message in since)
    delegation = next(iter(planned_delegations(asked.words, tools)[called:]), None)
    task_call = next_task_call(asked.words, asked.present, since, tools)
    return delegation or task_call or next_tool(asked.words, since, tools, is_known=lambda: knows_answer(asked))


def _written(request: prompt.Prompt, schema: type[BaseModel] | None) -> str:
    if schema is Verdict or (schema is None and request.step == "self-critique"):
        remarks = Writer(request).remarks()
        return Verdict(satisfied=not remarks, remarks=remarks).model_dump_json()
    if schema is not None:
        raise NeedsLanguageModel(f"the offline model cannot fill {schema.__name__}")
    if request.task not in TASKS:
        return _digest(request)
    return Writer(request).revise() if request.step == "revise" else Writer(request).write()


def _digest(request: prompt.Prompt) -> str:
    """The weightiest sentences of a prompt without a known task, under a line that says so."""
    given = "\n\n".join([request.instructions, *(piece.text for piece in request.materials)])
    passages = heaviest(read_source([given]).passages)
    best = sorted(passages[:_DIGEST_QUOTES], key=lambda passage: passage.place)
    if not best:
        return phrase(language_of(given), "nothing_given")
    return "\n\n".join([phrase(language_of(given), "only_quotes"), *(quoted(passage.text) for passage in best)])
