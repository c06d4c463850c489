"""Interface of the embedding models, which `retrieval.embedding.selection` opens; their errors, spaces and prefixes."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from bus_schema.embeddings import FLOAT_BYTES, Embedding
from bus_schema.replies import Code
from mindbus.errors import MindBusError, Rejected, TemporaryFailure

# From 1.29 on ONNX Runtime sends what it does to its makers, and keeps an id of the machine, unless this is set before
# it is loaded, by whichever model.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


# Of a text; what comes after them changes a vector little.
MOST_CHARS = 6000


class WrongVector(Rejected):
    """Memory compares vectors of one model alone; leave the vector out, or make it with this model."""


class EmbedderFailure(MindBusError, code=Code.UNAVAILABLE):
    """No vectors were made; texts are still found by their words."""

    def __init__(self, detail: str = "") -> None:
        message = (type(self).__doc__ or "").split("\n")[0]
        super().__init__(message=f"{message} ({detail})" if detail else message)


class EmbedderAway(EmbedderFailure, TemporaryFailure):
    """The embedder does not answer, or asks for patience; try again later."""


class EmbedderRefused(EmbedderFailure, Rejected):
    """The embedder refused for good; check the model's name, its number of dimensions, the key."""


class TextRefused(EmbedderRefused):
    """The embedder refuses even the beginning of a text; check the model's name, and what texts it takes."""


class EmbedderMissing(EmbedderFailure, Rejected):
    """The model needs more than is installed: pip install 'mindbus-fleet[embed]', or set MINDBUS_EMBEDDING_BASE_URL."""


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
            actual = {"model": embedding.model, "dim": embedding.dim}
            raise WrongVector(given=actual, expected={"model": self.model, "dim": self.dim})


class Embedder(Protocol):
    """Vectors of one model, made off the event loop; one embedder serves a whole process."""

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


def prefixes_for(model: str) -> tuple[str, str]:
    """Prefixes that the model family expects before search texts and passages; empty for unknown families."""
    name = model.lower()
    return ("query: ", "passage: ") if _E5.search(name) and "instruct" not in name else ("", "")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address of an OpenAI-compatible endpoint; a local one may need no key."""

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    timeout: timedelta = timedelta(seconds=60)
    retries: int = 4
