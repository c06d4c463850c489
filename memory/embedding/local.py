"""Models that run in this process."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bus_schema.embeddings import Embedding
from memory.embedding.space import EmbeddingSpace


class Model(Protocol):
    """Arithmetic that takes as long as it takes."""

    space: EmbeddingSpace
    # How many texts it is given at once; a question waits for those before it.
    batch: int

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row for each text."""
        ...

    def query(self, text: str) -> NDArray[np.float32]:
        """One row."""
        ...


class LocalEmbedder:
    """One thread does all the arithmetic: two at a time on few cores take longer than one after the other.

    Where others use model and thread as well, `let_go` says that this one does so no longer.
    """

    def __init__(self, model: Model, thread: ThreadPoolExecutor, let_go: Callable[[], None] | None = None) -> None:
        self._model, self._thread = model, thread
        self._let_go = let_go or partial(thread.shutdown, cancel_futures=True)
        self._is_closed = False

    @property
    def space(self) -> EmbeddingSpace:
        """As in Embedder."""
        return self._model.space

    async def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """As in Embedder."""
        found: list[Embedding] = []
        for start in range(0, len(texts), self._model.batch):
            found += await self._in_turn(texts[start : start + self._model.batch])
        return found

    async def query(self, text: str) -> Embedding:
        """As in Embedder."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: self._embedding(self._model.query(text)))

    async def close(self) -> None:
        """As in Embedder."""
        if not self._is_closed:
            self._is_closed = True
            await asyncio.to_thread(self._let_go)

    async def _in_turn(self, batch: Sequence[str]) -> list[Embedding]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._thread, lambda: [self._embedding(row) for row in self._model.passages(batch)]
        )

    def _embedding(self, row: NDArray[np.float32]) -> Embedding:
        return Embedding.of(self.space.model, row.tolist())


def one_thread() -> ThreadPoolExecutor:
    """In which a model is loaded, then used."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedding")


@dataclass
class _Held:
    thread: ThreadPoolExecutor
    loading: "Future[Model]"
    users: int = 0


_held: dict[tuple[str, int], _Held] = {}
# Users may have event loops of their own.
_turn = threading.Lock()


async def shared_embedder(name: str, threads: int, load: Callable[[], Model]) -> LocalEmbedder:
    """Over the model that others may use already; it goes with the last of them. Raises what `load` does."""
    key = name, threads
    held = _taken(key, load)
    try:
        # Whoever does not wait for it any longer leaves it to the others.
        model = await asyncio.shield(asyncio.wrap_future(held.loading))
    except BaseException:
        _let_go(key, held)
        raise
    return LocalEmbedder(model, held.thread, lambda: _let_go(key, held))


def _taken(key: tuple[str, int], load: Callable[[], Model]) -> _Held:
    with _turn:
        if key not in _held:
            thread = one_thread()
            _held[key] = _Held(thread, thread.submit(load))
        _held[key].users += 1
        return _held[key]


def _let_go(key: tuple[str, int], held: _Held) -> None:
    with _turn:
        held.users -= 1
        if held.users:
            return
        del _held[key]
    held.thread.shutdown(wait=False, cancel_futures=True)
