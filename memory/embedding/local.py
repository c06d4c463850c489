"""Models that run in this process, each loaded once and shared by its users."""

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
    """Blocking model: texts in, rows of float32 out."""

    space: EmbeddingSpace
    # Texts per call; a query waits until the call before it returns.
    batch: int

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of passages, shape (texts, dim)."""

    def query(self, text: str) -> NDArray[np.float32]:
        """Vector of a query, shape (dim,)."""


class LocalEmbedder:
    """Embedder that runs a model in one thread: on few cores, two computations at once take longer.

    `release` is called at the end; by default it shuts the thread down.
    """

    def __init__(self, model: Model, thread: ThreadPoolExecutor, release: Callable[[], None] | None = None) -> None:
        self._model, self._thread = model, thread
        self._release = release or partial(thread.shutdown, cancel_futures=True)
        self._is_closed = False

    @property
    def space(self) -> EmbeddingSpace:
        return self._model.space

    async def passages(self, texts: Sequence[str]) -> list[Embedding]:
        embeddings: list[Embedding] = []
        for start in range(0, len(texts), self._model.batch):
            embeddings += await self._on_thread(texts[start : start + self._model.batch])
        return embeddings

    async def query(self, text: str) -> Embedding:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: self._embedding(self._model.query(text)))

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            await asyncio.to_thread(self._release)

    async def _on_thread(self, batch: Sequence[str]) -> list[Embedding]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._thread, lambda: [self._embedding(row) for row in self._model.passages(batch)]
        )

    def _embedding(self, row: NDArray[np.float32]) -> Embedding:
        return Embedding.of(self.space.model, row.tolist())


def one_thread() -> ThreadPoolExecutor:
    """Thread in which a model is loaded and used."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedding")


@dataclass
class _Shared:
    thread: ThreadPoolExecutor
    loading: "Future[Model]"
    users: int = 0


_shared: dict[tuple[str, int], _Shared] = {}
# Users may run in different event loops.
_lock = threading.Lock()


async def shared_embedder(name: str, threads: int, load: Callable[[], Model]) -> LocalEmbedder:
    """Embedder over a shared model, which is released with its last user. Raises what `load` raises."""
    key = name, threads
    shared = _acquire(key, load)
    try:
        # A cancelled user does not cancel loading for the others.
        model = await asyncio.shield(asyncio.wrap_future(shared.loading))
    except BaseException:
        _drop(key, shared)
        raise
    return LocalEmbedder(model, shared.thread, lambda: _drop(key, shared))


def _acquire(key: tuple[str, int], load: Callable[[], Model]) -> _Shared:
    with _lock:
        if key not in _shared:
            thread = one_thread()
            _shared[key] = _Shared(thread, thread.submit(load))
        _shared[key].users += 1
        return _shared[key]


def _drop(key: tuple[str, int], shared: _Shared) -> None:
    with _lock:
        shared.users -= 1
        if shared.users:
            return
        del _shared[key]
    shared.thread.shutdown(wait=False, cancel_futures=True)
