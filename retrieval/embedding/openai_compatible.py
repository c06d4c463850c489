"""Embedder behind an OpenAI-compatible endpoint."""

import json
from collections.abc import Sequence
from typing import Self

import openai
from openai.types import CreateEmbeddingResponse

from bus_schema.embeddings import Embedding
from retrieval.embedding.embedder import (
    MOST_CHARS,
    EmbedderAway,
    EmbedderFailure,
    EmbedderRefused,
    EmbeddingSpace,
    Endpoint,
    TextRefused,
    prefixes_for,
)
from retrieval.openai_client import open_client

_BATCH = 64
# Refused at this length, a text is not refused for its length.
_SHORTEST_CUT = 200
_NO_ANSWER = "the endpoint sent something that is no answer"
_RETRYABLE_STATUSES = frozenset({408, 409, 429})
# As endpoints refuse a text that is too long; llama.cpp does so with 500, and these words.
_OF_TEXT_STATUSES = frozenset({400, 413, 422})
_TOO_LONG = "is too large to process"


class EndpointEmbedder:
    """Embedder over the OpenAI client, which retries by itself with backoff and Retry-After; logs no texts or keys."""

    def __init__(self, endpoint: Endpoint, space: EmbeddingSpace) -> None:
        self.space = space
        self._query_prefix, self._passage_prefix = prefixes_for(space.model)
        self._client = _client(endpoint)

    @classmethod
    async def discover(cls, endpoint: Endpoint, model: str) -> Self:
        """Embedder whose dimensions are found by a request. Raises EmbedderAway, EmbedderRefused."""
        async with _client(endpoint) as client:
            (vector,) = await _create_embeddings(client, model, ["one"])
        return cls(endpoint, EmbeddingSpace(model, len(vector)))

    async def passages(self, texts: Sequence[str]) -> list[Embedding]:
        embeddings: list[Embedding] = []
        for start in range(0, len(texts), _BATCH):
            embeddings += await self._embed_all(
                [self._passage_prefix + text[:MOST_CHARS] for text in texts[start : start + _BATCH]]
            )
        return embeddings

    async def query(self, text: str) -> Embedding:
        (embedding,) = await self._embed_all([self._query_prefix + text[:MOST_CHARS]])
        return embedding

    async def close(self) -> None:
        await self._client.close()

    async def _embed_all(self, texts: list[str]) -> list[Embedding]:
        """Embed the texts; one that the endpoint refuses, most often as too long, is cut until it takes it."""
        try:
            # Endpoints refuse an empty one.
            return await self._embed([text or " " for text in texts])
        except TextRefused:
            if len(texts) == 1 and len(texts[0]) <= _SHORTEST_CUT:
                raise
        if len(texts) == 1:
            return await self._embed_all([texts[0][: len(texts[0]) // 2]])
        middle = len(texts) // 2
        return [*await self._embed_all(texts[:middle]), *await self._embed_all(texts[middle:])]

    async def _embed(self, texts: list[str]) -> list[Embedding]:
        vectors = await _create_embeddings(self._client, self.space.model, texts)
        if dims := {len(vector) for vector in vectors} - {self.space.dim}:
            raise EmbedderRefused(f"its vectors have {max(dims)} dimensions, not {self.space.dim}")
        try:
            return [Embedding.of(self.space.model, vector) for vector in vectors]
        except ValueError as error:
            raise EmbedderRefused("it sent what is no direction: NaN, infinity or zero throughout") from error


def _client(endpoint: Endpoint) -> openai.AsyncOpenAI:
    return open_client(endpoint.base_url, endpoint.api_key, endpoint.timeout.total_seconds(), endpoint.retries)


async def _create_embeddings(client: openai.AsyncOpenAI, model: str, texts: list[str]) -> list[list[float]]:
    """Vectors of the texts. Raises EmbedderFailure, without the request in it."""
    try:
        response = await client.embeddings.create(model=model, input=texts, encoding_format="float")
    except openai.APIStatusError as error:
        raise _by_status(error) from error
    except openai.APITimeoutError as error:
        raise EmbedderAway("timed out") from error
    except openai.APIConnectionError as error:
        raise EmbedderAway(f"no connection: {type(error.__cause__).__name__}") from error
    except (json.JSONDecodeError, openai.APIError) as error:
        raise EmbedderAway(_NO_ANSWER) from error
    # The client does not validate responses: a proxy's page arrives as text, a missing field as a missing attribute.
    is_answer = isinstance(response, CreateEmbeddingResponse)
    if not (is_answer and "data" in response.model_fields_set):
        raise EmbedderAway(_NO_ANSWER)
    if sorted(item.index for item in response.data) != list(range(len(texts))):
        raise EmbedderAway(f"the endpoint sent {len(response.data)} vectors for {len(texts)} texts")
    return [item.embedding for item in sorted(response.data, key=lambda item: item.index)]


def _by_status(error: openai.APIStatusError) -> EmbedderFailure:
    detail = f"HTTP {error.status_code}: {error.message}"
    if error.status_code in _OF_TEXT_STATUSES or _TOO_LONG in error.message:
        return TextRefused(detail)
    is_passing = error.status_code in _RETRYABLE_STATUSES or error.status_code >= 500
    return EmbedderAway(detail) if is_passing else EmbedderRefused(detail)
