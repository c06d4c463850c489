"""Our values in the shape of OpenAI's chat completions, both ways."""

import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import openai
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion import Choice
from openai.types.chat.chat_completion_chunk import Choice as StreamedChoice
from pydantic import BaseModel

from agents.models.failures import ModelUnavailable
from agents.models.language_model import Completion, Message, ModelParams, TokenUsage, Tool, ToolCall


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


def chat_request(model: str, messages: Sequence[Message], tools: Sequence[Tool], params: ModelParams) -> dict[str, Any]:
    request: dict[str, Any] = {"model": model, "messages": [_wire(message) for message in messages]}
    request.update(params.model_dump(exclude_none=True))
    if tools:
        request["tools"] = [{"type": "function", "function": tool.model_dump()} for tool in tools]
    return request


def _wire(message: Message) -> dict[str, Any]:
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
