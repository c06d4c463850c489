"""A language model that makes the calls which the user asks for in so many words: delegations, the user's tasks.

Small models answer such a request in words, repeat a call without end, or write a call as text. Nor do they read the
calendar: what day it is, is told from the clock.
"""

import json
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

from pydantic import BaseModel

from agents.models.answer_guards import Ungrounded, WrittenCall, grounded, spoken, without_echo
from agents.models.conversation import Conversation, is_written_call, parse_conversation, since_user, written_call
from agents.models.errors import AnswerCutOff
from agents.models.explicit_calls import (
    NAMES,
    NOT_FOUND,
    explicit_task_calls,
    is_about_nothing,
    planned_delegations,
    tools_for,
    with_plain_results,
    without_ids,
)
from agents.models.explicit_delegation import DELEGATE
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
from agents.models.present_answers import answer_from_clock
from agents.present import present_lines
from language.words import language_of, words

_NONE = timedelta(0)


class ExplicitRequestModel:
    """Calls what the user's words ask for where the model does not; all other requests go through unchanged.

    A model that `reads_rules` knows by itself when a tool of tasks is meant, as the offline model does; to any other
    they are offered where the words may be about work.
    """

    def __init__(self, model: LanguageModel, *, reads_rules: bool = False) -> None:
        self._model, self._reads_rules = model, reads_rules

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
        if params.tool_choice:
            async for chunk in self._model.stream(messages, tools=tools, params=params):
                yield chunk
            return
        asked, (said, since) = parse_conversation(messages), since_user(messages)
        by_clock = not (asked.instruction or since)
        if by_clock and (told := answer_from_clock(asked.words, asked.present, language_of(asked.words))):
            async for chunk in self._saying(told):
                yield chunk
            return
        last = "".join(message.content for message in said[-1:])
        async for chunk in without_echo(self._answer(messages, asked, tools, params), present_lines(last)):
            yield chunk

    def _answer(
        self, messages: Sequence[ModelMessage], asked: Conversation, tools: Sequence[Tool], params: ModelParams
    ) -> AsyncIterator[Chunk]:
        _, since = since_user(messages)
        plan = planned_delegations(asked.words, tools)
        task_calls = () if plan or asked.instruction else explicit_task_calls(asked.words, asked.present, tools)
        done = sum(len(message.tool_calls) for message in since)
        if task_calls:
            return self._after_task(messages, params, since) if since else self._calling(task_calls)
        if done and not tools:
            return self._last_round(messages, params, since)
        if (delegated := _delegations_in(since)) < len(plan):
            return self._planned_round(messages, tools, params, plan, delegated)
        if not plan and any(map(is_about_nothing, since)):
            return self._after_nothing(messages, tools, params)
        if since:
            return self._after_calls(messages, tools, params, since, is_planned=bool(plan))
        offered = tools if self._reads_rules else tools_for(asked.words, tools)
        return self._first_round(messages, offered, params)

    async def _calling(self, calls: tuple[ToolCall, ...]) -> AsyncIterator[Chunk]:
        yield Chunk(
            completion=Completion(
                text="", tool_calls=calls, finish_reason="tool_calls", model_name=self.name, took=_NONE
            )
        )

    async def _first_round(
        self, messages: Sequence[ModelMessage], tools: Sequence[Tool], params: ModelParams
    ) -> AsyncIterator[Chunk]:
        """The model's answer or calls; a call written as text is made where there is such a tool."""
        try:
            async for chunk in spoken(self._model.stream(messages, tools=tools, params=params)):
                yield chunk
            return
        except WrittenCall as written:
            call = written_call(written.text)
        is_offered = call is not None and call.name in {tool.name for tool in tools}
        async for chunk in self._calling((call,)) if call and is_offered else self._last_round(messages, params, ()):
            yield chunk

    async def _after_calls(
        self,
        messages: Sequence[ModelMessage],
        tools: Sequence[Tool],
        params: ModelParams,
        since: Sequence[ModelMessage],
        *,
        is_planned: bool,
    ) -> AsyncIterator[Chunk]:
        """The model's answer, or more calls; one that is repeated, or written as text, ends the tools.

        Where the user asked for sub-agents, a short answer that has nothing of what they have said is replaced by the
        last of it: a small model answers from memory instead.
        """
        results = [message.content for message in since if message.role == "tool" and is_planned]
        try:
            async for chunk in grounded(spoken(self._model.stream(messages, tools=tools, params=params)), results):
                if chunk.completion and _is_repeated(chunk.completion.tool_calls, since):
                    break
                yield chunk
            else:
                return
        except WrittenCall:
            pass
        except Ungrounded:
            async for chunk in self._saying(results[-1]):
                yield chunk
            return
        async for chunk in self._last_round(messages, params, since):
            yield chunk

    def _after_task(
        self, messages: Sequence[ModelMessage], params: ModelParams, since: Sequence[ModelMessage]
    ) -> AsyncIterator[Chunk]:
        """The results of the task: a small model would ask for what has just been done, or complete the next one.

        Where no task fits, the model answers, without tools: the user may have spoken of something else.
        """
        results = [message.content for message in with_plain_results(since) if message.role == "tool"]
        if results[-1].startswith(tuple(NOT_FOUND.values())):
            return self._last_round(messages, params, since)
        return self._saying("\n".join(results))

    async def _after_nothing(
        self, messages: Sequence[ModelMessage], tools: Sequence[Tool], params: ModelParams
    ) -> AsyncIterator[Chunk]:
        """The answer after a call of the model's own that has met no task.

        Where it only repeats a result or a call, or writes one, it is asked without tools for an answer to the message
        itself: a small model calls whatever it is offered, and the message may have been about something else.
        """
        said, since = since_user(messages)
        chunks = [chunk async for chunk in self._model.stream(messages, tools=tools, params=params)]
        completion = chunks[-1].completion
        told = completion.text.strip() if completion else ""
        known = {without_ids(each.content) for each in since if each.role == "tool"}
        is_lost = completion is not None and _is_repeated(completion.tool_calls, since)
        if is_lost or is_written_call(told) or told in known:
            async for chunk in self._last_round(said, params, since):
                yield chunk
            return
        for chunk in chunks:
            yield chunk

    async def _saying(self, text: str) -> AsyncIterator[Chunk]:
        yield Chunk(text=text)
        yield Chunk(completion=Completion(text=text, finish_reason="stop", model_name=self.name, took=_NONE))

    async def aclose(self) -> None:
        await self._model.aclose()

    async def _planned_round(
        self,
        messages: Sequence[ModelMessage],
        tools: Sequence[Tool],
        params: ModelParams,
        plan: tuple[ToolCall, ...],
        done: int,
    ) -> AsyncIterator[Chunk]:
        """The model's calls, or what is left of the plan in place of an answer, repeated calls, or those of tasks."""
        rest = plan[done:]
        try:
            chunks = [chunk async for chunk in self._model.stream(messages, tools=tools, params=params)]
        except AnswerCutOff:
            # It talks instead of calling.
            async for chunk in self._calling(rest):
                yield chunk
            return
        completion = chunks[-1].completion
        calls = completion.tool_calls if completion else ()
        is_beside = _is_repeated(calls, since_user(messages)[1]) or {call.name for call in calls} <= NAMES
        if completion is None or not is_beside:
            for chunk in chunks:
                yield _with_whole_tasks(chunk, plan, done)
            return
        update = {"text": "", "tool_calls": rest, "finish_reason": "tool_calls"}
        yield Chunk(completion=completion.model_copy(update=update))

    async def _last_round(
        self, messages: Sequence[ModelMessage], params: ModelParams, since: Sequence[ModelMessage]
    ) -> AsyncIterator[Chunk]:
        """The answer without tools; a call written as text is replaced by the last result."""
        try:
            async for chunk in spoken(self._model.stream(with_plain_results(messages), params=params)):
                yield chunk
        except WrittenCall as written:
            results = [message.content for message in with_plain_results(since) if message.role == "tool"]
            async for chunk in self._saying(results[-1] if results else written.text):
                yield chunk


