"""A language model behind any endpoint that speaks OpenAI's chat completions."""

import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import openai
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessageFunctionToolCall
from openai.types.chat.chat_completion import Choice
from openai.types.chat.chat_completion_chunk import Choice as StreamedChoice
from pydantic import BaseModel

from agents.models.errors import AnswerCutOff, ModelFailure, ModelRefused, ModelUnavailable
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
from mindbus.logs import logger

# An address where nobody listens is noticed sooner than an answer can take.
_CONNECT_S = 3.0
_RETRYABLE_STATUSES = frozenset({408, 409, 429})


def first_choice(response: object) -> Choice:
    # The client builds whatever it is sent: a proxy's page comes as text, a missing field as a missing attribute.
    if isinstance(response, ChatCompletion) and response.choices and "message" in response.choices[0].model_fields_set:
        return response.choices[0]
    raise ModelUnavailable("the endpoint sent something that is no answer")


def _readable(piece: ChatCompletionChunk) -> Iterator[StreamedChoice]:
    for choice in (piece.choices or ())[:1]:
        if "delta" in choice.model_fields_set:
            yield choice


class StreamedAnswer:
    """A streamed answer being put together; tool calls come in fragments that only their index holds together."""

    def __init__(self, model: str) -> None:
        self.finish_reason: str | None = None
        self._began = time.monotonic()
        self._model = model
        self._texts: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._usage = TokenUsage()

    def take(self, piece: object) -> str:
        if not isinstance(piece, ChatCompletionChunk):
            return ""
        self._model = piece.model or self._model
        if piece.usage:
            self._usage = usage_of(piece.usage)
        text = ""
        for choice in _readable(piece):
            self.finish_reason = choice.finish_reason or self.finish_reason
            text = choice.delta.content or ""
            self._texts.append(text)
            for fragment in choice.delta.tool_calls or ():
                call = self._calls.setdefault(fragment.index, {"id": "", "name": "", "arguments": ""})
                call["id"] = fragment.id or call["id"]
                if fragment.function:
                    call["name"] += fragment.function.name or ""
                    call["arguments"] += fragment.function.arguments or ""
        return text

    def completion(self) -> Completion:
        return Completion(
            text="".join(self._texts),
            tool_calls=tuple(ToolCall(**self._calls[index]) for index in sorted(self._calls)),
            usage=self._usage,
            model_name=self._model,
            took=timedelta(seconds=time.monotonic() - self._began),
        )


def chat_request(
    model: str, messages: Sequence[ModelMessage], tools: Sequence[Tool], params: ModelParams
) -> dict[str, Any]:
    request: dict[str, Any] = {"model": model, "messages": [_wire(message) for message in messages]}
    request.update(params.model_dump(exclude_none=True))
    if tools:
        request["tools"] = [{"type": "function", "function": tool.model_dump()} for tool in tools]
    return request


def _wire(message: ModelMessage) -> dict[str, Any]:
    wire: dict[str, Any] = message.model_dump(exclude_none=True, include={"role", "content", "name", "tool_call_id"})
    if message.tool_calls:
        wire["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    return wire


def response_format(schema: type[BaseModel]) -> dict[str, Any]:
    strict = openai.pydantic_function_tool(schema)["function"]["parameters"]
    return {"type": "json_schema", "json_schema": {"name": schema.__name__, "strict": True, "schema": strict}}


def usage_of(usage: CompletionUsage | None) -> TokenUsage:
    if usage is None:
        return TokenUsage()
    return TokenUsage(prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)


class OpenAICompatible:
    """The client retries by itself: backoff with jitter, Retry-After, connection errors.

    Prompts, answers and keys never reach a log.
    """

    def __init__(self, *, base_url: str, model: str, api_key: str | None, timeout: timedelta, retries: int) -> None:
        self._model = model
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            # A local endpoint wants no key, the client insists on one.
            api_key=api_key or "none",
            timeout=openai.Timeout(timeout.total_seconds(), connect=min(_CONNECT_S, timeout.total_seconds())),
            max_retries=retries,
        )

    @property
    def name(self) -> str:
        return self._model

    async def complete(
        self,
        messages: Sequence[ModelMessage],
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
        self, messages: Sequence[ModelMessage], *, tools: Sequence[Tool] = (), params: ModelParams = DEFAULTS
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
        logger().info(
            "model_answered",
            model=completion.model_name,
            finish_reason=reason,
            prompt_tokens=completion.usage.prompt_tokens,
            completion_tokens=completion.usage.completion_tokens,
            took_ms=round(completion.took.total_seconds() * 1000),
        )
        if reason == "length":
            raise AnswerCutOff(f"after {completion.usage.completion_tokens} tokens")
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
    return ModelUnavailable(detail, delay=timedelta(seconds=float(after)) if after.isdigit() else None)
