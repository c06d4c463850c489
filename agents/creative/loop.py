"""The loop of a creative role: draft, self-critique, revision, each checkpointed before the next."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypedDict, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

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

    async def run(self, assignment: Assignment, report: Report, model: LanguageModel | None = None) -> LoopState:
        """Go on from the last checkpoint of this attempt, or of the one before it; else begin.

        `model` is for this run alone. Raises ModelFailure.
        """
        work = _Work(model or self.model, assignment, report)
        config, fingerprint = _thread(assignment, assignment.order.attempt), self._fingerprint(assignment)
        saved = await self._saved_state(config)
        if saved is None or saved.get("fingerprint") != fingerprint:
            if saved is not None:
                await self.memory.adelete_thread(_thread_id(assignment, assignment.order.attempt))
            if not await self._seed(assignment, fingerprint):
                return await self._invoke({"fingerprint": fingerprint}, config, work)
        state = await self._graph.aget_state(config)
        if not state.next:
            return cast("LoopState", state.values)
        return await self._invoke(None, config, work)

    async def forget(self, assignment: Assignment) -> None:
        """The artifact is safe: its checkpoints are needed no more."""
        attempts = range(1, assignment.order.attempt + 1)
        await asyncio.gather(*(self.memory.adelete_thread(_thread_id(assignment, attempt)) for attempt in attempts))

    @cached_property
    def _graph(self) -> "_Graph":
        """The loop, compiled once: what differs from run to run is in its context."""
        graph: StateGraph[LoopState, _Work, Any, Any] = StateGraph(LoopState, context_schema=_Work)
        graph.add_node("write", self._write)
        graph.add_node("self-critique", self._criticise)
        graph.add_node("revise", self._revise)
        graph.add_edge(START, "write")
        graph.add_conditional_edges("write", self._after_writing, ["self-critique", END])
        graph.add_conditional_edges("self-critique", _after_critique, ["revise", END])
        graph.add_conditional_edges("revise", self._after_writing, ["self-critique", END])
        return graph.compile(checkpointer=self.memory)

    async def _invoke(self, first: LoopState | None, config: RunnableConfig, work: "_Work") -> LoopState:
        return cast("LoopState", await self._graph.ainvoke(first, config, context=work, durability="sync"))

    async def _saved_state(self, config: RunnableConfig) -> LoopState | None:
        """State of the last checkpoint of a thread, if it has any."""
        saved = await self.memory.aget_tuple(config)
        return None if saved is None else cast("LoopState", saved.checkpoint["channel_values"])

    async def _seed(self, assignment: Assignment, fingerprint: str) -> bool:
        """Begin where an earlier attempt stopped, in a thread of its own, so that the earlier one cannot interfere."""
        for attempt in range(assignment.order.attempt - 1, 0, -1):
            saved = await self._saved_state(_thread(assignment, attempt))
            # Of another subject it is of no use.
            if saved is not None and saved.get("fingerprint") == fingerprint and "last" in saved:
                earlier = {name: value for name, value in saved.items() if name in LoopState.__annotations__}
                await self._graph.aupdate_state(
                    _thread(assignment, assignment.order.attempt), earlier, as_node=saved["last"]
                )
                return True
        return False

    def _fingerprint(self, assignment: Assignment) -> str:
        """Changes with prompt, model or material: thoughts on something else are not gone on with."""
        parts = (self.role.model_dump_json(), self.model.name, *assignment.subject)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    async def _write(self, state: LoopState, runtime: "Runtime[_Work]") -> LoopState:
        work = runtime.context
        text, cost = await self._text(work, "write", ())
        await work.report(f"first version written, {len(text)} characters")
        return {"last": "write", "text": text, "rounds": 0, **work.added(state, cost)}

    async def _criticise(self, state: LoopState, runtime: "Runtime[_Work]") -> LoopState:
        work = runtime.context
        cost = _Cost(work.model)
        messages = work.assignment.prompt(self.role, "self-critique", (work.attempt(state),))
        with cost:
            verdict = await complete_as(cost.model, messages, Verdict, self.role.model)
        is_content = verdict.satisfied or not verdict.remarks
        await work.report("content with it" if is_content else f"remarks on it: {len(verdict.remarks)}")
        return {
            "last": "self-critique",
            "satisfied": is_content,
            "remarks": verdict.remarks,
            **work.added(state, cost),
        }

    async def _revise(self, state: LoopState, runtime: "Runtime[_Work]") -> LoopState:
        work = runtime.context
        text, cost = await self._text(work, "revise", (work.attempt(state), remarks(state["remarks"])))
        rounds = state["rounds"] + 1
        await work.report(f"revision {rounds} written, {len(text)} characters")
        return {"last": "revise", "text": text, "rounds": rounds, **work.added(state, cost)}

    async def _text(self, work: "_Work", step: Step, more: Sequence[Material]) -> "tuple[str, _Cost]":
        cost = _Cost(work.model)
        messages: Sequence[ModelMessage] = work.assignment.prompt(self.role, step, more)
        with cost:
            completion = await cost.model.complete(messages, params=self.role.model)
        if not completion.text.strip():
            raise EmptyAnswer
        return completion.text, cost

    def _after_writing(self, state: LoopState) -> str:
        # A critique that nothing can follow is not worth its price.
        return "self-critique" if state["rounds"] < self.role.max_rounds else END


def _after_critique(state: LoopState) -> str:
    return END if state["satisfied"] else "revise"


@dataclass(frozen=True)
class _Work:
    """Assignment and model of one run of the loop, for its nodes."""

    model: LanguageModel
    assignment: Assignment
    report: Report

    def added(self, state: LoopState, cost: "_Cost") -> LoopState:
        """Cost so far, with all units of memory that were ever shown: another attempt may be shown others."""
        shown = (each.id for each in self.assignment.memory)
        return {"recalled": list(dict.fromkeys([*state.get("recalled", ()), *shown])), **_spent(state, cost)}

    def attempt(self, state: LoopState) -> Material:
        return Material(ATTEMPT, self.assignment.order.produces, state["text"])


_Graph = CompiledStateGraph[LoopState, _Work, Any, Any]


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
