"""Six echoing steps on DBOS and on LangGraph's checkpointer, both on SQLite: `python -m benchmarks.runs_peers NAME`."""

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypedDict

from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel

STEPS = 6
TEXT = "The tram of line 12 left the depot on 3 May 1931; the whole town had come to see it. " * 5

Run = Callable[[str], Awaitable[str]]


class Found(BaseModel):
    """Seconds of each run alone, steps per second by the runs at once."""

    alone_s: list[float]
    steps_per_s: dict[str, float]


@asynccontextmanager
async def dbos(folder: Path) -> AsyncIterator[Run]:
    """A workflow of six steps, as the documentation of DBOS has them."""
    from dbos import DBOS, DBOSConfig

    config: DBOSConfig = {
        "name": "echo",
        "system_database_url": f"sqlite:///{folder / 'dbos.sqlite'}",
        "log_level": "ERROR",
    }
    DBOS(config=config)

    @DBOS.step()
    def echo(text: str) -> str:
        return text

    @DBOS.workflow()
    def run(text: str) -> str:
        for _ in range(STEPS):
            text = echo(text)
        return text

    DBOS.launch()
    threads = ThreadPoolExecutor(100)

    def start_and_wait(text: str) -> str:
        return DBOS.start_workflow(run, text).get_result()

    async def one(text: str) -> str:
        return await asyncio.get_running_loop().run_in_executor(threads, start_and_wait, text)

    try:
        yield one
    finally:
        threads.shutdown()
        DBOS.destroy()


@asynccontextmanager
async def langgraph(folder: Path) -> AsyncIterator[Run]:
    """A graph of six nodes, each checkpointed before the next one begins."""
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.graph import END, START, StateGraph

    class State(TypedDict):
        text: str

    async def echo(state: State) -> State:
        return state

    graph = StateGraph(State)
    names = [f"echo{number}" for number in range(STEPS)]
    for before, name in zip([START, *names], names, strict=False):
        graph.add_node(name, echo)
        graph.add_edge(before, name)
    graph.add_edge(names[-1], END)
    async with AsyncSqliteSaver.from_conn_string(str(folder / "langgraph.sqlite")) as saver:
        compiled = graph.compile(checkpointer=saver)
        runs = 0

        async def one(text: str) -> str:
            nonlocal runs
            runs += 1
            config: RunnableConfig = {"configurable": {"thread_id": f"run-{runs}"}}
            return str((await compiled.ainvoke(State(text=text), config, durability="sync"))["text"])

        yield one


PEERS = {"dbos": dbos, "langgraph": langgraph}


async def measure_runs(one: Callable[[], Awaitable[None]], runs: dict[int, int]) -> Found:
    """Runs one after the other, then so many by how many of them are under way at once."""
    alone = []
    for _ in range(runs[1]):
        began = time.perf_counter()
        await one()
        alone.append(time.perf_counter() - began)
    rates = {"1": STEPS * len(alone) / sum(alone)}
    for at_once, count in runs.items():
        if at_once > 1:
            began = time.perf_counter()
            await many(one, count, at_once)
            rates[str(at_once)] = STEPS * count / (time.perf_counter() - began)
    return Found(alone_s=alone, steps_per_s=rates)


async def many(one: Callable[[], Awaitable[None]], count: int, at_once: int) -> None:
    """Runs, so many of them under way at once."""
    places = asyncio.Semaphore(at_once)

    async def placed() -> None:
        async with places:
            await one()

    await asyncio.gather(*(placed() for _ in range(count)))


async def measure(name: str, folder: Path, runs: dict[int, int]) -> Found:
    async with PEERS[name](folder) as run:

        async def checked() -> None:
            if await run(TEXT) != TEXT:
                raise AssertionError("another text came back")

        await many(checked, 4, 2)
        return await measure_runs(checked, runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=PEERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("runs", help="JSON: how many runs by how many at once")
    given = parser.parse_args()
    runs = {int(at_once): count for at_once, count in json.loads(given.runs).items()}
    print(asyncio.run(measure(given.name, given.folder, runs)).model_dump_json())


if __name__ == "__main__":
    main()
