"""The index of vectors that the settings name."""

import hashlib

from memory.embedding.space import EmbeddingSpace
from memory.vectors.index import VectorIndex
from mindbus.settings import Settings


def open_vector_index(settings: Settings, service: str, space: EmbeddingSpace) -> VectorIndex:
    """A Qdrant server's, if there is one; else a file. Nothing is opened yet.

    Each model has an index of its own, so that memory can go over to another one while it goes on answering.
    """
    # Imported here: each takes its time, of which only one is used.
    if settings.qdrant_url is None:
        from memory.vectors.embedded import EmbeddedIndex

        digest = hashlib.sha256(space.model.encode()).hexdigest()[:12]
        return EmbeddedIndex(settings.vectors_folder / f"{service}-{digest}.vectors", space)
    from qdrant_client import AsyncQdrantClient

    from memory.vectors.qdrant import QdrantIndex

    client = AsyncQdrantClient(url=settings.qdrant_url, api_key=settings.qdrant_api_key, check_compatibility=False)
    return QdrantIndex(client, space, name=f"mindbus-{service}")
