"""An agent of another framework as a worker: a LangGraph graph, an agent of OpenAI's SDK, a crew."""

import inspect
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from functools import partial
from importlib import import_module
from typing import Any, cast

from bus_schema.artifacts import AIContext
from bus_schema.history import ChatMessage
from bus_schema.subagent import SERVICE_PREFIX
from mindbus.bus.worker import Worker
from mindbus.errors import PermanentFailure
from mindbus.sdk.role import RoleOutput, RoleWorker, StepWork
from mindbus.sdk.subagent import Delegated, SubAgent

# Turns of a talk, `role` and `content` each, and the id under which the framework may keep how far it has come.
Execution = Callable[[Sequence[dict[str, str]], str], Awaitable[str]]


class NoFrameworkAgent(TypeError):
    """A worker is made of a compiled graph of LangGraph, an agent of the OpenAI Agents SDK, or a crew of CrewAI."""


class FrameworkWorker(Worker):
    """Opens an agent of another framework for as long as the worker runs."""

    opens: Callable[[], AbstractAsyncContextManager[Any]]
    run_agent: Execution
    _opened: AsyncExitStack

    async def start(self) -> None:
        self._opened = AsyncExitStack()
        self.run_agent = execution_by(await self._opened.enter_async_context(type(self).opens()))
        await super().start()

    async def stop(self) -> None:
        await super().stop()
        await self._opened.aclose()


class FrameworkSubAgent(FrameworkWorker, SubAgent):
    """Hands delegated tasks to an agent of another framework."""

    async def execute(self, work: Delegated) -> str:
        said = [*_spoken(work.history), {"role": "user", "content": work.task}]
        return await self.run_agent(said, work.delegation_id)


class FrameworkRole(FrameworkWorker, RoleWorker):
    """Hands steps of cards to an agent of another framework."""

    async def make(self, work: StepWork) -> RoleOutput:
        answer = await self.run_agent([{"role": "user", "content": assignment_of(work)}], work.attempt_id)
        if not answer.strip():
            raise PermanentFailure(f"{self.name} has returned nothing")
        inputs = tuple(dict.fromkeys(each.manifest.id for each in work.inputs))
        return RoleOutput(f"{answer.strip()}\n".encode(), context=AIContext(input_artifacts=inputs))


def as_worker(agent: Any, *, name: str, description: str) -> type[SubAgent]:
    """A worker `subagent-NAME` that executes each task by an agent; `description` is for whoever delegates.

    `agent` is one, or a function whose async context manager yields one while the worker runs. A graph takes and
    returns `messages`; a task that is delivered again, as after a crash, goes on from the last checkpoint of a graph
    that has a checkpointer: its thread is the delegation. Raises NoFrameworkAgent.
    """
    fields = {"name": f"{SERVICE_PREFIX}{name}", "description": description}
    return cast("type[SubAgent]", _worker_class(FrameworkSubAgent, agent, fields))


def as_role(agent: Any, *, name: str, produces: Sequence[str]) -> type[RoleWorker]:
    """A worker NAME that makes artifacts of the types `produces` of the steps of cards, by an agent as in `as_worker`.

    It is told instructions, parameters and inputs as one message; the thread of a graph is the attempt. Raises
    NoFrameworkAgent.
    """
    return cast("type[RoleWorker]", _worker_class(FrameworkRole, agent, {"name": name, "produces": tuple(produces)}))


def _worker_class(base: type[FrameworkWorker], agent: Any, fields: dict[str, Any]) -> type[FrameworkWorker]:
    opens = agent if inspect.isfunction(agent) else lambda: nullcontext(agent)
    if not inspect.isfunction(agent):
        execution_by(agent)
    # `mindbus worker FILE` starts what the file defines.
    module = sys._getframe(2).f_globals["__name__"]
    return type(base.__name__, (base,), {**fields, "opens": staticmethod(opens), "__module__": module})


def execution_by(agent: Any) -> Execution:
    """The way to execute tasks by an agent, which its class tells. Raises NoFrameworkAgent."""
    packages = {kind.__module__.partition(".")[0] for kind in type(agent).__mro__}
    for package, run in (("langgraph", _run_graph), ("agents", _run_openai_agent), ("crewai", _run_crew)):
        if package in packages:
            return partial(run, agent)
    raise NoFrameworkAgent(f"{NoFrameworkAgent.__doc__} Got: {type(agent).__name__}")


def assignment_of(work: StepWork) -> str:
    """Everything that a step is about, as one text. Raises UnusableInput."""
    order = work.order
    parts = [order.instructions]
    if order.params:
        parts.append("\n".join(f"{name}: {value}" for name, value in sorted(order.params.items())))
    if order.item:
        parts.append(f"This time it is about this alone: {order.item}")
    if order.note:
        parts.append(f"The last version was looked at, with this remark: {order.note}")
    return "\n\n".join((*parts, *(f"## {given.name}\n\n{given.text().strip()}" for given in work.inputs)))


async def _run_graph(graph: Any, said: Sequence[dict[str, str]], thread_id: str) -> str:
    config = {"configurable": {"thread_id": thread_id}}
    state = await graph.aget_state(config) if graph.checkpointer else None
    if state is not None and state.values and not state.next:
        return _answer_of(state.values)
    begun = state is not None and bool(state.next)
    # Each step is saved before the next begins: whatever kills the process, none that is done is done again.
    saves = {"durability": "sync"} if graph.checkpointer else {}
    return _answer_of(await graph.ainvoke(None if begun else {"messages": list(said)}, config, **saves))


def _answer_of(values: dict[str, Any]) -> str:
    return str(values["messages"][-1].text)


async def _run_openai_agent(agent: Any, said: Sequence[dict[str, str]], _thread_id: str) -> str:
    # By name: the fleet has a package that is called so, too, and cannot be installed beside the SDK.
    return str((await import_module("agents").Runner.run(agent, list(said))).final_output)


async def _run_crew(crew: Any, said: Sequence[dict[str, str]], _thread_id: str) -> str:
    history = "\n".join(f"{each['role']}: {each['content']}" for each in said[:-1])
    return str((await crew.kickoff_async(inputs={"task": said[-1]["content"], "history": history})).raw)


def _spoken(history: Sequence[ChatMessage]) -> list[dict[str, str]]:
    """Turns between the two so far, without tools."""
    return [
        {"role": message.role, "content": message.content}
        for message in history
        if message.role in ("user", "assistant") and message.content
    ]
