"""A role whose model knows the cards of this folder's tests, and counts its calls in a file."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel

from agents.configuration.prompts import shipped_role
from agents.models import prompt
from agents.models.language_model import DEFAULTS, Chunk, Completion, ModelMessage, ModelParams, TokenUsage, Tool
from agents.models.prompt import Verdict
from mindbus.bus.worker import WorkerContext
from workers.creative import CreativeWorker

CALLS_FILE = "MINDBUS_TEST_CALLS"
ITEMS = 20
_TAKES_S = 0.03


def _count(digest: str) -> None:
    with Path(os.environ[CALLS_FILE]).open("a") as calls:
        calls.write(f"{digest}\n")


class CountingModel:
    """Makes lists where it is to, is content with what is polished, and polishes what has been criticised."""

    name = "counting-1"

    async def complete(
        self,
        messages: Sequence[ModelMessage],
        *,
        tools: Sequence[Tool] = (),
        schema: type[BaseModel] | None = None,
        params: ModelParams = DEFAULTS,
    ) -> Completion:
        asked = "\n".join(message.content for message in messages)
        digest = hashlib.sha256(asked.encode()).hexdigest()[:16]
        await asyncio.to_thread(_count, digest)
        await asyncio.sleep(_TAKES_S)
        is_polished = any("(polished)" in material.text for material in prompt.read(messages).materials)
        if schema is Verdict:
            text = Verdict(satisfied=is_polished, remarks=[] if is_polished else ["polish it"]).model_dump_json()
        elif "Markdown list" in asked:
            text = "\n".join(f"- matter {number}" for number in range(1, ITEMS + 1))
        else:
            # The draft that is made anew is shown what was said of it.
            is_again = "Write it." in asked and ": judge, a " in asked
            text = f"A text {digest} (polished)." if is_polished or is_again else f"A text {digest} (rough)."
        usage = TokenUsage(prompt_tokens=1, completion_tokens=1)
        return Completion(text=text, usage=usage, model_name=self.name, took=timedelta(0))

    async def stream(
        self, messages: Sequence[ModelMessage], *, tools: Sequence[Tool] = (), params: ModelParams = DEFAULTS
    ) -> AsyncIterator[Chunk]:
        yield Chunk(completion=await self.complete(messages, tools=tools, params=params))

    async def aclose(self) -> None:
        """Holds nothing."""


class ConstructRole(CreativeWorker):
    """The critic without self-critique, over that model."""

    name = "critic"

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context, shipped_role("critic").model_copy(update={"max_rounds": 0}), CountingModel())
