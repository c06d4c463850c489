"""Waits for what must become true, instead of sleeping."""

import asyncio
import inspect
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, overload

T = TypeVar("T")
POLL_S = 0.02


class NeverHappened(AssertionError):
    """What the test waited for did not come true by the deadline."""


@overload
async def until(
    condition: Callable[[], Coroutine[Any, Any, T]], deadline_s: float = 10, what: str | None = None
) -> T: ...
@overload
async def until(condition: Callable[[], T], deadline_s: float = 10, what: str | None = None) -> T: ...
async def until(condition: Callable[[], Any], deadline_s: float = 10, what: str | None = None) -> Any:
    """The condition's first true result. `what` names it in the error, else its own source does."""
    started = time.monotonic()
    while True:
        result = condition()
        value = await result if inspect.isawaitable(result) else result
        if value:
            return value
        if time.monotonic() - started > deadline_s:
            awaited = what or _source(condition)
            raise NeverHappened(f"not within {deadline_s:g} s: {awaited} (the last look gave {value!r})")
        await asyncio.sleep(POLL_S)


def eventually(condition: Callable[[], object], deadline_s: float, what: str) -> None:
    """The same where there is no event loop: in a fixture, or where a command run in this process needs its own."""
    asyncio.run(until(lambda: asyncio.to_thread(condition), deadline_s, what))


def _source(condition: Callable[[], object]) -> str:
    try:
        return " ".join(inspect.getsource(condition).split())
    except (OSError, TypeError):
        return repr(condition)
