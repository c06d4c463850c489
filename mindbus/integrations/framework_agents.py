"""An agent of another framework as a worker: a LangGraph graph, an agent of OpenAI's SDK, a crew."""

import inspect
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, nullcontext
from importlib import import_module
from typing import Any

from bus_schema.history import ChatMessage
from bus_schema.subagent import SERVICE_PREFIX
from mindbus.sdk.subagent import Delegated, SubAgent

Execution = Callable[[Delegated], Awaitable[str]]


class NoFrameworkAgent(TypeError):
    """A worker is made of a compiled graph of LangGraph, an agent of the OpenAI Agents SDK, or a crew of CrewAI."""


def as_worker(agent: Any, *, name: str, description: str) -> type[SubAgent]:
    """A worker `subagent-NAME` that executes each task by an agent; `description` is for whoever delegates.

    `agent` is one, or a function whose async context manager yields one while the worker runs. A graph takes and
    returns `messages`; a task that is delivered again, as after a crash, goes on from the last checkpoint of a graph
    that has a checkpointer: its thread is the delegation. Raises NoFrameworkAgent.
    """
    opens = agent if inspect.isfunction(agent) else lambda: nullcontext(agent)
    if not inspect.isfunction(agent):
        execution_by(agent)

    class FrameworkWorker(SubAgent):
        """Hands tasks to an agent of another framework."""

        _execution: Execution
        _opened: AsyncExitStack

        async def start(self) -> None:
            self._opened = AsyncExitStack()
            self._execution = execution_by(await self._opened.enter_async_context(opens()))
            await super().start()

        async def stop(self) -> None:
            await super().stop()
            await self._opened.aclose()

        async def execute(self, work: Delegated) -> str:
            return await self._execution(work)

    FrameworkWorker.name, FrameworkWorker.description = f"{SERVICE_PREFIX}{name}", description
    # `mindbus worker FILE` starts what the file defines.
    FrameworkWorker.__module__ = sys._getframe(1).f_globals["__name__"]
    return FrameworkWorker


def execution_by(agent: Any) -> Execution:
    """The way to execute tasks by an agent, which its class tells. Raises NoFrameworkAgent."""
    packages = {kind.__module__.partition(".")[0] for kind in type(agent).__mro__}
    for package, run in (("langgraph", _run_graph), ("agents", _run_openai_agent), ("crewai", _run_crew)):
        if package in packages:
            return lambda work: run(agent, work)
    raise NoFrameworkAgent(f"{NoFrameworkAgent.__doc__} Got: {type(agent).__name__}")


async def _run_graph(graph: Any, work: Delegated) -> str:
    config = {"configurable": {"thread_id": work.delegation_id}}
    state = await graph.aget_state(config) if graph.checkpointer else None
    if state is not None and state.values and not state.next:
        return _answer_of(state.values)
    begun = state is not None and bool(state.next)
    # Each step is saved before the next begins: whatever kills the process, none that is done is done again.
    saves = {"durability": "sync"} if graph.checkpointer else {}
    return _answer_of(await graph.ainvoke(None if begun else {"messages": _said_to(work)}, config, **saves))


def _answer_of(values: dict[str, Any]) -> str:
    return str(values["messages"][-1].text)


async def _run_openai_agent(agent: Any, work: Delegated) -> str:
    # By name: the fleet has a package that is called so, too, and cannot be installed beside the SDK.
    return str((await import_module("agents").Runner.run(agent, _said_to(work))).final_output)


async def _run_crew(crew: Any, work: Delegated) -> str:
    history = "\n".join(f"{each['role']}: {each['content']}" for each in _said_to(work)[:-1])
    return str((await crew.kickoff_async(inputs={"task": work.task, "history": history})).raw)


def _said_to(work: Delegated) -> list[dict[str, str]]:
    """Messages between the two so far, without tools, and the task."""
    return [*_spoken(work.history), {"role": "user", "content": work.task}]


def _spoken(history: Sequence[ChatMessage]) -> list[dict[str, str]]:
    return [
        {"role": message.role, "content": message.content}
        for message in history
        if message.role in ("user", "assistant") and message.content
    ]
