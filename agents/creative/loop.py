"""The loop of a creative role: draft, self-critique, revision, each checkpointed before the next."""

import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agents.configuration.prompts import Role
from agents.creative.assignment import Assignment
from agents.models.errors import EmptyAnswer
from agents.models.language_model import LanguageModel, MeteredModel, ModelMessage, complete_as
from agents.models.prompt import ATTEMPT, Material, Step, Verdict, remarks

Report = Callable[[str], Awaitable[None]]


class LoopState(TypedDict, total=False):
    """State in a checkpoint: the text and its cost, never the input material, which can be fetched again."""

    fingerprint: str
    last: Step
    text: str
    remarks: list[str]
    satisfied: bool
    recalled: list[str]
    rounds: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    took_ms: int


@dataclass(frozen=True)
class CreativeLoop:
    """A role with a model to think with, plus a memory that outlives the process."""

    role: Role
    model: LanguageModel
    memory: BaseCheckpointSaver[Any]

    async def run(self, assignment: Assignment, report: Report) -> LoopState:
        """Go on from the last checkpoint of this attempt, or of the one before it; else begin.

        Raises ModelFailure.
        """
        graph = _Work(self, assignment, report).graph()
        config, fingerprint = _thread(assignment, assignment.order.attempt), self._fingerprint(assignment)
        if await _saved_state(graph, config, fingerprint) is None:
            await self.memory.adelete_thread(_thread_id(assignment, assignment.order.attempt))
            if not await self._seed(graph, assignment, fingerprint):
                first: LoopState = {"fingerprint": fingerprint}
                return cast("LoopState", await graph.ainvoke(first, config, durability="sync"))
        state = await graph.aget_state(config)
        if not state.next:
            return cast("LoopState", state.values)
        return cast("LoopState", await graph.ainvoke(None, config, durability="sync"))

    async def forget(self, assignment: Assignment) -> None:
        """The artifact is safe: its checkpoints are needed no more."""
        for attempt in range(1, assignment.order.attempt + 1):
            await self.memory.adelete_thread(_thread_id(assignment, attempt))

    async def _seed(self, graph: "_Graph", assignment: Assignment, fingerprint: str) -> bool:
        """Begin where an earlier attempt stopped, in a thread of its own, so that the earlier one cannot interfere."""
        for attempt in range(assignment.order.attempt - 1, 0, -1):
            earlier = await _saved_state(graph, _thread(assignment, attempt), fingerprint)
            if earlier is not None and "last" in earlier:
                await graph.aupdate_state(
                    _thread(assignment, assignment.order.attempt), earlier, as_node=earlier["last"]
                )
                return True
        return False

    def _fingerprint(self, assignment: Assignment) -> str:
        """Changes with prompt, model or material: thoughts on something else are not gone on with."""
        parts = (self.role.model_dump_json(), self.model.name, *assignment.subject)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


_Graph = CompiledStateGraph[LoopState, Any, Any, Any]


async def _saved_state(graph: _Graph, config: RunnableConfig, fingerprint: str) -> LoopState | None:
    """State of a thread, unless it belongs to another subject."""
    kept = cast("LoopState", (await graph.aget_state(config)).values)
    return kept if kept.get("fingerprint") == fingerprint else None


class _Work:
    """The nodes of the loop, over one assignment."""

    def __init__(self, loop: CreativeLoop, assignment: Assignment, report: Report) -> None:
        self._role, self._model, self._memory = loop.role, loop.model, loop.memory
        self._assignment, self._report = assignment, report

    def graph(self) -> _Graph:
        graph: StateGraph[LoopState, Any, Any, Any] = StateGraph(LoopState)
        graph.add_node("write", self.write)
        graph.add_node("self-critique", self.criticise)
        graph.add_node("revise", self.revise)
        graph.add_edge(START, "write")
        graph.add_conditional_edges("write", self._after_writing, ["self-critique", END])
        graph.add_conditional_edges("self-critique", self._after_critique, ["revise", END])
        graph.add_conditional_edges("revise", self._after_writing, ["self-critique", END])
        return graph.compile(checkpointer=self._memory)

    async def write(self, state: LoopState) -> LoopState:
        text, cost = await self._text("write", ())
        await self._report(f"first version written, {len(text)} characters")
        return {"last": "write", "text": text, "rounds": 0, **self._added(state, cost)}

    async def criticise(self, state: LoopState) -> LoopState:
        cost = _Cost(self._model)
        messages = self._assignment.prompt(self._role, "self-critique", (self._attempt(state),))
        with cost:
            verdict = await complete_as(cost.model, messages, Verdict, self._role.model)
        is_content = verdict.satisfied or not verdict.remarks
        await self._report("content with it" if is_content else f"remarks on it: {len(verdict.remarks)}")
        return {
            "last": "self-critique",
            "satisfied": is_content,
            "remarks": verdict.remarks,
            **self._added(state, cost),
        }

    async def revise(self, state: LoopState) -> LoopState:
        text, cost = await self._text("revise", (self._attempt(state), remarks(state["remarks"])))
        rounds = state["rounds"] + 1
        await self._report(f"revision {rounds} written, {len(text)} characters")
        return {"last": "revise", "text": text, "rounds": rounds, **self._added(state, cost)}

    async def _text(self, step: Step, more: Sequence[Material]) -> "tuple[str, _Cost]":
        cost = _Cost(self._model)
        messages: Sequence[ModelMessage] = self._assignment.prompt(self._role, step, more)
        with cost:
            completion = await cost.model.complete(messages, params=self._role.model)
        if not completion.text.strip():
            raise EmptyAnswer
        return completion.text, cost

    def _added(self, state: LoopState, cost: "_Cost") -> LoopState:
        """Cost so far, with all units of memory that were ever shown: another attempt may be shown others."""
        shown = (each.id for each in self._assignment.memory)
        return {"recalled": list(dict.fromkeys([*state.get("recalled", ()), *shown])), **_spent(state, cost)}

    def _attempt(self, state: LoopState) -> Material:
        return Material(ATTEMPT, self._assignment.order.produces, state["text"])

    def _after_writing(self, state: LoopState) -> str:
        # A critique that nothing can follow is not worth its price.
        return "self-critique" if state["rounds"] < self._role.max_rounds else END

    def _after_critique(self, state: LoopState) -> str:
        return END if state["satisfied"] else "revise"


class _Cost:
    """Model calls, tokens and time of a block."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = MeteredModel(model)
        self.took_ms = 0

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *_exc: object) -> Literal[False]:
        self.took_ms = round((time.monotonic() - self._began) * 1000)
        return False


def _spent(thought: LoopState, cost: _Cost) -> LoopState:
    return {
        "calls": thought.get("calls", 0) + cost.model.calls,
        "prompt_tokens": thought.get("prompt_tokens", 0) + cost.model.usage.prompt_tokens,
        "completion_tokens": thought.get("completion_tokens", 0) + cost.model.usage.completion_tokens,
        "took_ms": thought.get("took_ms", 0) + cost.took_ms,
    }


def _thread(assignment: Assignment, attempt: int) -> RunnableConfig:
    return {"configurable": {"thread_id": _thread_id(assignment, attempt)}}


def _thread_id(assignment: Assignment, attempt: int) -> str:
    return f"{assignment.order.run_id}/{assignment.order.step_id}/{attempt}"
