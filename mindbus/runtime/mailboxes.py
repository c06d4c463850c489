"""Mailboxes: messages of one key in order, keys in parallel."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from mindbus.bus.decode import Decoded
from mindbus.bus.transport import Incoming
from mindbus.runtime.processor import Processor
from mindbus.tasks import end

Work = Callable[[], Coroutine[Any, Any, None]]


class Mailboxes:
    """Deliveries of one queue by key; within a key, each waits for the one before it."""

    def __init__(self, processor: Processor, begin: Callable[[Incoming, Work], asyncio.Task[None]]) -> None:
        self._processor, self._begin = processor, begin
        self._arrived: asyncio.Queue[Incoming] = asyncio.Queue()
        self._last: dict[str, asyncio.Task[None]] = {}
        self._is_open = True
        self._sorting = asyncio.create_task(self._sort_arrivals(), name=f"mailboxes of {processor.queue}")

    def deliver(self, incoming: Incoming) -> None:
        """Accept a delivery without blocking."""
        self._arrived.put_nowait(incoming)

    async def close(self) -> None:
        """Start no further delivery; the waiting ones return to the queue, in order, when the consumer closes."""
        self._is_open = False
        await end(self._sorting)

    async def _sort_arrivals(self) -> None:
        while True:
            incoming = await self._arrived.get()
            # One after the other, since the key of a message is known only once it is read.
            await asyncio.wait([self._begin(incoming, partial(self._sort, incoming))])

    async def _sort(self, incoming: Incoming) -> None:
        message = await self._processor.decode(incoming)
        if message is None:
            return
        key = self._processor.worker.order_key(message.message)
        before = self._last.get(key) if key is not None else None
        task = self._begin(incoming, partial(self._execute, message, incoming, before))
        if key is not None:
            self._last[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))

    async def _execute(self, message: Decoded, incoming: Incoming, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        if self._is_open:
            await self._processor.execute(message, incoming)

    def _forget(self, key: str, done: asyncio.Task[None]) -> None:
        if self._last.get(key) is done:
            del self._last[key]
