"""Tasks of a worker beside its messages: its own, each step in a unit of work; replay after crashes."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from mindbus.bus.outcomes import REPLAYED_BY, address_results, retry_copy
from mindbus.bus.routes import TaskRoute
from mindbus.bus.sender import Sender
from mindbus.bus.topology import Rung, dead_queue, service_of
from mindbus.bus.transport import Incoming, Outgoing, Transport
from mindbus.bus.worker import Worker
from mindbus.errors import BusUnavailable
from mindbus.logs import logger
from mindbus.tasks import Supervised, end

_PUBLISH_AGAIN_S = 1.0
_END = object()
# Crashes end by a start, at which it looks, too: more often is for a look that the broker's absence has cut short.
_LOOK_EVERY_S = 600.0


class WorkerTasks:
    """Runs the `@every` and `@background` methods of a worker and of its routers while it consumes.

    With a `replay`, what has died with another message is handled after all.
    """

    def __init__(
        self, worker: Worker, sender: Sender, transport: Transport, replay: "CrashReplay | None" = None
    ) -> None:
        self._worker, self._sender, self._transport, self._replay = worker, sender, transport, replay
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
        if self._replay is not None:
            looking = Supervised(f"{self._worker.name} replay after crashes", self._replay.step, _LOOK_EVERY_S)
            self._running.append(looking.start())

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


class CrashReplay:
    """Sends back, once, what the broker dead-lettered for being delivered too often, and nobody has handled.

    Of those only one has killed the worker, again and again: that one dies once more, then stays with the dead.
    """

    def __init__(self, worker: Worker, transport: Transport, rung: Rung) -> None:
        self._worker, self._transport, self._rung = worker, transport, rung

    async def step(self) -> None:
        """Look at all dead letters once. Raises DatabaseAway."""
        try:
            await self._replay_letters()
        except BusUnavailable as error:
            logger().warning("dead letters not looked at", worker=self._worker.name, reason=str(error))

    async def _replay_letters(self) -> None:
        replayed = 0
        async with aclosing(self._transport.waiting(dead_queue(self._worker.name))) as letters:
            async for letter in letters:
                queue = _exceeded_at(letter)
                if queue is not None and service_of(queue) == self._worker.name and not await self._is_handled(letter):
                    await self._send_back(letter, queue)
                    replayed += 1
        if replayed:
            logger().warning("dead letters of crashes replayed", worker=self._worker.name, messages=replayed)

    async def _is_handled(self, letter: Incoming) -> bool:
        message_id = letter.properties.message_id or ""
        return message_id in await self._worker.inbox.outcomes_of(self._worker.name, [message_id])

    async def _send_back(self, letter: Incoming, queue: str) -> None:
        copy = retry_copy(letter, self._rung, queue, 1, "its worker died of it, or of another message")
        copy.headers[REPLAYED_BY] = f"svc.{self._worker.name}"
        await self._transport.publish(copy)
        await letter.ack()


def _exceeded_at(letter: Incoming) -> str | None:
    """Queue at which a message was delivered too often; None where it died of something else, or was replayed."""
    headers: dict[str, Any] = letter.headers
    deaths = headers.get("x-death")
    if REPLAYED_BY in headers or not isinstance(deaths, list) or not deaths:
        return None
    death = deaths[0]
    return str(death.get("queue")) if isinstance(death, dict) and death.get("reason") == "delivery_limit" else None
