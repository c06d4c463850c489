"""A language model that carries out the delegations which the user asks for in so many words.

Small models answer such a request in words, repeat a call without end, or write a call as text.
"""

import json
from collections.abc import AsyncIterator, Sequence

from pydantic import BaseModel

from agents.models.conversation import parse_conversation, since_user
from agents.models.delegation_requests import delegations
from agents.models.language_model import (
    DEFAULTS,
    Chunk,
    Completion,
    LanguageModel,
    ModelMessage,
    ModelParams,
    Tool,
    ToolCall,
)
from language.words import words

DELEGATE = "delegate_to_"


class ExplicitDelegationModel:
    """Delegates as the user's words say where the model does not; all other requests go through unchanged."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

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
        return await self._model.complete(messages, tools=tools, schema=schema, params=params)

    async def stream(
        self, messages: Sequence[ModelMessage], *, tools: Sequence[Tool] = (), params: ModelParams = DEFAULTS
    ) -> AsyncIterator[Chunk]:
        _, since = since_user(messages)
        plan = _planned_calls(messages, tools)
        if plan and not since:
            async for chunk in self._first_round(messages, tools, params, plan):
                yield chunk
            return
        if not tools and any(message.tool_calls for message in since):
            async for chunk in self._last_round(messages, params, since):
                yield chunk
            return
        async for chunk in self._model.stream(messages, tools=tools, params=params):
            if plan and chunk.completion and _is_repeated(chunk.completion.tool_calls, since):
                async for last in self._last_round(messages, params, since):
                    yield last
                return
            done = sum(len(message.tool_calls) for message in since)
            yield _with_whole_tasks(chunk, plan[done:])

    async def aclose(self) -> None:
        await self._model.aclose()

    async def _first_round(
        self, messages: Sequence[ModelMessage], tools: Sequence[Tool], params: ModelParams, plan: tuple[ToolCall, ...]
    ) -> AsyncIterator[Chunk]:
        """The model's calls, or those of the plan in place of an answer without calls."""
        chunks = [chunk async for chunk in self._model.stream(messages, tools=tools, params=params)]
        completion = chunks[-1].completion
        if completion is None or completion.tool_calls:
            for chunk in chunks:
                yield _with_whole_tasks(chunk, plan)
            return
        update = {"text": "", "tool_calls": plan, "finish_reason": "tool_calls"}
        yield Chunk(completion=completion.model_copy(update=update))

    async def _last_round(
        self, messages: Sequence[ModelMessage], params: ModelParams, since: Sequence[ModelMessage]
    ) -> AsyncIterator[Chunk]:
        """The answer without tools; a call written as text is replaced by the last result."""
        held: list[Chunk] = []
        is_held, start = True, ""
        async for chunk in self._model.stream(messages, params=params):
            start += chunk.text
            is_held = is_held and (not start.strip() or start.lstrip()[0] in "`{")
            if is_held:
                held.append(chunk)
                continue
            for each in (*held, chunk):
                yield each
            held.clear()
        if not held:
            return
        completion = held[-1].completion
        results = [message.content for message in since if message.role == "tool"]
        if completion and results and DELEGATE in completion.text and '"name"' in completion.text:
            held = [Chunk(text=results[-1]), Chunk(completion=completion.model_copy(update={"text": results[-1]}))]
        for each in held:
            yield each


def _planned_calls(messages: Sequence[ModelMessage], tools: Sequence[Tool]) -> tuple[ToolCall, ...]:
    names = [tool.name.removeprefix(DELEGATE) for tool in tools if tool.name.startswith(DELEGATE)]
    plan = delegations(parse_conversation(messages).words, names) if names else []
    return tuple(
        ToolCall(id=f"call_{place}", name=f"{DELEGATE}{name}", arguments=json.dumps({"task": task}, ensure_ascii=False))
        for place, (name, task) in enumerate(plan)
    )


def _is_repeated(calls: Sequence[ToolCall], since: Sequence[ModelMessage]) -> bool:
    earlier = {(call.name, call.arguments) for message in since for call in message.tool_calls}
    return bool(calls) and all((call.name, call.arguments) in earlier for call in calls)


def _with_whole_tasks(chunk: Chunk, plan: Sequence[ToolCall]) -> Chunk:
    """The chunk with the user's own sentence where a call has a fragment of it, such as a bare name."""
    if chunk.completion is None or not chunk.completion.tool_calls:
        return chunk
    calls = list(chunk.completion.tool_calls)
    for place, (call, planned) in enumerate(zip(calls, plan, strict=False)):
        if call.name == planned.name and _words_of(call) < _words_of(planned):
            calls[place] = call.model_copy(update={"arguments": planned.arguments})
    return chunk.model_copy(update={"completion": chunk.completion.model_copy(update={"tool_calls": tuple(calls)})})


def _words_of(call: ToolCall) -> set[str]:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        return set()
    return {word.lower() for word in words(str(arguments.get("task", "")))} if isinstance(arguments, dict) else set()
