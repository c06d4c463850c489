"""A language model behind any endpoint that speaks OpenAI's chat completions."""

import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import openai
import structlog
from openai.types.chat import ChatCompletionMessageFunctionToolCall
from pydantic import BaseModel

from agents.models.failures import CutOff, ModelFailure, ModelRefused, ModelUnavailable
from agents.models.language_model import (
    DEFAULTS,
    Chunk,
    Completion,
    Message,
    ModelParams,
    Tool,
    ToolCall,
)
from agents.models.openai_wire import StreamedAnswer, chat_request, first_choice, response_format, usage_of

log = structlog.get_logger()

RETRIES = 4
_RETRYABLE_STATUSES = frozenset({408, 409, 429})


class OpenAICompatible:
    """The client retries by itself: backoff with jitter, Retry-After, connection errors.

    Prompts, answers and keys never reach a log.
    """

    def __init__(
        self, *, base_url: str, model: str, api_key: str | None, timeout: timedelta, retries: int = RETRIES
    ) -> None:
        self._model = model
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            # A local endpoint wants no key, the client insists on one.
            api_key=api_key or "none",
            timeout=timeout.total_seconds(),
            max_retries=retries,
        )

    @property
    def name(self) -> str:
        return self._model

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        schema: type[BaseModel] | None = None,
        params: ModelParams = DEFAULTS,
    ) -> Completion:
        began = time.monotonic()
        request = chat_request(self._model, messages, tools, params)
        if schema is not None:
            request["response_format"] = response_format(schema)
        with _named_failures():
            response = await self._client.chat.completions.create(**request)
        choice = first_choice(response)
        if choice.message.refusal:
            raise ModelRefused("the model declined to answer")
        calls = choice.message.tool_calls or ()
        return self._finished(
            choice.finish_reason,
            Completion(
                text=choice.message.content or "",
                tool_calls=tuple(
                    ToolCall(id=call.id, name=call.function.name, arguments=call.function.arguments)
                    for call in calls
                    if isinstance(call, ChatCompletionMessageFunctionToolCall)
                ),
                usage=usage_of(response.usage),
                model_name=response.model or self._model,
                took=timedelta(seconds=time.monotonic() - began),
            ),
        )

    async def stream(
        self, messages: Sequence[Message], *, tools: Sequence[Tool] = (), params: ModelParams = DEFAULTS
    ) -> AsyncIterator[Chunk]:
        answer = StreamedAnswer(self._model)
        request = chat_request(self._model, messages, tools, params)
        with _named_failures():
            pieces = await self._client.chat.completions.create(
                **request, stream=True, stream_options={"include_usage": True}
            )
            async with pieces:
                async for piece in pieces:
                    if text := answer.take(piece):
                        yield Chunk(text=text)
        if answer.finish_reason is None:
            raise ModelUnavailable("the stream ended before the answer did")
        yield Chunk(completion=self._finished(answer.finish_reason, answer.completion()))

    async def aclose(self) -> None:
        await self._client.close()

    def _finished(self, reason: str | None, completion: Completion) -> Completion:
        """The completion, unless it is only half of one."""
        log.info(
            "model_answered",
            model=completion.model_name,
            finish_reason=reason,
            prompt_tokens=completion.usage.prompt_tokens,
            completion_tokens=completion.usage.completion_tokens,
            took_ms=round(completion.took.total_seconds() * 1000),
        )
        if reason == "length":
            raise CutOff(f"after {completion.usage.completion_tokens} tokens")
        if reason == "content_filter":
            raise ModelRefused("the endpoint's content filter stopped the answer")
        return completion.model_copy(update={"finish_reason": "tool_calls" if completion.tool_calls else "stop"})


@contextmanager
def _named_failures() -> Iterator[None]:
    """The client's errors by our names, without the request in them."""
    try:
        yield
    except openai.APIStatusError as error:
        raise _refusal(error) from error
    except openai.APITimeoutError as error:
        raise ModelUnavailable("timed out") from error
    except openai.APIConnectionError as error:
        raise ModelUnavailable(f"no connection: {type(error.__cause__).__name__}") from error
    except json.JSONDecodeError as error:
        raise ModelUnavailable("the endpoint sent something that is no JSON") from error
    except openai.APIError as error:
        raise ModelUnavailable(f"the endpoint broke off: {error.message}") from error


def _refusal(error: openai.APIStatusError) -> ModelFailure:
    detail = f"HTTP {error.status_code}: {error.message}"
    if error.status_code not in _RETRYABLE_STATUSES and error.status_code < 500:
        return ModelRefused(detail)
    after = error.response.headers.get("retry-after", "")
    return ModelUnavailable(detail, retry_after=timedelta(seconds=float(after)) if after.isdigit() else None)
