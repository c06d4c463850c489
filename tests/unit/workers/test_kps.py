"""Knowledge processing on the in-memory bus, with a memory that obeys."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bus_schema.artifacts import ArtifactRef
from bus_schema.kem import KemRights
from bus_schema.kps import Chunking, KemProcessed, KemProcessingProgress, ProcessedData, ProcessRawData
from bus_schema.replies import Code
from config.settings import FleetSettings
from mindbus import Rejected
from mindbus.errors import TemporaryFailure
from mindbus.testing import deliver, until
from retrieval.embedding.embedder import EmbedderAway
from tests.fleets import Fleet, fleet_of
from tests.hashing_embedder import HashingEmbedder
from tests.kps_kit import ObedientMemory, kps_opening, kps_with
from workers.kps import KpsWorker

pytestmark = pytest.mark.slow

ANNA = "user.anna"
LONG = "\n\n".join(f"Абзац номер {number}. " + "Ещё слова, чтобы он был длиннее. " * 3 for number in range(200))
SHORT_PIECES = Chunking(max_chars=200, overlap_chars=0)


@dataclass
class Desk:
    """Hands knowledge processing what it hears."""

    fleet: Fleet
    embedder: HashingEmbedder
    heard: list[Any] = field(default_factory=list)

    @property
    def memory(self) -> ObedientMemory:
        return self.fleet[ObedientMemory]

    async def process(self, by: str = ANNA, message_id: str | None = None, **fields: Any) -> ProcessedData:
        command = ProcessRawData.model_validate({"content_type": "text/plain"} | fields)
        delivered = await deliver(self.fleet[KpsWorker], command, by=by, message_id=message_id)
        done = delivered.result
        (told,) = delivered.events(KemProcessed)
        is_public = command.rights.visibility == "public"
        assert (told.source, told.kem_ids) == ((command.source, done.kem_ids) if is_public else (None, ()))
        return done


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    embedder = HashingEmbedder()
    settings = FleetSettings(amqp_url=f"memory://{tmp_path}", data_dir=tmp_path, request_timeout_s=2)
    async with fleet_of(ObedientMemory, kps_with(embedder), settings=settings) as fleet:
        yield Desk(fleet, embedder)


async def test_a_short_text_becomes_a_unit_with_its_place_and_its_asker_for_owner(desk: Desk) -> None:
    text = "# Планы\n\nРелиз переносится на пятницу."

    done = await desk.process(
        raw_content=text,
        content_type="text/markdown",
        initial_metadata={"project_id": "apollo"},
        rights=KemRights(visibility="private"),
    )

    (kem,) = desk.memory.kems.values()
    assert done == ProcessedData(kem_ids=(kem.id,), status="stored")
    assert (kem.owner, kem.visibility, kem.content) == (ANNA, "private", text)
    assert kem.metadata == {"project_id": "apollo", "part": 1, "section": ["Планы"]}
    assert kem.source is not None
    assert (kem.source.start, kem.source.end) == (0, len(text))
    assert kem.embeddings is not None


async def test_the_same_again_makes_no_units_and_embeds_nothing(desk: Desk) -> None:
    first = await desk.process(raw_content=LONG)
    embedded = desk.embedder.embedded

    again = await desk.process(raw_content=LONG)

    assert again == ProcessedData(kem_ids=first.kem_ids, status="unchanged")
    assert (desk.embedder.embedded, len(desk.memory.kems)) == (embedded, len(first.kem_ids))


@pytest.mark.parametrize(
    "otherwise", [{"by": "user.boris"}, {"chunking": SHORT_PIECES}, {"raw_content": "Another text."}]
)
async def test_another_source_owner_or_size_has_units_of_its_own(desk: Desk, otherwise: dict[str, Any]) -> None:
    first = await desk.process(raw_content="One text.")

    other = await desk.process(**{"raw_content": "One text."} | otherwise)

    assert not set(first.kem_ids) & set(other.kem_ids)


async def test_other_metadata_goes_onto_the_units_that_are_there(desk: Desk) -> None:
    first = await desk.process(raw_content="One text.", initial_metadata={"state": "draft"})

    again = await desk.process(raw_content="One text.", initial_metadata={"state": "final", "part": "cover"})

    assert again == ProcessedData(kem_ids=first.kem_ids, status="stored")
    assert [kem.metadata for kem in desk.memory.kems.values()] == [{"state": "final", "part": "cover"}]


async def test_memory_away_in_the_middle_costs_nothing_that_is_done(desk: Desk) -> None:
    desk.memory.fails_after = 2
    with pytest.raises(TemporaryFailure):
        await desk.process(raw_content=LONG, chunking=SHORT_PIECES, message_id="msg_1")
    kept = set(desk.memory.kems)

    desk.memory.fails_after = None
    done = await desk.process(raw_content=LONG, chunking=SHORT_PIECES, message_id="msg_1")

    assert kept
    assert kept < set(done.kem_ids) == set(desk.memory.kems)
    assert sum(desk.memory.batches) == len(done.kem_ids)


async def test_a_long_source_tells_how_far_it_is(desk: Desk) -> None:
    heard: list[KemProcessingProgress] = []
    async with desk.fleet.bus.subscribe(KemProcessingProgress) as events:
        done = await desk.process(raw_content=LONG, chunking=SHORT_PIECES)
        async for event in events:
            heard.append(event)
            if event.done == event.total:
                break

    assert [event.total for event in heard] == [len(done.kem_ids)] * len(heard)
    assert len(heard) == len(desk.memory.batches) > 2
    assert sorted({event.done for event in heard}) == [event.done for event in heard]


async def test_an_embedder_that_is_away_is_waited_for(desk: Desk) -> None:
    desk.embedder.away = True

    with pytest.raises(TemporaryFailure):
        await desk.process(raw_content="One text.")


async def test_a_model_that_is_away_at_the_start_is_asked_again(tmp_path: Path) -> None:
    tries: list[int] = []

    async def opened() -> HashingEmbedder:
        tries.append(1)
        if len(tries) == 1:
            raise EmbedderAway
        return HashingEmbedder()

    settings = FleetSettings(amqp_url=f"memory://{tmp_path}", data_dir=tmp_path)
    async with fleet_of(ObedientMemory, kps_opening(opened), settings=settings) as fleet:
        done = await fleet.bus.request(ProcessRawData(raw_content="One text.", content_type="text/plain"))

    assert done.status == "stored"
    assert len(tries) == 2


async def test_what_memory_refuses_is_refused(desk: Desk) -> None:
    desk.memory.refuses = Code.CONFLICT

    with pytest.raises(Rejected) as refused:
        await desk.process(raw_content="One text.")

    assert refused.value.code is Code.CONFLICT


async def test_vectors_that_memory_does_not_take_are_left_to_memory(desk: Desk) -> None:
    desk.memory.refuses = Code.INVALID

    done = await desk.process(raw_content="One text.")

    assert done.status == "stored"
    assert [kem.embeddings for kem in desk.memory.kems.values()] == [None]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"raw_content": "%PDF-1.7", "content_type": "text/plain"}, "not of the declared content type"),
        ({"raw_content": "{", "content_type": "application/json"}, "damaged"),
        ({"raw_content": "…", "content_type": "text/html"}, "no words"),
        ({"raw_content": "x", "content_type": "image/png"}, "Nothing here reads"),
        ({"raw_content": "x", "initial_metadata": {f"k{n}": n for n in range(64)}}, "leaves no room"),
    ],
)
async def test_bad_input_is_refused_in_words(desk: Desk, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(Rejected, match=words):
        await desk.process(**fields)

    assert desk.memory.kems == {}


async def test_storage_away_is_waited_for(desk: Desk) -> None:
    ref = ArtifactRef(
        artifact_id="art_1", version=1, sha256=hashlib.sha256(b"x").hexdigest(), size_bytes=1, content_type="text/plain"
    )

    with pytest.raises(TemporaryFailure, match="storage"):
        await desk.process(source=ref)


async def test_over_the_bus_the_asker_hears_the_ids(desk: Desk) -> None:
    done = await desk.fleet.bus.request(ProcessRawData(raw_content="One text.", content_type="text/plain"))

    await until(lambda: set(done.kem_ids) == set(desk.memory.kems))
