"""What a piece of work cost in model calls."""

from collections.abc import AsyncIterator, Sequence

from pydantic import BaseModel

from agents.models.language_model import (
    DEFAULTS,
    Chunk,
    Completion,
    LanguageModel,
    Message,
    ModelParams,
    TokenUsage,
    Tool,
)


class Metered:
    """A language model that adds up what its answers cost."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.calls = 0
        self.usage = TokenUsage()

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        schema: type[BaseModel] | None = None,
        params: ModelParams = DEFAULTS,
    ) -> Completion:
        return self._count(await self._model.complete(messages, tools=tools, schema=schema, params=params))

    async def stream(
        self, messages: Sequence[Message], *, tools: Sequence[Tool] = (), params: ModelParams = DEFAULTS
    ) -> AsyncIterator[Chunk]:
        async for chunk in self._model.stream(messages, tools=tools, params=params):
            if chunk.completion:
                self._count(chunk.completion)
            yield chunk

    async def aclose(self) -> None:
        await self._model.aclose()

    def _count(self, completion: Completion) -> Completion:
        self.calls += 1
        self.usage += completion.usage
        return completion