def _delegations_in(since: Sequence[ModelMessage]) -> int:
    return sum(call.name.startswith(DELEGATE) for message in since for call in message.tool_calls)


def _is_repeated(calls: Sequence[ToolCall], since: Sequence[ModelMessage]) -> bool:
    earlier = {(call.name, call.arguments) for message in since for call in message.tool_calls}
    return bool(calls) and all((call.name, call.arguments) in earlier for call in calls)


def _with_whole_tasks(chunk: Chunk, plan: Sequence[ToolCall], done: int) -> Chunk:
    """The chunk with the user's own sentence where a call has a fragment of it, or runs into another one."""
    if chunk.completion is None or not chunk.completion.tool_calls:
        return chunk
    calls = list(chunk.completion.tool_calls)
    for place, (call, planned) in enumerate(zip(calls, plan[done:], strict=False)):
        said, whole = _words_of(call), _words_of(planned)
        others = set[str]().union(*map(_words_of, plan)) - whole
        if call.name == planned.name and (said < whole or said & others):
            calls[place] = call.model_copy(update={"arguments": planned.arguments})
    return chunk.model_copy(update={"completion": chunk.completion.model_copy(update={"tool_calls": tuple(calls)})})


def _words_of(call: ToolCall) -> set[str]:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        return set()
    return {word.lower() for word in words(str(arguments.get("task", "")))} if isinstance(arguments, dict) else set()
