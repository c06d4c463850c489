"""Waiting for the end of a simulation."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bus_schema.replies import Code
from bus_schema.sim import GetSimStatus, SimCounts, SimState
from mindbus.bus.client import Client
from mindbus.cli.console import errors
from mindbus.cli.errors import CommandError
from mindbus.errors import BusUnavailable, ReplyError

_LOOKS_S = 0.5
_TELLS_S = 5.0


@dataclass
class Started:
    """The simulation that goes on if whoever waits for it leaves."""

    sim_id: str | None = None


async def until_over(bus: Client, sim_id: str, limit: int | None, *, is_silent: bool) -> SimCounts:
    """What it has come to. Raises ReplyError; CommandError where it is not there any more."""
    with _progress(limit, is_silent=is_silent) as tell:
        while True:
            state = await _look(bus)
            if state is not None:
                if state.counts is None or state.counts.sim_id != sim_id:
                    raise CommandError(f"{sim_id} is not there any more: its data were cleared", Code.NOT_FOUND)
                tell(state.counts)
                if not state.is_running:
                    return state.counts
            await asyncio.sleep(_LOOKS_S)


async def _look(bus: Client) -> SimState | None:
    try:
        return await bus.request(GetSimStatus())
    except ReplyError as failed:
        if not failed.retryable:
            raise
    except BusUnavailable:
        pass
    return None


@contextmanager
def _progress(limit: int | None, *, is_silent: bool) -> Iterator[Callable[[SimCounts], None]]:
    """A bar on a terminal, else a line once in a while."""
    console = errors()
    said_at = time.monotonic()

    def tell_in_lines(counts: SimCounts) -> None:
        nonlocal said_at
        if not is_silent and time.monotonic() - said_at > _TELLS_S:
            said_at = time.monotonic()
            console.print(f"{counts.answered} of {limit or counts.sent} answered", markup=False)

    if not console.is_terminal:
        yield tell_in_lines
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("answered", total=limit)
        yield lambda counts: bar.update(task, completed=counts.answered + counts.failed)
