"""Interface of the embedding models.

    embedder = await open_embedder(settings.embedding_model)   # memory.embedding.selection
    vectors = await embedder.passages(texts)                   # one Embedding per text, in their order
    vector = await embedder.query(text)                        # of a search text
    embedder.space                                             # EmbeddingSpace(model, dim)

Work is done off the event loop; every failure is an EmbedderFailure (memory.embedding.embedder).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple, Protocol

from bus_schema.embeddings import FLOAT_BYTES, Embedding
from bus_schema.replies import Code
from memory.errors import WrongVector
from mindbus.errors import MindBusError, Rejected, TemporaryFailure


class EmbedderFailure(MindBusError, code=Code.UNAVAILABLE):
    """No vectors were made; texts are still found by their words."""

    def __init__(self, detail: str = "") -> None:
        message = (type(self).__doc__ or "").split("\n")[0]
        super().__init__(message=f"{message} ({detail})" if detail else message)


class EmbedderAway(EmbedderFailure, TemporaryFailure):
    """The embedder does not answer, or asks for patience; try again later."""


class EmbedderRefused(EmbedderFailure, Rejected):
    """The embedder refused for good; check the model's name, its number of dimensions, the key."""


class EmbedderMissing(EmbedderFailure, Rejected):
    """This model needs more than is installed: pip install 'mindbus[embed]', or set MINDBUS_EMBEDDING_BASE_URL."""


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """Model and dimension; cosines between vectors of different models mean nothing, even at equal length."""

    model: str
    dim: int

    @property
    def bytes_of_vector(self) -> int:
        return self.dim * FLOAT_BYTES

    def require(self, embedding: Embedding | None) -> None:
        """Raises WrongVector if the embedding is of another space; None is accepted."""
        if embedding is not None and (embedding.model, embedding.dim) != (self.model, self.dim):
            given = {"model": embedding.model, "dim": embedding.dim}
            raise WrongVector(given=given, expected={"model": self.model, "dim": self.dim})


class Embedder(Protocol):
    """Vectors of one model; one embedder serves a whole process."""

    @property
    def space(self) -> EmbeddingSpace:
        """Space of its vectors."""

    async def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """One embedding per text to be found, in their order. Raises EmbedderAway, EmbedderRefused."""

    async def query(self, text: str) -> Embedding:
        """Embedding of a search text, which some models treat differently. Raises EmbedderAway, EmbedderRefused."""

    async def close(self) -> None:
        """Close threads and connections."""


# Its instruct variants take a whole instruction instead, which the user has to configure.
_E5 = re.compile(r"(?:^|[/_.-])e5(?:[/_.-]|$)")


class Prefixes(NamedTuple):
    """Instruction prefixes that a model expects before search texts and passages."""

    query: str = ""
    passage: str = ""


def prefixes_for(model: str) -> Prefixes:
    """Prefixes of the model family that the name tells; none for unknown families."""
    name = model.lower()
    return Prefixes("query: ", "passage: ") if _E5.search(name) and "instruct" not in name else Prefixes()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address of an OpenAI-compatible endpoint; a local one may need no key."""

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    timeout: timedelta = timedelta(seconds=60)
    retries: int = 4
