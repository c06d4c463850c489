"""Selection of the embedder: multilingual-e5-small, sentence-transformers, an endpoint; models in this process."""

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bus_schema.embeddings import Embedding
from config.settings import FleetSettings
from retrieval.embedding.e5 import MODEL, e5_model
from retrieval.embedding.embedder import (
    Embedder,
    EmbedderMissing,
    EmbedderRefused,
    EmbeddingSpace,
    Endpoint,
    prefixes_for,
)

A = TypeVar("A")
R = TypeVar("R")
Floats = NDArray[np.float32]

# Texts per call of a model: some 450 tokens, a tenth of a second on a core.
_BATCH_CHARS = 2000


class Model(Protocol):
    """Blocking model: texts in, rows of float32 out; `query` and `passages` may run in different threads."""

    space: EmbeddingSpace

    def passages(self, texts: Sequence[str]) -> Floats:
        """Vectors of passages, shape (texts, dim)."""

    def query(self, text: str) -> Floats:
        """Vector of a query, shape (dim,)."""


class ModelThreads:
    """So many threads that compute passages, and one for queries, which wait for none of them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.passages = ThreadPoolExecutor(count, "embedding")
        self.queries = ThreadPoolExecutor(1, "embedding-query")

    def close(self, *, wait: bool = True) -> None:
        """Shut down; what has begun ends."""
        self.passages.shutdown(wait=wait, cancel_futures=True)
        self.queries.shutdown(wait=wait, cancel_futures=True)


class LocalEmbedder:
    """Embedder that runs a model in threads, texts of similar length together, the longest first.

    Several who embed at a time take turns. `release` is called at the end; by default it shuts the threads down.
    """

    def __init__(self, model: Model, threads: ModelThreads, release: Callable[[], None] | None = None) -> None:
        self._model, self._threads = model, threads
        self._release = release or threads.close
        self._is_closed = False

    @property
    def space(self) -> EmbeddingSpace:
        return self._model.space

    async def passages(self, texts: Sequence[str]) -> list[Embedding]:
        batches = similar_lengths(texts)
        embeddings: dict[int, Embedding] = {}

        async def embed() -> None:
            while batches:
                batch = batches.pop()
                rows = await _run(self._threads.passages, self._model.passages, [texts[place] for place in batch])
                embeddings.update(zip(batch, map(self._embedding, rows), strict=True))

        try:
            await asyncio.gather(*(embed() for _ in range(self._threads.count)))
        finally:
            batches.clear()
        return [embeddings[place] for place in range(len(texts))]

    async def query(self, text: str) -> Embedding:
        return self._embedding(await _run(self._threads.queries, self._model.query, text))

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            await asyncio.to_thread(self._release)

    def _embedding(self, row: Floats) -> Embedding:
        return Embedding.of(self.space.model, row.tolist())


def similar_lengths(texts: Sequence[str]) -> list[list[int]]:
    """Places of the texts in batches, short texts first; only a text alone may exceed a batch's characters."""
    batches: list[list[int]] = []
    chars = 0
    for place in sorted(range(len(texts)), key=lambda place: len(texts[place])):
        chars += len(texts[place])
        if not batches or chars > _BATCH_CHARS:
            batches.append([])
            chars = len(texts[place])
        batches[-1].append(place)
    return batches


async def _run(thread: ThreadPoolExecutor, work: Callable[[A], R], argument: A) -> R:
    return await asyncio.get_running_loop().run_in_executor(thread, work, argument)


@dataclass
class _Shared:
    threads: ModelThreads
    loading: "Future[Model]"
    users: int = 0


_shared: dict[str, _Shared] = {}
# Users may run in different event loops.
_lock = threading.Lock()


async def shared_embedder(name: str, threads: int, load: Callable[[], Model]) -> LocalEmbedder:
    """Embedder over a shared model, which is released with its last user. Raises what `load` raises."""
    shared = _acquire(name, threads, load)
    try:
        # A cancelled user does not cancel loading for the others.
        model = await asyncio.shield(asyncio.wrap_future(shared.loading))
    except BaseException:
        _drop(name, shared)
        raise
    return LocalEmbedder(model, shared.threads, lambda: _drop(name, shared))


def _acquire(name: str, count: int, load: Callable[[], Model]) -> _Shared:
    with _lock:
        if name not in _shared:
            threads = ModelThreads(count)
            _shared[name] = _Shared(threads, threads.passages.submit(load))
        _shared[name].users += 1
        return _shared[name]


def _drop(name: str, shared: _Shared) -> None:
    with _lock:
        shared.users -= 1
        if shared.users:
            return
        del _shared[name]
    shared.threads.close(wait=False)


def usable_cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Hardware:
    """Device of a model of sentence-transformers, such as cuda, and the library that computes it."""

    device: str = "cpu"
    backend: Literal["torch", "onnx", "openvino"] = "torch"


class SentenceTransformerModel:
    """Model of sentence-transformers, which has threads of its own; construction may have to download it."""

    def __init__(self, name: str, hardware: Hardware) -> None:
        self._model = _load_sentence_transformer(name, hardware)
        self.space = EmbeddingSpace(name, len(self.query("one")))

    def passages(self, texts: Sequence[str]) -> Floats:
        return np.asarray(self._model.encode_document(list(texts), show_progress_bar=False))

    def query(self, text: str) -> Floats:
        return np.asarray(self._model.encode_query(text, show_progress_bar=False))


def _load_sentence_transformer(name: str, hardware: Hardware) -> Any:
    try:
        import torch
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise EmbedderMissing(f"{name}: {error}") from error
    torch.set_num_threads(usable_cores())
    query, passage = prefixes_for(name)
    prompts = {"query": query, "document": passage} if query else None
    try:
        return SentenceTransformer(name, prompts=prompts, device=hardware.device, backend=hardware.backend)
    except (OSError, ValueError) as error:
        raise EmbedderRefused(f"{name}: {error}") from error


async def open_embedder(
    model: str = MODEL,
    *,
    endpoint: Endpoint | None = None,
    dims: int | None = None,
    hardware: Hardware = Hardware(),
) -> Embedder:
    """Embedder of a model, behind an endpoint if one is given. Raises EmbedderFailure.

    With `dims` given, the endpoint is not contacted yet.
    """
    if endpoint is not None:
        # Imported here: the client takes seconds to import.
        from retrieval.embedding.openai_compatible import EndpointEmbedder

        if dims is not None:
            return EndpointEmbedder(endpoint, EmbeddingSpace(model, dims))
        return await EndpointEmbedder.discover(endpoint, model)

    if model == MODEL:
        return await shared_embedder(model, usable_cores(), e5_model)
    return await shared_embedder(model, 1, lambda: SentenceTransformerModel(model, hardware))


async def configured_embedder(settings: FleetSettings, space: EmbeddingSpace | None = None) -> Embedder:
    """Embedder of the settings' model, or of the model of a space in use. Raises EmbedderFailure."""
    url = settings.embedding_base_url
    endpoint = None if url is None else Endpoint(url, settings.embedding_api_key)
    hardware = Hardware(settings.embedding_device, settings.embedding_backend)
    model, dims = (settings.embedding_model, settings.embedding_dim) if space is None else (space.model, space.dim)
    return await open_embedder(model, endpoint=endpoint, dims=dims, hardware=hardware)
