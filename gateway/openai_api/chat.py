"""Chat completions."""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from functools import partial
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.sse import format_sse_event
from pydantic import BaseModel, ConfigDict, Field

from gateway.api.dialogues import unless_gone
from gateway.backend import BackendDependency, IdempotencyKey
from gateway.event_streams import StreamsDependency
from gateway.openai_api.answers import Answer, Pieces, Question, answer, cancel, whole_answer
from gateway.openai_api.client_tools import client_tools
from gateway.openai_api.conversation import ClientMessage
from gateway.openai_api.errors import error_of
from gateway.openai_api.models import DIALOGUE
from gateway.openai_api.questions import question_of
from gateway.problems import EXPECTED, Problem

router = APIRouter()


class StreamOptions(BaseModel):
    """Whether the last chunk reports the usage."""

    model_config = ConfigDict(extra="allow")
    include_usage: bool = False


class ChatRequest(BaseModel):
    """A conversation to continue; model settings, such as the temperature, are up to the operator."""

    model_config = ConfigDict(extra="allow")
    model: str = DIALOGUE
    messages: list[ClientMessage] = Field(min_length=1, max_length=2000)
    stream: bool = False
    stream_options: StreamOptions | None = None
    user: str | None = None
    n: Literal[1, None] = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None


class Usage(BaseModel):
    """Tokens of the model."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(BaseModel):
    """An answer as a whole."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: Usage


@router.post("/chat/completions", response_model=ChatCompletion)
async def complete(
    body: ChatRequest,
    request: Request,
    backend: BackendDependency,
    streams: StreamsDependency,
    key: IdempotencyKey = None,
) -> Response | ChatCompletion:
    """Answer the user's last words. The dialogue has its own memory of the conversation before.

    If the model calls the client's `tools`, send the conversation again with their results.
    """
    tools = client_tools(body.tools, body.tool_choice, body.messages)
    question = question_of(backend, body.model, body.messages, body.user, key, tools)
    stop = partial(cancel, backend, question)
    completion = _Completion(question, int(backend.clock().timestamp()))
    if not body.stream:
        return completion.whole(await unless_gone(request, whole_answer(backend, question), stop))
    streams.require_room()
    pieces = answer(backend, question)
    # An error before the first piece sets the status.
    first = await unless_gone(request, anext(pieces), stop)
    has_usage = body.stream_options is not None and body.stream_options.include_usage
    return streams.respond(completion.frames(first, pieces, stop, has_usage=has_usage), backend.is_current)


class _Completion:
    """Writes one completion, whole or in chunks."""

    def __init__(self, question: Question, created: int) -> None:
        self._id = f"chatcmpl-{question.id.removeprefix('msg_')}"
        self._model, self._created = question.model, created

    def whole(self, done: Answer) -> ChatCompletion:
        """As one object."""
        message: dict[str, Any] = {"role": "assistant", "content": done.text, "refusal": None}
        if done.calls:
            message |= {"content": done.text or None, "tool_calls": _calls(done)}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(done)}
        return ChatCompletion(
            id=self._id, created=self._created, model=self._model, choices=[choice], usage=_usage(done)
        )

    async def frames(self, first: str | Answer, rest: Pieces, stop: Any, *, has_usage: bool) -> AsyncGenerator[bytes]:
        """As server-sent events; where the reader hangs up before the end, the rest is cancelled."""
        is_over = False
        async with aclosing(rest):
            try:
                yield self._chunk({"role": "assistant", "content": ""})
                done = first if isinstance(first, Answer) else None
                if isinstance(first, str):
                    yield self._chunk({"content": first})
                async for piece in rest:
                    if isinstance(piece, str):
                        yield self._chunk({"content": piece})
                    else:
                        done = piece
                is_over = True
                assert done is not None
                for frame in self._closing(done, has_usage=has_usage):
                    yield frame
            except EXPECTED as error:
                is_over = True
                yield _data(error_of(Problem.of(error)))
            finally:
                if not is_over:
                    stop()

    def _closing(self, done: Answer, *, has_usage: bool) -> Iterator[bytes]:
        if done.calls:
            yield self._chunk({"tool_calls": [{"index": place, **call} for place, call in enumerate(_calls(done))]})
        yield self._chunk({}, _finish(done))
        if has_usage:
            yield self._frame(choices=[], usage=_usage(done).model_dump())
        yield format_sse_event(data_str="[DONE]")

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        return self._frame(choices=[{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}])

    def _frame(self, **fields: Any) -> bytes:
        head = {"id": self._id, "object": "chat.completion.chunk", "created": self._created, "model": self._model}
        return _data({**head, **fields})


def _data(fields: dict[str, Any]) -> bytes:
    return format_sse_event(data_str=json.dumps(fields, ensure_ascii=False))


def _finish(done: Answer) -> str:
    return "tool_calls" if done.calls else "length" if done.is_cut_off else "stop"


def _calls(done: Answer) -> list[dict[str, Any]]:
    return [call.model_dump() for call in done.calls]


def _usage(done: Answer) -> Usage:
    total = done.prompt_tokens + done.completion_tokens
    return Usage(prompt_tokens=done.prompt_tokens, completion_tokens=done.completion_tokens, total_tokens=total)
