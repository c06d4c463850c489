"""A language model that says what a test has written for it, and keeps what it was asked."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

from pydantic import BaseModel

from agents.models.errors import ModelFailure
from agents.models.language_model import DEFAULTS, Chunk, Completion, ModelMessage, ModelParams, Tool

Answer = BaseModel | str | ModelFailure


class ScriptedModel:
    """Gives its answers one after the other, the last one again and again."""

    name = "scripted-1"

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.asked: list[Sequence[ModelMessage]] = []
        self.offered: list[set[str]] = []

    async def complete(
        self,
        messages: Sequence[ModelMessage],
        *,
        tools: Sequence[Tool] = (),
        schema: type[BaseModel] | None = None,
        params: ModelParams = DEFAULTS,
    ) -> Completion:
        self.asked.append(messages)
        self.offered.append({tool.name for tool in tools})
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, ModelFailure):
            raise answer
        if isinstance(answer, Completion):
            return answer
        text = answer if isinstance(answer, str) else answer.model_dump_json()
        return Completion(text=text, model_name=self.name, took=timedelta())

    async def stream(
        self, messages: Sequence[ModelMessage], *, tools: Sequence[Tool] = (), params: ModelParams = DEFAULTS
    ) -> AsyncIterator[Chunk]:
        completion = await self.complete(messages, tools=tools, params=params)
        for word in completion.text.split(" "):
            yield Chunk(text=f"{word} ")
        yield Chunk(completion=completion)

    async def aclose(self) -> None:
        """Nothing to close."""
