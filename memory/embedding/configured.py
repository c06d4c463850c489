"""The embedder that the settings name."""

from memory.embedding.choice import open_embedder
from memory.embedding.embedder import Embedder
from memory.embedding.endpoint import Endpoint
from memory.embedding.space import EmbeddingSpace
from mindbus.settings import Settings


async def configured_embedder(settings: Settings, space: EmbeddingSpace | None = None) -> Embedder:
    """Of the settings' model, unless a space is to be served that was made by another. Raises EmbedderFailure."""
    url = settings.embedding_base_url
    endpoint = None if url is None else Endpoint(url, settings.embedding_api_key)
    if space is None:
        return await open_embedder(settings.embedding_model, endpoint=endpoint, dims=settings.embedding_dim)
    return await open_embedder(space.model, endpoint=endpoint, dims=space.dim)
