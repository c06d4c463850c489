"""Tasks: supervision of repeated steps, reliable cancellation, work until a signal, group commit, bounded gathering."""

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Any, Generic, TypeVar

from mindbus.errors import TemporaryFailure
from mindbus.logs import logger

T = TypeVar("T")

_TRY_AGAIN_S = 5.0
_FIRST_DELAY_S = 0.2
_LONGEST_DELAY_S = 5.0
_JITTER = 0.5
# At these delays a task has failed for two to three seconds by then: longer than a blip, as of a restarting database.
FAILING_AFTER = 5
# A lasting step that has gone on for so long seems to work, as most that cannot fail at once; after a minute it has.
_WORKS_AFTER_S, _FORGIVEN_AFTER_S = 5.0, 60.0


@dataclass(eq=False)
class Supervised:
    """A step that is repeated for ever; after a failure it waits ever longer, up to five seconds, with jitter.

    One that `lasts` is not meant to end: it counts as working once it has gone on for five seconds.
    """

    name: str
    step: Callable[[], Awaitable[object]]
    interval_s: float
    failures: int = 0
    lasts: bool = False
    _began_at: float = inf

    @property
    def is_failing(self) -> bool:
        """Whether its last five attempts have failed, and the one under way has not gone on for long enough."""
        return self.failures >= FAILING_AFTER and monotonic() - self._began_at < _WORKS_AFTER_S

    def start(self) -> "asyncio.Task[None]":
        """Begin at once, in a task of its name, which ends when it is cancelled."""
        return asyncio.create_task(self.run(begins_at_once=True), name=self.name)

    async def run(self, *, begins_at_once: bool = False) -> None:
        delay_s = 0.0 if begins_at_once else self.interval_s
        among = _LASTING.get([]) if self.lasts else []
        among.append(self)
        try:
            while True:
                await asyncio.sleep(delay_s)
                delay_s = await self._attempt()
        finally:
            among.remove(self)

    async def _attempt(self) -> float:
        """Do the step; returns the seconds to wait before the next."""
        if self.lasts:
            self._began_at = monotonic()
        try:
            await self.step()
        except Exception as error:  # noqa: BLE001  # a step that fails is followed by the next one
            self.failures = 1 if monotonic() - self._began_at >= _FORGIVEN_AFTER_S else self.failures + 1
            self._began_at = inf
            delay_s = max(self.interval_s, backoff_s(self.failures))
            self._log(error, delay_s)
            return delay_s
        if self.failures >= FAILING_AFTER:
            logger().info("task works again", task=self.name, failures=self.failures)
        self.failures = 0
        return self.interval_s

    def _log(self, error: Exception, delay_s: float) -> None:
        if isinstance(error, TemporaryFailure):
            logger().warning("task failed", task=self.name, again_in_s=round(delay_s, 2), reason=str(error))
        else:
            logger().error("task failed", task=self.name, again_in_s=round(delay_s, 2), exc_info=error)


_LASTING: ContextVar[list[Supervised]] = ContextVar("lasting tasks")


@contextmanager
def lasting_tasks() -> Iterator[list[Supervised]]:
    """Those begun within the block, or later by a task that was: they are in the list for as long as they run."""
    tasks: list[Supervised] = []
    before = _LASTING.set(tasks)
    try:
        yield tasks
    finally:
        _LASTING.reset(before)


def backoff_s(failures: int) -> float:
    """Exponential back-off with jitter, in seconds, after that many failures in a row."""
    longest = min(_FIRST_DELAY_S * 2.0 ** min(failures - 1, 10), _LONGEST_DELAY_S)
    return longest * random.uniform(1 - _JITTER, 1)


