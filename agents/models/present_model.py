"""A language model that is told the present with every prompt."""

from collections.abc import AsyncIterator, Sequence

from pydantic import BaseModel

from agents.models.language_model import (
    DEFAULTS,
    Chunk,
    Completion,
    LanguageModel,
    ModelMessage,
    ModelParams,
    Tool,
)
from agents.present import Present, with_present
from language.words import language_of


class PresentModel:
    """Appends the present to the system message of each prompt; closing it leaves the model itself open."""

    def __init__(self, model: LanguageModel, present: Present) -> None:
        self._model, self._present = model, present

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(
        self,
        messages: Sequence[ModelMessage],
        *,
        tools: Sequence[Tool] = (),
        schema: type[BaseModel] | None = None,
        params: ModelParams = DEFAULTS,
    ) -> Completion:
        return await self._model.complete(self._told(messages), tools=tools, schema=schema, params=params)

    async def stream(
        self, messages: Sequence[ModelMessage], *, tools: Sequence[Tool] = (), params: ModelParams = DEFAULTS
    ) -> AsyncIterator[Chunk]:
        async for chunk in self._model.stream(self._told(messages), tools=tools, params=params):
            yield chunk

    async def aclose(self) -> None:
        """Leave the model open: it belongs to whoever opened it."""

    def _told(self, messages: Sequence[ModelMessage]) -> Sequence[ModelMessage]:
        if not messages or messages[0].role != "system":
            return messages
        language = self._present.language or language_of(messages[-1].content)
        told = with_present(messages[0].content, self._present, language)
        return (messages[0].model_copy(update={"content": told}), *messages[1:])
