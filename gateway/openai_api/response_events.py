"""A response as an object, and as the events of its stream."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from fastapi.sse import format_sse_event

from bus_schema.history import HistoryToolCall
from gateway.openai_api.answers import Answer, Pieces
from gateway.openai_api.errors import error_of
from gateway.problems import EXPECTED, Problem

Status = Literal["in_progress", "completed", "incomplete", "cancelled", "failed"]


@dataclass(frozen=True)
class ResponseText:
    """A response: its output is one text, then calls of the client's tools."""

    key: str
    model: str
    created: int

    @property
    def item_id(self) -> str:
        return f"msg_{self.key}"

    def as_json(self, status: Status, done: Answer | None = None, error: Any = None) -> dict[str, Any]:
        """The object, with its output where it is there."""
        if done is not None and done.is_cut_off:
            status = "incomplete"
        fields = {
            "id": f"resp_{self.key}",
            "object": "response",
            "created_at": self.created,
            "status": status,
            "model": self.model,
            "output": [self.item(done.text), *map(_call_item, done.calls)] if done else [],
            "error": error,
            "tools": [],
            "tool_choice": "auto",
            "parallel_tool_calls": False,
            "metadata": {},
            "incomplete_details": {"reason": "max_output_tokens"} if done and done.is_cut_off else None,
        }
        if done is None:
            return fields
        tokens = {"input_tokens": done.prompt_tokens, "output_tokens": done.completion_tokens}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        return {**fields, "usage": {**tokens, **details, "total_tokens": sum(tokens.values())}}

    def item(self, text: str, status: Status = "completed") -> dict[str, Any]:
        content = [_part(text)] if text else []
        return {"id": self.item_id, "type": "message", "role": "assistant", "status": status, "content": content}


async def response_frames(text: ResponseText, first: str | Answer, rest: Pieces) -> AsyncGenerator[bytes]:
    """Server-sent events; hanging up stops nothing: the response can be asked for again."""
    events = _Events(text)
    async with aclosing(rest):
        try:
            for frame in events.opening():
                yield frame
            if isinstance(first, str):
                yield events.delta(first)
            done = first if isinstance(first, Answer) else None
            async for piece in rest:
                if isinstance(piece, str):
                    yield events.delta(piece)
                else:
                    done = piece
            assert done is not None
            for frame in events.closing(done):
                yield frame
        except EXPECTED as error:
            failed = text.as_json("failed", error=error_of(Problem.of(error))["error"])
            yield events.event("response.failed", response=failed)


class _Events:
    """Numbers the events of one response."""

    def __init__(self, text: ResponseText) -> None:
        self._text, self._number = text, -1
        self._place = {"item_id": text.item_id, "output_index": 0, "content_index": 0}

    def opening(self) -> list[bytes]:
        empty = self._text.item("", "in_progress")
        return [
            self.event("response.created", response=self._text.as_json("in_progress")),
            self.event("response.in_progress", response=self._text.as_json("in_progress")),
            self.event("response.output_item.added", output_index=0, item=empty),
            self.event("response.content_part.added", **self._place, part=_part("")),
        ]

    def delta(self, piece: str) -> bytes:
        return self.event("response.output_text.delta", **self._place, delta=piece, logprobs=[])

    def closing(self, done: Answer) -> list[bytes]:
        return [
            self.event("response.output_text.done", **self._place, text=done.text, logprobs=[]),
            self.event("response.content_part.done", **self._place, part=_part(done.text)),
            self.event("response.output_item.done", output_index=0, item=self._text.item(done.text)),
            *chain.from_iterable(self._call(place, call) for place, call in enumerate(done.calls, 1)),
            self.event(
                "response.incomplete" if done.is_cut_off else "response.completed",
                response=self._text.as_json("completed", done),
            ),
        ]

    def _call(self, place: int, call: HistoryToolCall) -> list[bytes]:
        item, at = _call_item(call), {"item_id": call.id, "output_index": place}
        arguments = call.function.arguments
        begun = {**item, "status": "in_progress", "arguments": ""}
        return [
            self.event("response.output_item.added", output_index=place, item=begun),
            self.event("response.function_call_arguments.delta", **at, delta=arguments),
            self.event("response.function_call_arguments.done", **at, name=call.function.name, arguments=arguments),
            self.event("response.output_item.done", output_index=place, item=item),
        ]

    def event(self, kind: str, **fields: Any) -> bytes:
        self._number += 1
        data = {"type": kind, "sequence_number": self._number, **fields}
        return format_sse_event(event=kind, data_str=json.dumps(data, ensure_ascii=False))


def _call_item(call: HistoryToolCall) -> dict[str, Any]:
    named = {"call_id": call.id, "name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": "function_call", "status": "completed", **named}


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
