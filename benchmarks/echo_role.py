"""A role whose model answers at once with what it is shown: a step costs what MindBus costs."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

from pydantic import BaseModel

from agents.configuration.prompts import shipped_role
from agents.models import prompt
from agents.models.language_model import DEFAULTS, Chunk, Completion, ModelMessage, ModelParams, TokenUsage, Tool
from mindbus.bus.worker import WorkerContext
from workers.creative import CreativeWorker

ROLE, PRODUCES = "critic", "critique"


class EchoModel:
    """Answers with the text of the first material."""

    name = "echo-1"

    async def complete(
        self,
        messages: Sequence[ModelMessage],
        *,
        tools: Sequence[Tool] = (),
        schema: type[BaseModel] | None = None,
        params: ModelParams = DEFAULTS,
    ) -> Completion:
        text = prompt.read(messages).materials[0].text
        usage = TokenUsage(prompt_tokens=1, completion_tokens=1)
        return Completion(text=text, usage=usage, model_name=self.name, took=timedelta(0))

    async def stream(
        self, messages: Sequence[ModelMessage], *, tools: Sequence[Tool] = (), params: ModelParams = DEFAULTS
    ) -> AsyncIterator[Chunk]:
        yield Chunk(completion=await self.complete(messages, tools=tools, params=params))

    async def aclose(self) -> None:
        """Holds nothing."""


class EchoWorker(CreativeWorker):
    """A shipped role, with all that the runtime of roles does, but for the thinking: one call, no revision."""

    name = ROLE

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context, shipped_role(ROLE).model_copy(update={"max_rounds": 0}), EchoModel())
