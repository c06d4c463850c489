"""A language model behind any endpoint that speaks OpenAI's chat completions."""

import asyncio
import json
import math
import re
import time
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import openai
from openai.types.chat import ChatCompletion, ChatCompletionMessageFunctionToolCall
from openai.types.chat.chat_completion import Choice
from pydantic import BaseModel

from agents.models.conversation import with_unique_ids
from agents.models.errors import (
    AnswerCutOff,
    AnswerStalled,
    ModelDeclined,
    ModelFailure,
    ModelRefused,
    ModelUnavailable,
    PromptTooLong,
)
from agents.models.language_model import (
    DEFAULTS,
    Chunk,
    Completion,
    ModelMessage,
    ModelParams,
    Tool,
    ToolCall,
)
from agents.models.streamed_answer import StreamedAnswer, usage_of
from bus_schema.client_tools import ANY_TOOL
from mindbus.logs import logger
from retrieval.openai_client import open_client

# An address where nobody listens is noticed sooner than an answer can take.
_CONNECT_S = 3.0
_RETRYABLE_STATUSES = frozenset({408, 409, 429})
_REFUSED = frozenset({400, 422})
# As OpenAI, vLLM, llama.cpp and others say that a prompt has more tokens than the model takes in.
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|context (?:size|length|window)|maximum context|prompt is too long",
    re.IGNORECASE,
)
# Not every endpoint takes these: what each is called otherwise, or None where the call goes without it.
_OTHERWISE = {"max_tokens": "max_completion_tokens", "temperature": None, "seed": None, "stream_options": None}
_NOT_TAKEN = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|extra[_ ]|not (?:permitted|allowed)", re.IGNORECASE
)
# An endpoint that knows no limit would go on for ever; no tokenizer makes words so long on average.
_LONGEST_TOKEN_CHARS = 12


@dataclass(frozen=True)
class StreamLimits:
    """Seconds until the first piece of an answer, and from one piece to the next."""

    first_s: float
    idle_s: float


def first_choice(response: object) -> Choice:
    # The client builds whatever it is sent: a proxy's page comes as text, a missing field as a missing attribute.
    if isinstance(response, ChatCompletion) and response.choices and "message" in response.choices[0].model_fields_set:
        return response.choices[0]
    raise ModelUnavailable("the endpoint sent something that is no answer")


def chat_request(
    model: str, messages: Sequence[ModelMessage], tools: Sequence[Tool], params: ModelParams
) -> dict[str, Any]:
    request: dict[str, Any] = {"model": model, "messages": [_wire(message) for message in with_unique_ids(messages)]}
    request.update(params.model_dump(exclude_none=True, exclude={"tool_choice"}))
    if tools:
        request["tools"] = [{"type": "function", "function": tool.model_dump()} for tool in tools]
        if name := params.tool_choice:
            request["tool_choice"] = name if name == ANY_TOOL else {"type": "function", "function": {"name": name}}
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


