"""Which embedder to use."""

import asyncio

from memory.embedding.embedder import Embedder
from memory.embedding.endpoint import Endpoint
from memory.embedding.local import LocalEmbedder, Model, one_thread
from memory.embedding.nano import MODEL, NanoModel
from memory.embedding.sentences import SentenceModel
from memory.space import Space


async def open_embedder(
    model: str = MODEL, *, endpoint: Endpoint | None = None, dims: int | None = None, threads: int = 1
) -> Embedder:
    """The one that needs nothing else, or an endpoint's, or sentence-transformers'. Raises EmbedderFailure.

    An endpoint that need not say how many `dims` there are may be away for now.
    """
    if endpoint is not None:
        # The client takes seconds to import, which nobody should wait for who works offline.
        from memory.embedding.openai_compatible import EndpointEmbedder

        if dims is not None:
            return EndpointEmbedder(endpoint, Space(model, dims))
        return await EndpointEmbedder.asked(endpoint, model)
    thread = one_thread()
    loaded = await asyncio.get_running_loop().run_in_executor(thread, _loaded, model, threads)
    return LocalEmbedder(loaded, thread)


def _loaded(model: str, threads: int) -> Model:
    return NanoModel(threads) if model == MODEL else SentenceModel(model, threads)
