"""An embedder for tests: words are hashed into a few dimensions, so that the same words are near, no others."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bus_schema.embeddings import Embedding
from language.words import stems
from retrieval.embedding.embedder import EmbedderAway, EmbeddingSpace
from retrieval.embedding.selection import LocalEmbedder, ModelThreads

DIM = 64


class HashingModel:
    """Deterministic, on every machine."""

    def __init__(self, name: str = "hashing", dim: int = DIM) -> None:
        self.space = EmbeddingSpace(name, dim)

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([self.query(text) for text in texts])

    def query(self, text: str) -> NDArray[np.float32]:
        vector = np.full(self.space.dim, 0.01, dtype=np.float32)
        for stem in stems(text):
            digest = hashlib.blake2b(f"{self.space.model} {stem}".encode(), digest_size=4).digest()
            vector[int.from_bytes(digest) % self.space.dim] += 1
        return vector / np.linalg.norm(vector)


class HashingEmbedder(LocalEmbedder):
    """Does not answer while it is `away`; answers so many batches more when it is to be away `after` them."""

    def __init__(self, name: str = "hashing", dim: int = DIM) -> None:
        super().__init__(HashingModel(name, dim), ModelThreads(2))
        self.away = False
        self.after: int | None = None
        self.embedded = 0

    async def passages(self, texts: Sequence[str]) -> list[Embedding]:
        self._answer()
        self.embedded += len(texts)
        return await super().passages(texts)

    async def query(self, text: str) -> Embedding:
        self._answer()
        return await super().query(text)

    def _answer(self) -> None:
        if self.after is not None:
            self.away = self.away or self.after == 0
            self.after -= 1
        if self.away:
            raise EmbedderAway("out for lunch")