class OpenAICompatible:
    """The client retries by itself: backoff with jitter, Retry-After, connection errors.

    Prompts, answers and keys never reach a log. With `limits` every answer is streamed, and no other limit of time
    holds: an answer may take as long as it goes on.
    """

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        api_key: str | None,
        timeout: timedelta,
        retries: int,
        limits: StreamLimits | None = None,
    ) -> None:
        self._model, self._limits = model, limits
        timeout_s = timeout.total_seconds() if limits is None else max(limits.first_s, limits.idle_s)
        connecting = openai.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s))
        self._client = open_client(base_url, api_key, connecting, retries)
        # Parameters that the endpoint has refused.
        self._not_taken: set[str] = set()

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
        if self._limits is not None:
            async for chunk in self._streamed(request):
                if chunk.completion:
                    return chunk.completion
        with _named_failures():
            raw = await self._send(request)
            response = raw.parse()
        choice = first_choice(response)
        if choice.message.refusal:
            raise ModelDeclined("the model declined to answer")
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
                retries=raw.retries_taken,
            ),
        )

    async def stream(
        self, messages: Sequence[ModelMessage], *, tools: Sequence[Tool] = (), params: ModelParams = DEFAULTS
    ) -> AsyncIterator[Chunk]:
        async for chunk in self._streamed(chat_request(self._model, messages, tools, params)):
            yield chunk

    async def _streamed(self, request: dict[str, Any]) -> AsyncIterator[Chunk]:
        answer = StreamedAnswer(self._model, request["messages"])
        most_characters = _LONGEST_TOKEN_CHARS * request["max_tokens"] if "max_tokens" in request else math.inf
        first_s, idle_s = (self._limits.first_s, self._limits.idle_s) if self._limits else (None, None)
        with _named_failures():
            async with _within(first_s, "no word of an answer"):
                raw = await self._send(request | {"stream": True, "stream_options": {"include_usage": True}})
                pieces = raw.parse()
            async with pieces:
                limit_s, coming = first_s, aiter(pieces)
                while True:
                    async with _within(limit_s, "nothing more"):
                        piece = await anext(coming, None)
                    if piece is None:
                        break
                    if text := answer.take(piece):
                        yield Chunk(text=text)
                    limit_s = idle_s if answer.has_begun else first_s
                    if answer.ends_early(most_characters, is_object="response_format" in request):
                        break
        if answer.finish_reason is None:
            raise ModelUnavailable("the stream ended before the answer did")
        if answer.declined:
            raise ModelDeclined("the model declined to answer")
        yield Chunk(completion=self._finished(answer.finish_reason, answer.completion(raw.retries_taken)))

    async def _send(self, request: dict[str, Any]) -> Any:
        """Send a request; a parameter that the endpoint does not take is left out, or renamed, from then on."""
        refusals = set(self._not_taken)
        while True:
            left = {_OTHERWISE[name] or "" if name in refusals else name: name for name in request}
            taken = {name: request[own] for name, own in left.items() if name}
            try:
                answer = await self._client.chat.completions.with_raw_response.create(**taken)
            except openai.APIStatusError as error:
                refused = _parameter_not_taken(error, taken)
                if refused is None:
                    raise
                refusals.add(refused)
            else:
                if refusals - self._not_taken:
                    logger().info("the endpoint does not take", model=self._model, parameters=sorted(refusals))
                # Now it is known that it was they.
                self._not_taken |= refusals
                return answer

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
            used = completion.usage
            raise AnswerCutOff(
                f"after {used.completion_tokens} tokens", completion.text, used.prompt_tokens, used.completion_tokens
            )
        if reason == "content_filter":
            raise ModelDeclined("the endpoint's content filter stopped the answer")
        return completion.model_copy(update={"finish_reason": "tool_calls"}) if completion.tool_calls else completion


@asynccontextmanager
async def _within(limit_s: float | None, missing: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(limit_s):
            yield
    except TimeoutError as error:
        raise AnswerStalled(f"{missing} within {limit_s:g} s") from error


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


def _parameter_not_taken(error: openai.APIStatusError, sent: Collection[str]) -> str | None:
    """The parameter for which an endpoint has refused a request, if it is one that there is another way for."""
    said = f"{error.code} {error.type} {error.param} {error.message}"
    if error.status_code not in _REFUSED or _TOO_LONG.search(said) or not _NOT_TAKEN.search(said):
        return None
    named = (name for name in _OTHERWISE if name in sent)
    return next((name for name in named if error.param == name or re.search(rf"\b{name}\b", said)), None)


def _refusal(error: openai.APIStatusError) -> ModelFailure:
    detail = f"HTTP {error.status_code}: {error.message}"
    if error.status_code not in _RETRYABLE_STATUSES and error.status_code < 500:
        is_too_long = _TOO_LONG.search(f"{error.code} {error.type} {error.message}") is not None
        return PromptTooLong(detail) if is_too_long else ModelRefused(detail)
    after = error.response.headers.get("retry-after", "")
    return ModelUnavailable(detail, delay=timedelta(seconds=float(after)) if after.isdigit() else None)