async def end(*tasks: "asyncio.Task[Any]", try_again_s: float = _TRY_AGAIN_S) -> None:
    """Cancel tasks until they are over; whatever they end with is theirs.

    Once is not always enough: a library in between may take a cancellation for one of its own, then go on.
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=try_again_s)
    await asyncio.gather(*tasks, return_exceptions=True)


def stop_on_signals(stop: asyncio.Event) -> None:
    """SIGTERM and Ctrl-C set `stop`; the second of them ends the process on the spot."""

    def on_signal(number: signal.Signals) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, on_signal, number)


async def run_until_stopped(work: Coroutine[Any, Any, T], on_stop: Callable[[], object] = lambda: None) -> T | None:
    """Do it unless SIGTERM or Ctrl-C comes first; what it has begun is ended in good order. None: it was stopped."""
    stop = asyncio.Event()
    stop_on_signals(stop)
    working, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        stopped.cancel()
        return working.result()
    on_stop()
    working.cancel()
    await asyncio.wait({working})
    return None if working.cancelled() else working.result()


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """A task for the time of a block."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        await end(task)


def kept_running(work: Callable[[], Awaitable[object]], name: str) -> AbstractAsyncContextManager[None]:
    """A task for the time of a block; work that fails is begun again, as a `Supervised` step."""
    return running(Supervised(name, work, 0, lasts=True).run(begins_at_once=True), name)


@dataclass(frozen=True)
class _Item(Generic[T]):
    value: T
    weight: int
    saved: "asyncio.Future[None]"


class Batches(Generic[T]):
    """`add` returns once the batch with the value is saved, or raises what `save` raised.

    A batch closes when `save` is free and `gathers_s` seconds have passed since its first value, at `max_items` values
    or `max_weight` in weight.
    """

    def __init__(
        self, save: Callable[[list[T]], Awaitable[object]], *, max_items: int, max_weight: int, gathers_s: float = 0.0
    ) -> None:
        self._save, self._max_items, self._max_weight, self._gathers_s = save, max_items, max_weight, gathers_s
        self._waiting: asyncio.Queue[_Item[T]] = asyncio.Queue()
        self._left_over: _Item[T] | None = None
        self._saving: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Save in a task of its own, outside the context of any message."""
        self._saving = asyncio.create_task(self._save_forever(), name="batches")

    async def stop(self) -> None:
        """Stop saving; those who still wait are cancelled."""
        if self._saving is not None:
            await end(self._saving)
        while not self._waiting.empty():
            self._waiting.get_nowait().saved.cancel()

    async def add(self, value: T, weight: int = 1) -> None:
        """Returns once it is saved. Raises what `save` raises."""
        item = _Item(value, weight, asyncio.get_running_loop().create_future())
        self._waiting.put_nowait(item)
        await item.saved

    async def _save_forever(self) -> None:
        while True:
            batch = await self._next()
            try:
                await self._save([item.value for item in batch])
            except Exception as error:  # noqa: BLE001  # raised by `add`
                for item in batch:
                    if not item.saved.done():
                        item.saved.set_exception(error)
            else:
                for item in batch:
                    if not item.saved.done():
                        item.saved.set_result(None)

    async def _next(self) -> list[_Item[T]]:
        first, self._left_over = self._left_over, None
        if first is None:
            first = await self._waiting.get()
            if self._waiting.qsize() < self._max_items:
                await asyncio.sleep(self._gathers_s)
        batch, weight = [first], first.weight
        with suppress(asyncio.QueueEmpty):
            while len(batch) < self._max_items:
                item = self._waiting.get_nowait()
                weight += item.weight
                if weight > self._max_weight:
                    self._left_over = item
                    break
                batch.append(item)
        return batch


async def gather_limited(calls: Iterable[Callable[[], Coroutine[Any, Any, T]]], at_once: int) -> list[T]:
    """Results of the calls in order, at most `at_once` running; the first error cancels the rest and is raised."""
    free = asyncio.Semaphore(at_once)

    async def limited(call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async with free:
            return await call()

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(limited(call)) for call in calls]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return [task.result() for task in tasks]
