"""Every embedder keeps the same promises, whatever makes its vectors."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from bus_schema.embeddings import Embedding
from retrieval.embedding.embedder import (
    Embedder,
    EmbedderAway,
    EmbedderMissing,
    EmbedderRefused,
    EmbeddingSpace,
    Endpoint,
    TextRefused,
    prefixes_for,
)
from retrieval.embedding.selection import open_embedder
from tests.embedding_server import USAGE, EmbeddingServer
from tests.hashing_embedder import HashingEmbedder

TEXTS = [
    "The cat sleeps on the warm stove.",
    "Квартальный отчёт сдают в бухгалтерию до пятницы.",
    "Release 2.4 was moved to Monday because of the migration.",
    "Рыбак поймал щуку весом семь килограммов.",
    "",
    "🙂",
]
LONG = "Слово за слово. " * 2000


def endpoint_of(server: EmbeddingServer, timeout_s: float = 5, retries: int = 0) -> Endpoint:
    return Endpoint(server.url, "sk-secret", timedelta(seconds=timeout_s), retries)


def cosine(one: Embedding, other: Embedding) -> float:
    a, b = np.array(one.floats), np.array(other.floats)
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


@pytest.fixture(params=["hashing", "nano", "endpoint"])
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    if request.param == "endpoint":
        with EmbeddingServer() as server:
            found = await open_embedder("small", endpoint=endpoint_of(server))
            yield found
            await found.close()
        return
    found = HashingEmbedder() if request.param == "hashing" else await open_embedder()
    yield found
    await found.close()


async def test_each_text_has_its_vector_in_its_place(embedder: Embedder) -> None:
    together = await embedder.passages(TEXTS)
    alone = [(await embedder.passages([text]))[0] for text in TEXTS]

    assert [each.dim for each in together] == [embedder.space.dim] * len(TEXTS)
    for one, other in zip(together, alone, strict=True):
        embedder.space.require(one)
        assert cosine(one, other) > 0.999


async def test_nothing_has_no_vectors(embedder: Embedder) -> None:
    assert await embedder.passages([]) == []


async def test_a_question_lies_in_the_same_space(embedder: Embedder) -> None:
    question = await embedder.query("When is release 2.4?")
    passages = await embedder.passages(TEXTS)

    embedder.space.require(question)
    assert max(range(len(TEXTS)), key=lambda n: cosine(question, passages[n])) == 2


@pytest.mark.slow
async def test_a_text_beyond_all_measure_is_cut_rather_than_refused(embedder: Embedder) -> None:
    (vector,) = await embedder.passages([LONG])

    assert cosine(vector, (await embedder.passages([LONG[:1000]]))[0]) > 0.9


@pytest.mark.slow
async def test_questions_are_answered_while_documents_are_embedded(embedder: Embedder) -> None:
    many = asyncio.ensure_future(embedder.passages(TEXTS * 10))
    first = await asyncio.wait_for(embedder.query("Кто поймал щуку?"), timeout=30)

    assert first.dim == embedder.space.dim
    assert len(await many) == len(TEXTS) * 10


async def test_the_offline_model_understands_both_languages_across_each_other() -> None:
    embedder = await open_embedder()
    try:
        passages = await embedder.passages(TEXTS[:4])
        for question, answer in (("When is the report due?", 1), ("Who caught the fish?", 3), ("Где спит кот?", 0)):
            asked = await embedder.query(question)
            assert max(range(4), key=lambda n: cosine(asked, passages[n])) == answer, question
    finally:
        await embedder.close()


@pytest.mark.parametrize(
    ("model", "prefix"),
    [
        ("multilingual-e5-small", "query: "),
        ("intfloat/multilingual-e5-large", "query: "),
        ("intfloat/e5-base-v2", "query: "),
        ("intfloat/multilingual-e5-large-instruct", ""),
        ("text-embedding-3-small", ""),
        ("e5x", ""),
    ],
)
def test_models_hear_what_they_are_used_to(model: str, prefix: str) -> None:
    assert prefixes_for(model)[0] == prefix


async def test_an_endpoint_is_asked_as_it_wants_to_be() -> None:
    with EmbeddingServer() as server:
        embedder = await open_embedder("intfloat/e5-small", endpoint=endpoint_of(server), dims=64)
        await embedder.passages([f"text {n}" for n in range(70)])
        await embedder.query("кто?")
        await embedder.close()

    assert embedder.space == EmbeddingSpace("intfloat/e5-small", 64)
    assert [len(request["input"]) for request in server.requests] == [64, 6, 1]
    assert server.requests[0]["input"][0] == "passage: text 0"
    assert server.requests[2]["input"] == ["query: кто?"]
    assert server.requests[0]["key"] == "Bearer sk-secret"


def said(*vectors: Any) -> tuple[int, Any]:
    data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
    return 200, {"object": "list", "model": "small", "data": data, "usage": USAGE}


@pytest.mark.parametrize(
    ("answer", "failure", "reason"),
    [
        ((503, {"error": {"message": "busy"}}), EmbedderAway, "HTTP 503"),
        ((504, {"error": {"message": "the model took too long"}}), EmbedderAway, "HTTP 504"),
        ((429, {"error": {"message": "slow down"}}), EmbedderAway, "HTTP 429"),
        ((401, {"error": {"message": "who are you"}}), EmbedderRefused, "HTTP 401"),
        ((404, {"error": {"message": "no such model"}}), EmbedderRefused, "HTTP 404"),
        ((200, "<html>a proxy's page</html>"), EmbedderAway, "no answer"),
        ((200, {"object": "list"}), EmbedderAway, "no answer"),
        (said(), EmbedderAway, "0 vectors for 1 texts"),
        (said([1.0, 2.0]), EmbedderRefused, "2 dimensions, not 64"),
        (said([0.0] * 64), EmbedderRefused, "no direction"),
        (said([float("nan")] * 64), EmbedderRefused, "no direction"),
    ],
)
async def test_what_an_endpoint_cannot_do_has_a_name(
    answer: tuple[int, Any], failure: type[Exception], reason: str
) -> None:
    with EmbeddingServer(answer) as server:
        embedder = await open_embedder("small", endpoint=endpoint_of(server), dims=64)
        with pytest.raises(failure, match=reason) as met:
            await embedder.query("a secret question")
        await embedder.close()

    assert "secret" not in str(met.value)


@pytest.mark.parametrize("too_long", [400, 413, 500])
async def test_a_text_that_an_endpoint_refuses_as_too_long_holds_no_other_up(too_long: int) -> None:
    texts = [*TEXTS, LONG, "Wind comes from the west."]
    with EmbeddingServer(most_chars=500, too_long=too_long) as server:
        embedder = await open_embedder("small", endpoint=endpoint_of(server, retries=0), dims=64)
        vectors = await embedder.passages(texts)
        question = await embedder.query(LONG)
        beginning = await embedder.query(LONG[:300])
        await embedder.close()

    assert len(vectors) == len(texts)
    assert cosine(question, beginning) > 0.9


async def test_an_endpoint_that_refuses_every_text_is_asked_a_few_times_only() -> None:
    with EmbeddingServer(most_chars=-1) as server:
        embedder = await open_embedder("small", endpoint=endpoint_of(server), dims=64)
        with pytest.raises(TextRefused, match="HTTP 400"):
            await embedder.passages([LONG] * 64)
        await embedder.close()

    assert len(server.requests) < 20


async def test_an_endpoint_that_is_not_there_is_away() -> None:
    with EmbeddingServer() as server:
        gone = endpoint_of(server)
    embedder = await open_embedder("small", endpoint=gone, dims=64)
    with pytest.raises(EmbedderAway, match="no connection"):
        await embedder.query("anybody?")
    await embedder.close()


async def test_an_endpoint_that_was_busy_is_asked_again() -> None:
    with EmbeddingServer((503, {"error": {"message": "busy"}})) as server:
        embedder = await open_embedder("small", endpoint=endpoint_of(server, retries=1), dims=64)
        assert (await embedder.query("now?")).dim == 64
        await embedder.close()


async def test_a_model_that_is_not_installed_says_what_to_install() -> None:
    try:
        import sentence_transformers  # noqa: F401
    except ImportError:
        with pytest.raises(EmbedderMissing, match=r"mindbus-fleet\[embed\]"):
            await open_embedder("intfloat/multilingual-e5-base")
    else:
        pytest.skip("it is installed")
