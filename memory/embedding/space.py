"""The space in which vectors lie."""

from dataclasses import dataclass

from bus_schema.embeddings import FLOAT_BYTES, Embedding
from memory.errors import WrongVector


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """Vectors of one model; those of another may be as long, but their nearness means nothing."""

    model: str
    dim: int

    @property
    def bytes_of_vector(self) -> int:
        """How many bytes its numbers take."""
        return self.dim * FLOAT_BYTES

    def require(self, embedding: Embedding | None) -> None:
        """Raises WrongVector."""
        if embedding is not None and (embedding.model, embedding.dim) != (self.model, self.dim):
            given = {"model": embedding.model, "dim": embedding.dim}
            raise WrongVector(given=given, expected={"model": self.model, "dim": self.dim})
