"""A language model that keeps count of what it is asked, and does as it is told."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta

from pydantic import BaseModel

from agents.models import prompt
from agents.models.language_model import (
    DEFAULTS,
    Chunk,
    Completion,
    ModelMessage,
    ModelParams,
    TokenUsage,
    Tool,
)
from agents.models.prompt import Step


class Killed(BaseException):
    """The process is gone in the middle of a model call."""


class CountingModel:
    """Finds fault with its first `rounds` attempts; `before` is called ahead of every answer, by its number."""

    def __init__(self, rounds: int = 1, before: Callable[[int], None] = lambda number: None) -> None:
        self.name = "counting-1"
        self.asked: list[Step] = []
        self.prompts: list[Sequence[ModelMessage]] = []
        self.params: list[ModelParams] = []
        self._rounds, self._before = rounds, before

    async def complete(
        self,
        messages: Sequence[ModelMessage],
        *,
        tools: Sequence[Tool] = (),
        schema: type[BaseModel] | None = None,
        params: ModelParams = DEFAULTS,
    ) -> Completion:
        self._before(len(self.asked) + 1)
        self.asked.append(prompt.read(messages).step)
        self.prompts.append(messages)
        self.params.append(params)
        text = self._verdict() if schema else f"Text {len(self.asked)}: {self.asked[-1]}"
        usage = TokenUsage(prompt_tokens=10, completion_tokens=2)
        return Completion(text=text, usage=usage, model_name=self.name, took=timedelta(seconds=1))

    async def stream(
        self, messages: Sequence[ModelMessage], *, tools: Sequence[Tool] = (), params: ModelParams = DEFAULTS
    ) -> AsyncIterator[Chunk]:
        yield Chunk(completion=await self.complete(messages, tools=tools, params=params))

    async def aclose(self) -> None:
        """Nothing to close."""

    def _verdict(self) -> str:
        faults = self.asked.count("self-critique") <= self._rounds
        return json.dumps({"satisfied": not faults, "remarks": ["Короче!"] if faults else []})
