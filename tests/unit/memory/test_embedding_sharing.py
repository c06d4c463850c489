"""A process has one model, however many in it embed texts."""

import asyncio
import threading

import pytest

from retrieval.embedding.embedder import EmbedderMissing
from retrieval.embedding.local import LocalEmbedder, shared_embedder
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
