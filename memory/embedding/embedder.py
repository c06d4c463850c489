"""Interface of the embedding models.

    embedder = await open_embedder(settings.embedding_model)   # memory.embedding.choice
    vectors = await embedder.passages(texts)                   # one Embedding per text, in their order
    vector = await embedder.query(text)                        # of a search text
    embedder.space                                             # EmbeddingSpace(model, dim)

Work is done off the event loop; every failure is an EmbedderFailure (memory.embedding.failures).
"""

from collections.abc import Sequence
from typing import Protocol

from bus_schema.embeddings import Embedding
from memory.embedding.space import EmbeddingSpace


class Embedder(Protocol):
    """Vectors of one model, in one space; one embedder serves a whole process."""

    @property
    def space(self) -> EmbeddingSpace:
        """Where its vectors lie."""
        ...

    async def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """One for each text, in their order. Raises EmbedderAway, EmbedderRefused."""
        ...

    async def query(self, text: str) -> Embedding:
        """Of a question; some models tell it from what answers it. Raises EmbedderAway, EmbedderRefused."""
        ...

    async def close(self) -> None:
        """Let go of threads and connections."""
        ...
