"""Interface of the embedding models.

    embedder = await open_embedder(settings.embedding_model)   # memory.embedding.selection
    vectors = await embedder.passages(texts)                   # one Embedding per text, in their order
    vector = await embedder.query(text)                        # of a search text
    embedder.space                                             # EmbeddingSpace(model, dim)

Work is done off the event loop; every failure is an EmbedderFailure (memory.embedding.errors).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple, Protocol

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


# Its instructed kin take a whole instruction instead, which is theirs to say.
_E5 = re.compile(r"(?:^|[/_.-])e5(?:[/_.-]|$)")


class Prefixes(NamedTuple):
    """For questions, for what answers them."""

    query: str = ""
    passage: str = ""


def prefixes_for(model: str) -> Prefixes:
    """By the family that its name tells."""
    name = model.lower()
    return Prefixes("query: ", "passage: ") if _E5.search(name) and "instruct" not in name else Prefixes()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address; a local one may want no key."""

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    timeout: timedelta = timedelta(seconds=60)
    retries: int = 4
