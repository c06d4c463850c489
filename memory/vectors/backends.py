"""The vector index that the settings name."""

import hashlib

from config.settings import FleetSettings
from memory.embedding.space import EmbeddingSpace
from memory.vectors.index import VectorIndex


def open_vector_index(settings: FleetSettings, service: str, space: EmbeddingSpace) -> VectorIndex:
    """Qdrant if there is a URL, else a file; not opened yet.

    Each model has an index of its own, so that memory can migrate to another model while it goes on answering.
    """
    # Imported here: only one is used, and each takes time to import.
    if settings.qdrant_url is None:
        from memory.vectors.embedded import EmbeddedIndex

        digest = hashlib.sha256(space.model.encode()).hexdigest()[:12]
        return EmbeddedIndex(settings.vectors_folder / f"{service}-{digest}.vectors", space)
    from qdrant_client import AsyncQdrantClient

    from memory.vectors.qdrant import QdrantIndex

    client = AsyncQdrantClient(url=settings.qdrant_url, api_key=settings.qdrant_api_key, check_compatibility=False)
    return QdrantIndex(client, space, name=f"mindbus-{service}")
