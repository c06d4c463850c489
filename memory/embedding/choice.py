"""Which embedder to use."""

from memory.embedding.embedder import Embedder
from memory.embedding.endpoint import Endpoint
from memory.embedding.local import Model
from memory.embedding.nano import MODEL, NanoModel
from memory.embedding.sentences import SentenceModel
from memory.embedding.sharing import shared_embedder
from memory.embedding.space import EmbeddingSpace


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
    return await shared_embedder(model, threads, lambda: _loaded(model, threads))


def _loaded(model: str, threads: int) -> Model:
    return NanoModel(threads) if model == MODEL else SentenceModel(model, threads)
