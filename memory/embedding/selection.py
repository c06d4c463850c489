"""Which embedder to use."""

from memory.embedding.embedder import Embedder, Endpoint
from memory.embedding.local import Model, shared_embedder
from memory.embedding.local_models import MODEL, NanoModel, SentenceTransformerModel
from memory.embedding.space import EmbeddingSpace
from mindbus.settings import Settings


async def open_embedder(
    model: str = MODEL, *, endpoint: Endpoint | None = None, dims: int | None = None, threads: int = 2
) -> Embedder:
    """The one that needs nothing else, or an endpoint's, or sentence-transformers'. Raises EmbedderFailure.

    An endpoint that need not say how many `dims` there are may be away for now.
    """
    if endpoint is not None:
        # The client takes seconds to import, which nobody should wait for who works offline.
        from memory.embedding.openai_compatible import EndpointEmbedder

        if dims is not None:
            return EndpointEmbedder(endpoint, EmbeddingSpace(model, dims))
        return await EndpointEmbedder.asked(endpoint, model)
    return await shared_embedder(model, threads, lambda: _load(model, threads))


def _load(model: str, threads: int) -> Model:
    return NanoModel(threads) if model == MODEL else SentenceTransformerModel(model, threads)


async def configured_embedder(settings: Settings, space: EmbeddingSpace | None = None) -> Embedder:
    """Of the settings' model, unless a space is to be served that was made by another. Raises EmbedderFailure."""
    url = settings.embedding_base_url
    endpoint = None if url is None else Endpoint(url, settings.embedding_api_key)
    if space is None:
        return await open_embedder(settings.embedding_model, endpoint=endpoint, dims=settings.embedding_dim)
    return await open_embedder(space.model, endpoint=endpoint, dims=space.dim)
