"""The tool loop of a sub-agent: ask the model, run the tools that it calls, ask again."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from agents.configuration.prompts import Guide
from agents.models.answer_text import without_thoughts
from agents.models.conversation import chat_prompt, is_written_call, normalise_calls
from agents.models.errors import EmptyAnswer
from agents.models.language_model import LanguageModel, ModelMessage, Tool, ToolCall
from agents.models.prompt import Material
from language.words import Language, language_of
from mindbus.logs import logger

_LISTED = 12
_NO_MORE = {
    Language.ENGLISH: "I have used my tools {n} times and come to no end. This is the last I found:\n\n{last}",
    Language.RUSSIAN: "Инструменты использованы {n} раз, конца не видно. Вот последнее, что нашлось:\n\n{last}",
}
_LAST_CHARS = 1000


class ToolFailed(Exception):
    """The tool could not do it; its words go to the model, which may try otherwise."""


@dataclass(frozen=True)
class BoundTool:
    """A tool at hand: its arguments as a model of ours, what is done with them; `declared` as another's schema says.

    It is offered once something in the talk matches `needs`: a small model calls whatever it is offered.
    """

    name: str
    description: str
    arguments: type[BaseModel]
    use: Callable[[Any], Awaitable[str]]
    needs: re.Pattern[str] | None = None
    declared: Tool | None = None

    def fits(self, messages: Sequence[ModelMessage]) -> bool:
        """Whether the talk, without its system message, has what the tool needs."""
        return self.needs is None or any(self.needs.search(message.content) for message in messages[1:])

    @property
    def tool(self) -> Tool:
        return self.declared or Tool.of(self.name, self.description, self.arguments)


class Toolbox:
    """Runs what a model calls; whatever goes wrong with that is said in words that a model can act on."""

    def __init__(self, instruments: Sequence[BoundTool]) -> None:
        self._by_name: Mapping[str, BoundTool] = {each.name: each for each in instruments}

    def tools_for(self, messages: Sequence[ModelMessage]) -> tuple[Tool, ...]:
        """The tools that these messages have a use for."""
        return tuple(each.tool for each in self._by_name.values() if each.fits(messages))

    async def use(self, call: ToolCall) -> str:
        """Result of a tool. Raises ToolFailed."""
        instrument = self._by_name.get(call.name)
        if instrument is None:
            raise ToolFailed(f"there is no tool {call.name!r}; there are: {', '.join(self._by_name) or 'none'}")
        arguments = read_arguments(call, instrument.arguments)
        try:
            return await instrument.use(arguments)
        except ToolFailed:
            raise
        except Exception as error:  # whatever a tool raises, the model's calls so far are paid for
            logger().exception("tool failed", tool=call.name)
            raise ToolFailed(f"{call.name} has failed ({type(error).__name__}); go on without it") from error


class TaskObserver(Protocol):
    """Whom a sub-agent tells what it does."""

    @property
    def has_room(self) -> bool:
        """True while more tools may be used."""

    async def called(self, text: str, calls: Sequence[ToolCall]) -> None: ...

    async def working(self, call: ToolCall) -> None: ...

    async def answered(self, call: ToolCall, content: str, *, is_error: bool) -> str:
        """The result, as the model is to be shown it."""
        ...


@dataclass(frozen=True)
class ToolLoop:
    """A guide with a model to think with; `most_rounds` bounds how often tools are turned to."""

    guide: Guide
    model: LanguageModel
    most_rounds: int = 8

    async def answer(
        self, said: Sequence[ModelMessage], materials: Sequence[Material], toolbox: Toolbox, witness: TaskObserver
    ) -> str:
        """The answer to the task, which is the last message. Raises ModelFailure."""
        messages = chat_prompt(self.guide.system, said, materials)
        made: dict[tuple[str, str], str] = {}
        is_plain = False
        for number in count():
            is_last = is_plain or number >= self.most_rounds or not witness.has_room
            tools = () if is_last else toolbox.tools_for(messages)
            completion = await self.model.complete(messages, tools=tools, params=self.guide.model)
            calls = normalise_calls(completion.tool_calls, prefix=f"call_{number}")
            is_answer = is_last or not calls
            if is_answer and (is_plain or not is_written_call(completion.text)):
                return _answer(completion.text, [*made.values()], number)
            if is_answer or all((call.name, call.arguments) in made for call in calls):
                # A small model imitates its calls to no end: it is shown what they have found instead.
                is_plain = True
                found = [Material(f"result_{place}", "result", text) for place, text in enumerate(made.values())]
                messages = chat_prompt(self.guide.system, said, [*materials, *found])
                continue
            await witness.called(completion.text, calls)
            results = [await _result(call, toolbox, witness) for call in calls]
            made |= {(call.name, call.arguments): each.content for call, each in zip(calls, results, strict=True)}
            turn = ModelMessage(role="assistant", content=completion.text, tool_calls=calls)
            messages = (*messages, turn, *results)
        raise AssertionError("unreachable: the last round returns")


async def _result(call: ToolCall, toolbox: Toolbox, witness: TaskObserver) -> ModelMessage:
    await witness.working(call)
    try:
        content, is_error = await toolbox.use(call), False
    except ToolFailed as error:
        content, is_error = str(error), True
    shown = await witness.answered(call, content, is_error=is_error)
    return ModelMessage(role="tool", content=shown, tool_call_id=call.id, name=call.name)


def _answer(text: str, results: Sequence[str], rounds: int) -> str:
    """The text, or the last result where there is none after so many rounds. Raises EmptyAnswer without either."""
    said = without_thoughts(text)
    if said and not is_written_call(said):
        return said
    if not results:
        raise EmptyAnswer
    return _NO_MORE[language_of(results[-1])].format(n=rounds, last=results[-1][:_LAST_CHARS])


def read_arguments(call: ToolCall, model: type[BaseModel]) -> BaseModel:
    """Validated arguments of a call. Raises ToolFailed with what is wrong."""
    try:
        given = json.loads(call.arguments or "{}")
    except ValueError as error:
        raise ToolFailed(f"the arguments of {call.name} are not JSON ({error}); call it again") from error
    try:
        return model.model_validate(given)
    except ValidationError as error:
        flaws = "; ".join(
            f"{'.'.join(map(str, flaw['loc'])) or 'arguments'}: {flaw['msg']}" for flaw in error.errors()[:_LISTED]
        )
        raise ToolFailed(f"the arguments of {call.name} do not fit: {flaws}; call it again") from error
