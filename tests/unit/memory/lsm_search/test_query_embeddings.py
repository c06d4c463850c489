"""Whoever asks waits for a vector, but not for long, nor again and again."""

from bus_schema.embeddings import Embedding
from memory.lsm.search.embeddings import QueryEmbeddings
from tests.hashing_embedder import HashingEmbedder


class Counting(HashingEmbedder):
    """Knows how often it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def query(self, text: str) -> Embedding:
        self.asked += 1
        return await super().query(text)


async def test_an_embedder_that_does_not_answer_is_left_alone_for_a_while() -> None:
    now = [0.0]
    questions, embedder = QueryEmbeddings(lambda: now[0]), Counting()
    questions.embedder = embedder
    assert await questions.of("known")
    embedder.away = True

    assert not any([await questions.of(f"question {number}") for number in range(20)])
    assert embedder.asked == 1 + 2
    assert await questions.of("known"), "what is kept is answered all the same"

    embedder.away, now[0] = False, 5.0
    assert await questions.of("question 1")
    await embedder.close()


async def test_one_failure_keeps_nobody_from_asking() -> None:
    questions, embedder = QueryEmbeddings(lambda: 0.0), Counting()
    questions.embedder = embedder
    embedder.away = True
    assert await questions.of("first") is None
    embedder.away = False

    assert await questions.of("second")
    await embedder.close()
