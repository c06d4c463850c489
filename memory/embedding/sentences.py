"""Any model that sentence-transformers can load."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.embedding.failures import EmbedderMissing, EmbedderRefused
from memory.embedding.prefixes import prefixes_of
from memory.embedding.space import EmbeddingSpace


class SentenceModel:
    """Loaded when it is made, which takes seconds, or minutes where it has to be fetched first."""

    batch = 8

    def __init__(self, name: str, threads: int) -> None:
        self._model = _loaded(name, threads)
        self.space = EmbeddingSpace(name, len(self.query("one")))

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As in Model."""
        found: NDArray[np.float32] = self._model.encode_document(list(texts), show_progress_bar=False)
        return found

    def query(self, text: str) -> NDArray[np.float32]:
        """As in Model."""
        found: NDArray[np.float32] = self._model.encode_query(text, show_progress_bar=False)
        return found


def _loaded(name: str, threads: int) -> Any:
    try:
        import torch
        from sentence_transformers import SentenceTransformer
    except ImportError as missing:
        raise EmbedderMissing(f"{name}: {missing}") from missing
    torch.set_num_threads(threads)
    prefixes = prefixes_of(name)
    prompts = {"query": prefixes.query, "document": prefixes.passage} if prefixes.query else None
    try:
        return SentenceTransformer(name, prompts=prompts, device="cpu")
    except (OSError, ValueError) as trouble:
        raise EmbedderRefused(f"{name}: {trouble}") from trouble
