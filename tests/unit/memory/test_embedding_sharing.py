"""A process has one model, however many in it embed texts."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval.embedding.embedder import EmbedderMissing, EmbeddingSpace
from retrieval.embedding.selection import LocalEmbedder, ModelThreads, shared_embedder
from tests.hashing_embedder import HashingModel


class Loading:
    """Counts how often a model is loaded."""

    def __init__(self) -> None:
        self.times = 0
        self.may_end = threading.Event()
        self.may_end.set()

    def __call__(self) -> HashingModel:
        self.times += 1
        self.may_end.wait()
        return HashingModel()

    async def opened(self) -> LocalEmbedder:
        return await shared_embedder("hashing", 1, self)


async def test_all_who_open_it_at_once_have_the_model_loaded_once() -> None:
    loading = Loading()
    glm, kps = await asyncio.gather(loading.opened(), loading.opened())

    assert loading.times == 1
    await glm.close()
    await glm.close()
    assert (await kps.query("hashing")).model == "hashing"
    await kps.close()


async def test_the_model_goes_with_the_last_who_used_it() -> None:
    loading = Loading()
    for _ in range(2):
        await (await loading.opened()).close()

    assert loading.times == 2


async def test_a_model_that_could_not_be_loaded_is_tried_again() -> None:
    def fail() -> HashingModel:
        raise EmbedderMissing("hashing")

    with pytest.raises(EmbedderMissing):
        await shared_embedder("hashing", 1, fail)
    loading = Loading()
    await (await loading.opened()).close()

    assert loading.times == 1


async def test_who_stops_waiting_leaves_the_model_to_the_others() -> None:
    loading = Loading()
    loading.may_end.clear()
    patient = asyncio.create_task(loading.opened())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(loading.opened(), timeout=0.01)
    loading.may_end.set()
    embedder = await patient

    assert (await embedder.query("hashing")).dim == embedder.space.dim
    assert loading.times == 1
    await embedder.close()


class SlowModel:
    """Embeds a passage when it may; notes which passages it was given together."""

    threads = 2
    space = EmbeddingSpace("slow", 1)

    def __init__(self) -> None:
        self.may_embed = threading.Event()
        self.calls: list[list[str]] = []

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        assert self.may_embed.wait(10)
        self.calls.append(list(texts))
        return np.array([[len(text)] for text in texts], dtype=np.float32)

    def query(self, text: str) -> NDArray[np.float32]:
        return np.array([len(text)], dtype=np.float32)


@pytest.fixture
async def slow() -> AsyncIterator[tuple[SlowModel, LocalEmbedder]]:
    model = SlowModel()
    embedder = LocalEmbedder(model, ModelThreads(model.threads))
    yield model, embedder
    model.may_embed.set()
    await embedder.close()


async def test_a_question_waits_for_no_import(slow: tuple[SlowModel, LocalEmbedder]) -> None:
    model, embedder = slow
    importing = asyncio.create_task(embedder.passages(["long " * 500] * 20))
    await asyncio.sleep(0)

    assert (await asyncio.wait_for(embedder.query("who?"), timeout=10)).floats.tolist() == [4.0]
    assert not importing.done()
    model.may_embed.set()
    await importing


async def test_texts_of_similar_length_are_embedded_together(slow: tuple[SlowModel, LocalEmbedder]) -> None:
    model, embedder = slow
    model.may_embed.set()
    texts = ["a" * 1500, "b" * 5, "c" * 9000, "d" * 1400, "e" * 7, "f" * 590]
    found = await embedder.passages(texts)

    assert [each.floats[0] for each in found] == [1500, 5, 9000, 1400, 7, 590]
    assert sorted(map(len, model.calls)) == [1, 1, 1, 3]
    assert ["b" * 5, "e" * 7, "f" * 590] in model.calls


async def test_two_who_embed_take_turns(slow: tuple[SlowModel, LocalEmbedder]) -> None:
    model, embedder = slow
    first = asyncio.create_task(embedder.passages(["first " * 400] * 20))
    second = asyncio.create_task(embedder.passages(["second"]))
    await asyncio.sleep(0)
    model.may_embed.set()
    await second

    assert not first.done()
    await first


async def test_nothing_more_is_embedded_for_somebody_who_left(slow: tuple[SlowModel, LocalEmbedder]) -> None:
    model, embedder = slow
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(embedder.passages(["gone " * 500] * 20), timeout=0.01)
    model.may_embed.set()
    await embedder.passages(["here"])

    assert len(model.calls) <= model.threads + 1
