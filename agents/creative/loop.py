"""The loop of a creative role: draft, self-critique, revision, each checkpointed before the next."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langsmith import tracing_context

from agents.configuration.prompts import Role
from agents.creative.assignment import Assignment
from agents.creative.generation import GeneratedText, generate_text
from agents.creative.loop_work import (
    TAIL_CHARS,
    WHOLE,
    CallCost,
    LoopState,
    LoopWork,
    Report,
    ReportMisbehaviour,
    broken,
    ignore,
    with_problem,
)
from agents.creative.misbehaviour import ModelMisbehaviour
from agents.models.errors import AnswerMisfit, ModelDeclined, ModelFailure, ModelUnavailable, PromptTooLong
from agents.models.json_answers import parse_cut_answer
from agents.models.language_model import LanguageModel, ModelMessage, complete_as
from agents.models.prompt import Material, Step, Verdict, remarks
from bus_schema.runs import MisbehaviourKind

_Graph = CompiledStateGraph[LoopState, LoopWork, Any, Any]


@dataclass(frozen=True)
class CreativeLoop:
    """A role with a model to think with, plus a memory that outlives the process."""

    role: Role
    model: LanguageModel
    memory: BaseCheckpointSaver[Any]

    async def run(
        self,
        assignment: Assignment,
        report: Report,
        model: LanguageModel | None = None,
        report_misbehaviour: ReportMisbehaviour = ignore,
        until: float | None = None,
    ) -> LoopState:
        """Go on from the last checkpoint of this attempt, or of the one before it; else begin.

        `model` is for this run alone; `until` is the event loop's time at which texts are kept as far as they have
        come. Raises ModelFailure, TimeoutError.
        """
        work = LoopWork(
            model or self.model, assignment, report, report_misbehaviour, assignment.expectation(self.role), until
        )
        state = await self._run(assignment, work)
        if problem := state.get("problem"):
            kind, detail, words = problem
            raise ModelMisbehaviour(MisbehaviourKind(kind), detail, words)
        return state

    async def _run(self, assignment: Assignment, work: "LoopWork") -> LoopState:
        config, fingerprint = _thread(assignment, assignment.order.attempt), self._fingerprint(assignment)
        saved = await self._saved_state(config)
        if saved is None or saved.get("fingerprint") != fingerprint:
            if saved is not None:
                await self.memory.adelete_thread(_thread_id(assignment, assignment.order.attempt))
            if not await self._seed(assignment, fingerprint):
                asks: LoopState = {"asks": True} if "satisfied" in assignment.order.values else {}
                return await self._invoke({"fingerprint": fingerprint, **asks}, config, work)
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
        graph: StateGraph[LoopState, LoopWork, Any, Any] = StateGraph(LoopState, context_schema=LoopWork)
        graph.add_node("write", self._write)
        graph.add_node("self-critique", self._criticise)
        graph.add_node("revise", self._revise)
        graph.add_node("judge", self._judge)
        graph.add_edge(START, "write")
        graph.add_conditional_edges("write", self._after_writing, ["write", "self-critique", "judge", END])
        graph.add_conditional_edges("self-critique", _after_critique, ["revise", "judge", END])
        graph.add_conditional_edges("revise", self._after_writing, ["revise", "self-critique", "judge", END])
        graph.add_edge("judge", END)
        return graph.compile(checkpointer=self.memory)

    async def _invoke(self, first: LoopState | None, config: RunnableConfig, work: "LoopWork") -> LoopState:
        # LANGSMITH_TRACING, for graphs of one's own, would send briefs and drafts of everybody elsewhere.
        with tracing_context(enabled=False):
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
                earlier["problem"] = []
                await self._graph.aupdate_state(
                    _thread(assignment, assignment.order.attempt), earlier, as_node=saved["last"]
                )
                return True
        return False

    def _fingerprint(self, assignment: Assignment) -> str:
        """Changes with prompt, model or material: thoughts on something else are not gone on with."""
        parts = (self.role.model_dump_json(), self.model.name, *assignment.subject)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    async def _write(self, state: LoopState, runtime: "Runtime[LoopWork]") -> LoopState:
        work = runtime.context
        generated, cost = await self._generate(work, state, "write", ())
        if generated is None or not generated.is_whole:
            return await broken(work, state, "write", generated, cost)
        if misbehaviour := await work.misbehaviour_in(generated.text, "write"):
            return with_problem(work, state, misbehaviour, cost)
        await work.report(f"first version written, {len(generated.text)} characters")
        return {"last": "write", "text": generated.text, "rounds": 0, **WHOLE, **work.added(state, cost)}

    async def _criticise(self, state: LoopState, runtime: "Runtime[LoopWork]") -> LoopState:
        work = runtime.context
        cost = CallCost(work.model)
        messages = work.assignment.prompt(self.role, "self-critique", (work.attempt(state),))
        with cost:
            verdict = await self._verdict(work, cost, messages)
        if verdict is None:
            await work.report("its own critique cannot be read, so the text stays as it is")
            verdict = Verdict(satisfied=True, remarks=[])
        else:
            is_content = verdict.satisfied or not verdict.remarks
            await work.report("content with it" if is_content else f"remarks on it: {len(verdict.remarks)}")
        return {
            "last": "self-critique",
            "satisfied": verdict.satisfied or not verdict.remarks,
            "remarks": verdict.remarks,
            **work.added(state, cost),
        }

    async def _judge(self, state: LoopState, runtime: "Runtime[LoopWork]") -> LoopState:
        """Whether the output, a judgement, is content with what it judges; one that cannot be told is not."""
        work = runtime.context
        cost = CallCost(work.model)
        with cost:
            verdict = await self._verdict(work, cost, work.assignment.judging_prompt(state["text"]))
        is_content = verdict is not None and (verdict.satisfied or not verdict.remarks)
        await work.report("content with what it judges" if is_content else "not content with what it judges")
        return {"last": "judge", "is_content": is_content, **work.added(state, cost)}

    async def _verdict(self, work: "LoopWork", cost: "CallCost", messages: Sequence[ModelMessage]) -> Verdict | None:
        """The verdict; None where the model has none to give: there is a text, and critique is to make it better."""
        try:
            return await complete_as(cost.model, messages, Verdict, self.role.model)
        except ModelUnavailable:
            raise
        except ModelFailure as failure:
            words = failure.text if isinstance(failure, AnswerMisfit) else failure.detail
            if verdict := parse_cut_answer(words, Verdict):
                return verdict
            await work.tell(MisbehaviourKind.UNREADABLE, "self-critique", words)
            return None

    async def _revise(self, state: LoopState, runtime: "Runtime[LoopWork]") -> LoopState:
        work = runtime.context
        more = (work.attempt(state), remarks(state["remarks"]))
        try:
            generated, cost = await self._generate(work, state, "revise", more)
        except PromptTooLong as error:
            await work.tell(MisbehaviourKind.CUT_OFF, "revise", error.detail)
            return self._unrevised(work, state, CallCost(work.model))
        if generated is None or not generated.is_whole:
            cut = await broken(work, state, "revise", generated, cost)
            return cut if not cut.get("problem") else self._unrevised(work, state, cost)
        if await work.misbehaviour_in(generated.text, "revise"):
            await work.report("the revision is no use, so the text stays as it was")
            return self._unrevised(work, state, cost)
        rounds = state["rounds"] + 1
        await work.report(f"revision {rounds} written, {len(generated.text)} characters")
        return {"last": "revise", "text": generated.text, "rounds": rounds, **WHOLE, **work.added(state, cost)}

    def _unrevised(self, work: "LoopWork", state: LoopState, cost: "CallCost") -> LoopState:
        """The state with the text as it was, and no further round."""
        return {"last": "revise", "rounds": self.role.max_rounds, **WHOLE, **work.added(state, cost)}

    async def _generate(
        self, work: "LoopWork", state: LoopState, step: Step, more: Sequence[Material]
    ) -> "tuple[GeneratedText | None, CallCost]":
        """The text of a step, or what has come of it; None where the model declines to write one."""
        cost = CallCost(work.model)
        messages = work.assignment.prompt(self.role, step, more)
        with cost:
            partial = state.get("partial", "")
            try:
                generated = await generate_text(cost.model, messages, self.role.model, partial, work.until)
            except ModelDeclined:
                return None, cost
            except PromptTooLong:
                if not partial:
                    raise
                # There is no room for the rest of it.
                return GeneratedText(partial, MisbehaviourKind.ENDLESS, is_whole=False), cost
        if generated.is_whole and generated.broken_by is not None:
            await work.tell(generated.broken_by, step, generated.raw[-TAIL_CHARS:])
        return generated, cost

    def _after_writing(self, state: LoopState) -> str:
        if state.get("problem"):
            return END
        if state.get("partial") or not state.get("text"):
            return state["last"]
        # A critique that nothing can follow is not worth its price.
        return "self-critique" if state["rounds"] < self.role.max_rounds else _last(state)


def _after_critique(state: LoopState) -> str:
    return _last(state) if state["satisfied"] else "revise"


def _last(state: LoopState) -> str:
    return "judge" if state.get("asks") else END


def _thread(assignment: Assignment, attempt: int) -> RunnableConfig:
    return {"configurable": {"thread_id": _thread_id(assignment, attempt)}}


def _thread_id(assignment: Assignment, attempt: int) -> str:
    order = assignment.order
    # What was thought in an earlier round is no beginning of another.
    making = f"{order.round}." if order.round > 1 else ""
    return f"{order.run_id}/{order.step_id}/{making}{attempt}"
