"""States of a task, followed to its end or its question."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress

from a2a.types import Task

from gateway.a2a.wire import PAUSES
from gateway.backend import Backend
from mindbus.errors import BusUnavailable, ReplyError

GetTask = Callable[[], Awaitable[Task]]
# How often a task is looked at that nothing is heard of.
_LOOK_S = 2.0


async def states_of(backend: Backend, get: GetTask) -> AsyncGenerator[Task]:
    """The task now, then whenever something has changed, until it is over or asks something. Raises MindBusError."""
    with backend.feed.listen() as listener:
        shown = await get()
        yield shown
        while shown.status.state not in PAUSES:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await listener.wait()
            listener.take()
            now = await _soon(get)
            if now is not None and now != shown:
                shown = now
                yield shown


async def _soon(get: GetTask) -> Task | None:
    """The task; None while whoever keeps it is away, and comes back."""
    try:
        return await get()
    except (ReplyError, BusUnavailable) as error:
        if not error.code.retryable:
            raise
        return None
