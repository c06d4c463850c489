"""A language model without a language model: it organises the material it is given, in that material's own words."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

from pydantic import BaseModel

from agents.models import conversation, prompt
from agents.models.errors import NeedsLanguageModel
from agents.models.extractive.desk import TASKS, Desk
from agents.models.extractive.phrases import phrases_in
from agents.models.extractive.reading import read_source
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
from agents.models.prompt import Verdict
from agents.models.replying.delegating import next_delegation
from agents.models.replying.reply import knows_answer, reply_to
from agents.models.replying.tool_use import next_tool
from language.markdown import quoted
from language.words import language_of, words

NAME = "offline-extractive-1"
# A few words at a time, as one reads.
_PIECE = re.compile(r"(?:\S+\s*){1,3}|\s+")
_DIGEST_QUOTES = 3


class OfflineModel:
    """Deterministic: the same prompt gives the same answer.

    It reads prompts laid out as `agents.models.prompt` says. In conversation it calls the tools that it is told to use
    in so many words; sampling parameters mean nothing to it; a token is a word.
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
        # A long brief takes a second of computing, which must not stop the loop.
        call = await asyncio.to_thread(next_call, messages, tools) if tools and schema is None else None
        text = "" if call else await asyncio.to_thread(answer, messages, schema)
        return Completion(
            text=text,
            tool_calls=(call,) if call else (),
            finish_reason="tool_calls" if call else "stop",
            usage=TokenUsage(
                prompt_tokens=sum(len(words(message.content)) for message in messages),
                completion_tokens=len(words(text)),
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
        """Nothing to close."""


def next_call(messages: Sequence[ModelMessage], tools: Sequence[Tool]) -> ToolCall | None:
    """The tool that is to be used before there is anything to answer."""
    if prompt.read(messages).task != conversation.TASK:
        return None
    asked = conversation.parse_conversation(messages)
    _, since = conversation.since_user(messages)
    call = next_delegation(asked.words, since, tools)
    return call or next_tool(asked.words, since, tools, is_known=knows_answer(asked))


def answer(messages: Sequence[ModelMessage], schema: type[BaseModel] | None = None) -> str:
    asked = prompt.read(messages)
    if schema is Verdict or (schema is None and asked.step == "self-critique"):
        remarks = Desk(asked).remarks()
        return Verdict(satisfied=not remarks, remarks=remarks).model_dump_json()
    if asked.task == conversation.TASK and schema is None:
        return reply_to(conversation.parse_conversation(messages))
    if schema is not None:
        raise NeedsLanguageModel(f"the offline model cannot fill {schema.__name__}")
    if asked.task not in TASKS:
        return _digest(asked)
    return Desk(asked).revise() if asked.step == "revise" else Desk(asked).write()


def _digest(asked: prompt.Prompt) -> str:
    """An honest answer to a question that only a language model could understand."""
    given = "\n\n".join([asked.instructions, *(piece.text for piece in asked.materials)])
    phrases = phrases_in(language_of(given))
    passages = sorted(read_source([given]).passages, key=lambda passage: (-passage.weight, passage.place))
    best = sorted(passages[:_DIGEST_QUOTES], key=lambda passage: passage.place)
    if not best:
        return phrases.nothing_given
    return "\n\n".join([phrases.only_quotes, *(quoted(passage.text) for passage in best)])
