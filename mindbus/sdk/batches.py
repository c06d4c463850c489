"""Group commit: values added one by one, saved in batches."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from mindbus.tasks import end

T = TypeVar("T")


@dataclass(frozen=True)
class _Item(Generic[T]):
    value: T
    weight: int
    saved: "asyncio.Future[None]"


class Batches(Generic[T]):
    """`add` returns once the batch with the value is saved, or raises what `save` raised.

    A batch closes when `save` is free: a single value is saved at once, many together, up to `most` values or
    `heaviest` in weight.
    """

    def __init__(self, save: Callable[[list[T]], Awaitable[object]], *, most: int, heaviest: int) -> None:
        self._save, self._most, self._heaviest = save, most, heaviest
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
        first, self._left_over = self._left_over or await self._waiting.get(), None
        batch, weight = [first], first.weight
        with suppress(asyncio.QueueEmpty):
            while len(batch) < self._most:
                item = self._waiting.get_nowait()
                weight += item.weight
                if weight > self._heaviest:
                    self._left_over = item
                    break
                batch.append(item)
        return batch
