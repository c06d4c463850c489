"""Waiting for a condition with a deadline, for tests: in the place of `sleep`."""

import asyncio
import inspect
import os
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, overload

T = TypeVar("T")
# By how much longer than they say all deadlines are, on a machine that is slow or busy.
PATIENCE = float(os.environ.get("MINDBUS_TEST_PATIENCE", "1"))
POLL_S = 0.02
# A look that takes long, such as one over the bus, is not to keep busy those whom it waits for.
SLOWEST_POLL_S = 0.5


class ConditionNotMet(AssertionError):
    """The condition did not become true by the deadline."""


@overload
async def until(
    condition: Callable[[], Coroutine[Any, Any, T]], deadline_s: float = 10, what: str | None = None
) -> T: ...
@overload
async def until(condition: Callable[[], T], deadline_s: float = 10, what: str | None = None) -> T: ...
async def until(condition: Callable[[], Any], deadline_s: float = 10, what: str | None = None) -> Any:
    """Poll the condition until it is true and return its result; the longer it takes to evaluate, the less often.

    MINDBUS_TEST_PATIENCE, such as 3, in the environment multiplies the deadline. Raises ConditionNotMet, which names
    the condition by `what`.
    """
    started, deadline_s = time.monotonic(), deadline_s * PATIENCE
    while True:
        looked_at = time.monotonic()
        result = condition()
        value = await result if inspect.isawaitable(result) else result
        if value:
            return value
        if time.monotonic() - started > deadline_s:
            awaited = what or _source(condition)
            raise ConditionNotMet(f"not within {deadline_s:g} s: {awaited} (the last look gave {value!r})")
        took_s = time.monotonic() - looked_at
        await asyncio.sleep(min(max(POLL_S, 2 * took_s), SLOWEST_POLL_S))


def eventually(condition: Callable[[], object], deadline_s: float, what: str) -> None:
    """Wait for a condition where no event loop runs, such as in a fixture. Raises ConditionNotMet."""
    asyncio.run(until(lambda: asyncio.to_thread(condition), deadline_s, what))


def _source(condition: Callable[[], object]) -> str:
    try:
        return " ".join(inspect.getsource(condition).split())
    except (OSError, TypeError):
        return repr(condition)
