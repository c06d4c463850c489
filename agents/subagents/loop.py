"""The tool loop of a sub-agent: ask the model, run the tools that it calls, ask again."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict

import structlog
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, ValidationError

from agents.configuration.prompts import Guide
from agents.models.conversation import chat_prompt, normalise_calls
from agents.models.errors import EmptyAnswer
from agents.models.language_model import LanguageModel, ModelMessage, Tool, ToolCall
from agents.models.prompt import Material
from language.words import Language, language_of

log = structlog.get_logger()
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
    """A tool at hand: its arguments as a model of ours, what is done with them."""

    name: str
    description: str
    arguments: type[BaseModel]
    use: Callable[[Any], Awaitable[str]]

    @property
    def tool(self) -> Tool:
        schema = self.arguments.model_json_schema()
        return Tool(name=self.name, description=self.description, parameters=schema)


class Toolbox:
    """Runs what a model calls; whatever goes wrong with that is said in words that a model can act on."""

    def __init__(self, instruments: Sequence[BoundTool]) -> None:
        self._by_name: Mapping[str, BoundTool] = {each.name: each for each in instruments}

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(each.tool for each in self._by_name.values())

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
            log.exception("tool failed", tool=call.name)
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


class _Work(TypedDict, total=False):
    messages: tuple[ModelMessage, ...]
    calls: tuple[ToolCall, ...]
    rounds: int
    response: str


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
        graph = _Loop(self, toolbox, witness).graph()
        # Two nodes a round, then the end.
        ended = await graph.ainvoke({"messages": messages, "rounds": 0}, {"recursion_limit": 2 * self.most_rounds + 5})
        return str(ended["response"])


class _Loop:
    """The nodes of the loop, over one task."""

    def __init__(self, thinker: ToolLoop, toolbox: Toolbox, witness: TaskObserver) -> None:
        self._thinker, self._toolbox, self._witness = thinker, toolbox, witness

    def graph(self) -> "CompiledStateGraph[_Work, Any, Any, Any]":
        graph: StateGraph[_Work, Any, Any, Any] = StateGraph(_Work)
        graph.add_node("think", self.think)
        graph.add_node("use", self.use)
        graph.add_edge(START, "think")
        graph.add_conditional_edges("think", lambda state: "use" if state["calls"] else END, ["use", END])
        graph.add_edge("use", "think")
        return graph.compile()

    async def think(self, state: _Work) -> _Work:
        messages, is_last = state["messages"], self._is_last(state)
        completion = await self._thinker.model.complete(
            messages, tools=() if is_last else self._toolbox.tools, params=self._thinker.guide.model
        )
        if completion.tool_calls and not is_last:
            calls = normalise_calls(completion.tool_calls, prefix=f"call_{state['rounds']}")
            await self._witness.called(completion.text, calls)
            said = ModelMessage(role="assistant", content=completion.text, tool_calls=calls)
            return {"messages": (*messages, said), "calls": calls, "rounds": state["rounds"] + 1}
        return {"calls": (), "response": completion.text.strip() or self._no_more(state)}

    async def use(self, state: _Work) -> _Work:
        """Results of the called tools, in the order of the calls."""
        results = []
        for call in state["calls"]:
            await self._witness.working(call)
            try:
                content, is_error = await self._toolbox.use(call), False
            except ToolFailed as error:
                content, is_error = str(error), True
            shown = await self._witness.answered(call, content, is_error=is_error)
            results.append(ModelMessage(role="tool", content=shown, tool_call_id=call.id, name=call.name))
        return {"messages": (*state["messages"], *results)}

    def _is_last(self, state: _Work) -> bool:
        return state["rounds"] >= self._thinker.most_rounds or not self._witness.has_room

    def _no_more(self, state: _Work) -> str:
        """The end of a loop that its model does not end."""
        last = state["messages"][-1]
        if last.role != "tool":
            raise EmptyAnswer
        phrase = _NO_MORE[language_of(last.content)]
        return phrase.format(n=state["rounds"], last=last.content[:_LAST_CHARS])


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
