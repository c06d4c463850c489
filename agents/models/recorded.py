"""A language model whose calls are reported: prompt, tools, answer or failure, tokens, seconds, retries."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Protocol

from pydantic import BaseModel

from agents.models.errors import AnswerMisfit, AnswerStopped, ModelFailure
from agents.models.language_model import (
    DEFAULTS,
    Chunk,
    Completion,
    LanguageModel,
    ModelMessage,
    ModelParams,
    TokenUsage,
    Tool,
)
from language.words import estimated_tokens

NO_TOKENS = TokenUsage()


@dataclass(frozen=True)
class FinishedCall:
    """A call that is over; without a completion it has failed, `text` is what came by then."""

    model_name: str
    prompt: Sequence[ModelMessage]
    tools: Sequence[Tool]
    schema: type[BaseModel] | None
    took_s: float
    completion: Completion | None = None
    failure: str = ""
    text: str = ""
    usage: TokenUsage = NO_TOKENS
    is_stopped: bool = False


class CallRecorder(Protocol):
    """Counts and keeps the calls of one caller."""

    async def admit(self) -> None:
        """Return if a call may be made now. Raises TokensSpent."""

    async def record(self, done: FinishedCall) -> None:
        """Take in a call that is over."""


_subject: ContextVar[str | None] = ContextVar("what the calls of the work at hand are for", default=None)


@contextmanager
def calls_for(subject: str) -> Iterator[None]:
    """Say what the calls in a block are for, such as the id of the message that they answer."""
    before = _subject.set(subject)
    try:
        yield
    finally:
        _subject.reset(before)


def subject_of_calls() -> str | None:
    return _subject.get()


class RecordedModel:
    """Has every call of a model admitted before it is made, and recorded once it is over."""

    def __init__(self, model: LanguageModel, recorder: CallRecorder) -> None:
        self._model, self._recorder = model, recorder
        self._recording: set[asyncio.Task[None]] = set()

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
        await self._recorder.admit()
        began = time.monotonic()
        try:
            completion = await self._model.complete(messages, tools=tools, schema=schema, params=params)
        except ModelFailure as failure:
            await self._recorder.record(self._failed(messages, tools, schema, began, failure))
            raise
        except asyncio.CancelledError:
            self._record_later(self._stopped(messages, tools, schema, began))
            raise
        await self._recorder.record(self._done(messages, tools, schema, began, completion))
        return completion

    async def stream(
        self, messages: Sequence[ModelMessage], *, tools: Sequence[Tool] = (), params: ModelParams = DEFAULTS
    ) -> AsyncIterator[Chunk]:
        await self._recorder.admit()
        began, text, is_recorded = time.monotonic(), "", False
        try:
            async for chunk in self._model.stream(messages, tools=tools, params=params):
                text += chunk.text
                if chunk.completion is not None:
                    is_recorded = True
                    await self._recorder.record(self._done(messages, tools, None, began, chunk.completion))
                yield chunk
        except ModelFailure as failure:
            await self._recorder.record(self._failed(messages, tools, None, began, failure, text))
            raise
        except (asyncio.CancelledError, GeneratorExit):
            if not is_recorded:
                self._record_later(self._stopped(messages, tools, None, began, text))
            raise

    async def aclose(self) -> None:
        await asyncio.gather(*self._recording, return_exceptions=True)
        await self._model.aclose()

    def _record_later(self, done: FinishedCall) -> None:
        """Record a call without keeping whoever has stopped it."""
        task = asyncio.create_task(self._recorder.record(done))
        self._recording.add(task)
        task.add_done_callback(self._recording.discard)

    def _stopped(
        self,
        prompt: Sequence[ModelMessage],
        tools: Sequence[Tool],
        schema: type[BaseModel] | None,
        began: float,
        text: str = "",
    ) -> FinishedCall:
        """A call that nobody listens to any more: its cost, which the endpoint tells at the end, is an estimate."""
        call = self._failed(prompt, tools, schema, began, AnswerStopped(), text)
        return replace(call, usage=_estimated(prompt, text), is_stopped=True)

    def _done(
        self,
        prompt: Sequence[ModelMessage],
        tools: Sequence[Tool],
        schema: type[BaseModel] | None,
        began: float,
        completion: Completion,
    ) -> FinishedCall:
        took_s = time.monotonic() - began
        return FinishedCall(
            self.name, prompt, tools, schema, took_s, completion, text=completion.text, usage=completion.usage
        )

    def _failed(
        self,
        prompt: Sequence[ModelMessage],
        tools: Sequence[Tool],
        schema: type[BaseModel] | None,
        began: float,
        failure: ModelFailure,
        text: str = "",
    ) -> FinishedCall:
        said, usage = text, NO_TOKENS
        if isinstance(failure, AnswerMisfit):
            said = failure.text
            usage = TokenUsage(prompt_tokens=failure.prompt_tokens, completion_tokens=failure.completion_tokens)
        took_s = time.monotonic() - began
        return FinishedCall(self.name, prompt, tools, schema, took_s, None, str(failure), said, usage)


def _estimated(prompt: Sequence[ModelMessage], text: str) -> TokenUsage:
    """The cost of a call whose end nobody has heard."""
    asked = sum(estimated_tokens(message.content) for message in prompt)
    return TokenUsage(prompt_tokens=asked, completion_tokens=estimated_tokens(text))
