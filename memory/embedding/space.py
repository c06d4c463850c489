"""The space in which vectors can be compared."""

from dataclasses import dataclass

from bus_schema.embeddings import FLOAT_BYTES, Embedding
from memory.errors import WrongVector


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """Model and dimension; cosines between vectors of different models mean nothing, even at equal length."""

    model: str
    dim: int

    @property
    def bytes_of_vector(self) -> int:
        """Bytes of an encoded vector."""
        return self.dim * FLOAT_BYTES

    def require(self, embedding: Embedding | None) -> None:
        """Raises WrongVector if the embedding is of another space; None is accepted."""
        if embedding is not None and (embedding.model, embedding.dim) != (self.model, self.dim):
            given = {"model": embedding.model, "dim": embedding.dim}
            raise WrongVector(given=given, expected={"model": self.model, "dim": self.dim})
