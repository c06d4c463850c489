"""Periodic and background tasks of a worker: supervised, each step in a unit of work."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from mindbus.bus.outcomes import address_results
from mindbus.bus.routes import TaskRoute
from mindbus.bus.sender import Sender
from mindbus.bus.transport import Outgoing, Transport
from mindbus.bus.worker import Worker
from mindbus.errors import BusUnavailable
from mindbus.logs import logger
from mindbus.tasks import Supervised, end

_PUBLISH_AGAIN_S = 1.0
_END = object()


class WorkerTasks:
    """Runs the `@every` and `@background` methods of a worker and of its routers while it consumes."""

    def __init__(self, worker: Worker, sender: Sender, transport: Transport) -> None:
        self._worker, self._sender, self._transport = worker, sender, transport
        self._supervised: list[Supervised] = []
        self._running: list[asyncio.Task[None]] = []

    @property
    def failing(self) -> list[str]:
        """Names of those that have failed again and again."""
        return [task.name for task in self._supervised if task.is_failing]

    def start(self) -> None:
        """Begin all of them: background tasks at once, periodic ones after their first interval."""
        for task in self._worker.routes.tasks:
            name = f"{self._worker.name}.{task.label}"
            supervised = Supervised(name, partial(self.step, task), task.seconds)
            self._supervised.append(supervised)
            run = supervised.run(begins_at_once=task.is_background)
            self._running.append(asyncio.create_task(run, name=name))

    async def stop(self) -> None:
        await end(*self._running)
        self._running.clear()
        self._supervised.clear()

    async def step(self, task: TaskRoute) -> list[Outgoing]:
        """Run the method once; what it writes through its database and what it returns take effect together.

        Returns the messages that it caused.
        """
        method = task.handler(self._worker)
        if not inspect.isasyncgenfunction(method):
            return await self._run_unit(method)
        async with aclosing(method()) as generator:
            return await self._run_generator(generator)

    async def _run_generator(self, generator: AsyncGenerator[Any, None]) -> list[Outgoing]:
        """Resume the generator after each yield once its messages are safe; else raise the error there."""
        has_yielded, is_over = False, False
        caused: list[Outgoing] = []

        async def resume() -> Any:
            nonlocal has_yielded, is_over
            has_yielded = False
            item = await anext(generator, _END)
            has_yielded, is_over = item is not _END, item is _END
            return None if item is _END else item

        while not is_over:
            try:
                caused += await self._run_unit(resume)
            except Exception as error:
                if has_yielded:
                    await generator.athrow(error)
                raise
        return caused

    async def _run_unit(self, work: Callable[[], Awaitable[Any]]) -> list[Outgoing]:
        inbox = self._worker.inbox
        async with inbox.unit_of_work(self._worker.name) as unit:
            outgoing = await address_results(await work(), self._sender, None)
            if outgoing:
                await unit.publish(outgoing)
        if not inbox.publishes:
            await self._publish(outgoing)
        return outgoing

    async def _publish(self, messages: Sequence[Outgoing]) -> None:
        """Publish, retrying under the same ids while the bus is away."""
        for message in messages:
            while True:
                try:
                    await self._transport.publish(message)
                    break
                except BusUnavailable as error:
                    logger().warning("cannot publish, trying on", worker=self._worker.name, reason=str(error))
                    await asyncio.sleep(_PUBLISH_AGAIN_S)
