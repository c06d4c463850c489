"""Putting an artifact: where its bytes come from, what becomes of them."""

import hashlib
import io
from collections.abc import AsyncIterator
from typing import Any, Unpack

import pytest

from bus_schema.artifacts import AIContext
from bus_schema.replies import Code
from mindbus.bus.connection import new_client, new_sender
from mindbus.bus.memory import MemoryBroker, MemoryTransport
from mindbus.bus.topology import reply_queue
from mindbus.sdk.access import DirectAccess
from mindbus.sdk.artifacts import Artifacts
from mindbus.sdk.errors import ArtifactConflict, ArtifactRejected, BufferFull, NoTextMode
from mindbus.sdk.transfers import (
    CHUNK_BYTES,
    NewArtifact,
    Put,
    PutOptions,
    Source,
    chunks_of,
    guess_content_type,
)
from mindbus.testing.wait import until
from tests.sdk_kit import TRACE, Bench

TEXT = "Отчёт: 12 facts.\n".encode()


async def _stream() -> AsyncIterator[bytes]:
    yield TEXT[:5]
    yield TEXT[5:]


async def test_any_source_of_bytes_will_do(bench: Bench) -> None:
    path = bench.folder / "report.md"
    path.write_bytes(TEXT)

    async with bench.artifacts() as artifacts:
        for source in (TEXT, path, io.BytesIO(TEXT), _stream()):
            put = await artifacts.put(source, artifact_type="research_report", trace=TRACE)

            assert put.outcome == "registered"
            assert put.ref.sha256 == hashlib.sha256(TEXT).hexdigest()
            assert put.ref.size_bytes == len(TEXT)
            assert await artifacts.get(put.ref.artifact_id, trace=TRACE) == TEXT
    assert bench.waiting() == []
    assert bench.leftovers() == []


async def test_what_comes_drop_by_drop_is_not_written_drop_by_drop() -> None:
    async def drops() -> AsyncIterator[bytes]:
        for number in range(30_000):
            yield number.to_bytes(4, "big") * 25

    chunks = [chunk async for chunk in chunks_of(drops())]

    assert b"".join(chunks) == b"".join([drop async for drop in drops()])
    assert [len(chunk) >= CHUNK_BYTES for chunk in chunks] == [True, True, False]


async def test_the_manifest_says_what_it_was_told(bench: Bench) -> None:
    async with bench.artifacts() as artifacts:
        first = await artifacts.put(TEXT, artifact_type="draft", trace=TRACE, step="write", content_type="text/plain")
        second = await artifacts.put(
            b"better", artifact_type="draft", trace=TRACE, supersedes=first.ref, visibility="public", retention="30d"
        )

    manifest = bench.storage.manifests[first.ref.artifact_id]
    assert (manifest.owner, manifest.step_id, manifest.content_type) == ("agent.researcher", "write", "text/plain")
    assert manifest.created_by.startswith("agent.researcher.")
    later = bench.storage.manifests[second.ref.artifact_id]
    assert (later.version, later.supersedes, later.visibility, later.retention) == (2, manifest.id, "public", "30d")


def test_the_content_type_is_guessed_by_name(bench: Bench) -> None:
    assert guess_content_type(bench.folder / "статья.MD") == "text/markdown"
    assert guess_content_type(bench.folder / "data.json") == "application/json"
    assert guess_content_type(b"whatever") == "application/octet-stream"


async def test_text_is_refused_before_anything_is_kept(bench: Bench) -> None:
    async with bench.artifacts() as artifacts:
        with pytest.raises(NoTextMode):
            await artifacts.put(io.StringIO("text"), artifact_type="draft", trace=TRACE)  # type: ignore[arg-type]
        with pytest.raises(NoTextMode, match=r"encode the text. \(this is of type str\)"):
            await artifacts.put("text", artifact_type="draft", trace=TRACE)  # type: ignore[arg-type]
    assert bench.leftovers() == []


async def test_options_that_are_misspelt_or_missing_are_refused_rather_than_ignored(bench: Bench) -> None:
    misspelt: dict[str, Any] = {"artifact_type": "draft", "trace": TRACE, "retain": "30d"}
    async with bench.artifacts() as artifacts:
        with pytest.raises(TypeError, match=r"there is no retain; there are .*retention"):
            await artifacts.put(b"text", **misspelt)
        with pytest.raises(TypeError, match=r"there is no retain; there are .*source"):
            await artifacts.put_all([{"source": b"text", **misspelt}])  # type: ignore[typeddict-item]
        with pytest.raises(TypeError, match="trace must be given"):
            await artifacts.put(b"text", artifact_type="draft")  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"there is no begin; there are length, progress, start, trace"):
            await artifacts.get("art_1", begin=5)  # type: ignore[call-arg]
    assert bench.leftovers() == []


async def test_a_missing_file_leaves_nothing_behind(bench: Bench) -> None:
    async with bench.artifacts() as artifacts:
        with pytest.raises(FileNotFoundError):
            await artifacts.put(bench.folder / "nowhere.md", artifact_type="draft", trace=TRACE)
    assert bench.leftovers() == []


async def test_the_same_again_already_exists(bench: Bench) -> None:
    async with bench.artifacts() as artifacts:
        await artifacts.put(TEXT, artifact_type="draft", trace=TRACE, artifact_id="art_same")
        again = await artifacts.put(TEXT, artifact_type="draft", trace=TRACE, artifact_id="art_same")

    assert again.outcome == "already_exists"
    assert bench.waiting() == []


async def test_other_bytes_under_a_known_id_are_a_conflict_and_set_aside(bench: Bench) -> None:
    async with bench.artifacts() as artifacts:
        first = await artifacts.put(TEXT, artifact_type="draft", trace=TRACE, artifact_id="art_same")
        with pytest.raises(ArtifactConflict) as conflict:
            await artifacts.put(b"other", artifact_type="draft", trace=TRACE, artifact_id="art_same")

    assert conflict.value.existing == first.ref
    assert bench.set_aside() == ["art_same"]
    assert "taken" in (bench.buffer / "failed" / "art_same.reason.txt").read_text()
    assert (bench.buffer / "failed" / "art_same.bytes").read_bytes() == b"other"


async def test_other_bytes_under_a_waiting_id_are_a_conflict(bench: Bench) -> None:
    bench.storage.is_away = True
    async with bench.artifacts() as artifacts:
        first = await artifacts.put(TEXT, artifact_type="draft", trace=TRACE, artifact_id="art_same")
        with pytest.raises(ArtifactConflict) as conflict:
            await artifacts.put(b"other", artifact_type="draft", trace=TRACE, artifact_id="art_same")
        again = await artifacts.put(TEXT, artifact_type="draft", trace=TRACE, artifact_id="art_same")

    assert conflict.value.existing == first.ref
    assert again.is_pending
    assert bench.waiting() == ["art_same"]
    assert bench.leftovers() == []


async def test_what_storage_refuses_is_set_aside_and_unstaged(bench: Bench) -> None:
    bench.storage.refuses.add("art_bad")
    async with bench.artifacts() as artifacts:
        with pytest.raises(ArtifactRejected):
            await artifacts.put(TEXT, artifact_type="draft", trace=TRACE, artifact_id="art_bad")

    assert bench.set_aside() == ["art_bad"]
    assert not [path for path in (bench.folder / "artifacts/staging").rglob("*") if path.is_file()]


async def test_a_lost_staged_copy_is_staged_anew_from_the_buffer(bench: Bench) -> None:
    bench.storage.loses_staged = 2
    async with bench.artifacts() as artifacts:
        put = await artifacts.put(TEXT, artifact_type="draft", trace=TRACE)

    assert put.outcome == "registered"


async def test_a_copy_that_is_lost_every_time_is_given_up(bench: Bench) -> None:
    bench.storage.loses_staged = 99
    async with bench.artifacts() as artifacts:
        with pytest.raises(ArtifactRejected, match="staged 3 times"):
            await artifacts.put(TEXT, artifact_type="draft", trace=TRACE, artifact_id="art_lost")

    assert bench.set_aside() == ["art_lost"]


async def test_a_full_buffer_says_so_before_it_takes_more(bench: Bench) -> None:
    bench.storage.is_away = True
    bench.limits = type(bench.limits)(max_bytes=2 * len(TEXT), max_artifacts=2)
    async with bench.artifacts() as artifacts:
        await artifacts.put(TEXT, artifact_type="draft", trace=TRACE)
        with pytest.raises(BufferFull, match="bytes wait for"):
            await artifacts.put(TEXT * 2, artifact_type="draft", trace=TRACE)
        await artifacts.put(b"small", artifact_type="draft", trace=TRACE)
        with pytest.raises(BufferFull, match="2 artifacts wait"):
            await artifacts.put(b"", artifact_type="draft", trace=TRACE)

    assert len(bench.waiting()) == 2
    assert bench.leftovers() == []


def _new(source: Source, **options: Unpack[PutOptions]) -> NewArtifact:
    return {"source": source, **options}


async def test_many_are_put_with_few_messages_in_the_order_given(bench: Bench) -> None:
    path = bench.folder / "report.md"
    path.write_bytes(TEXT)
    sources: list[Source] = [*(b"number %d" % n for n in range(120)), path]

    async with bench.artifacts() as artifacts:
        puts = await artifacts.put_all([_new(source, artifact_type="note", trace=TRACE) for source in sources])

        contents = [await artifacts.get(put.ref.artifact_id, trace=TRACE) for put in puts if isinstance(put, Put)]
    assert [len(batch) for batch in bench.storage.batches] == [100, 21]
    assert contents == [*sources[:120], TEXT]
    assert {put.outcome for put in puts if isinstance(put, Put)} == {"registered"}
    assert bench.waiting() == bench.leftovers() == []


async def test_one_that_is_rejected_harms_no_other(bench: Bench) -> None:
    bench.storage.refuses.add("art_2")
    bench.storage.stumbles_over.add("art_3")
    async with bench.artifacts() as artifacts:
        one, two, three, four = await artifacts.put_all(
            [_new(TEXT, artifact_type="note", trace=TRACE, artifact_id=f"art_{number}") for number in range(1, 5)]
        )

    assert [each.outcome for each in (one, three, four) if isinstance(each, Put)] == [
        "registered",
        "pending",
        "registered",
    ]
    assert isinstance(two, ArtifactRejected)
    assert two.code is Code.INVALID
    assert bench.waiting() == ["art_3"]
    assert bench.set_aside() == ["art_2"]


async def test_an_artifact_is_registered_after_what_it_is_made_from(bench: Bench) -> None:
    made_from = AIContext(input_artifacts=("art_1",))
    async with bench.artifacts() as artifacts:
        await artifacts.put_all(
            [
                _new(b"summary", artifact_type="note", trace=TRACE, artifact_id="art_2", context=made_from),
                _new(b"source", artifact_type="note", trace=TRACE, artifact_id="art_1"),
                _new(b"elsewhere", artifact_type="note", trace="run_2", artifact_id="art_3"),
            ]
        )

    assert bench.storage.batches == [["art_1"], ["art_3"], ["art_2"]]


async def test_a_lost_copy_of_one_of_many_is_staged_again(bench: Bench) -> None:
    bench.storage.loses_staged = 1
    async with bench.artifacts() as artifacts:
        puts = await artifacts.put_all([_new(TEXT, artifact_type="note", trace=TRACE) for _ in range(3)])

    assert [put.outcome for put in puts if isinstance(put, Put)] == ["registered"] * 3


async def test_many_wait_in_the_buffer_while_storage_is_away(bench: Bench) -> None:
    bench.storage.is_away = True
    async with bench.artifacts() as artifacts:
        puts = await artifacts.put_all([_new(b"%d" % n, artifact_type="note", trace=TRACE) for n in range(5)])
        assert all(isinstance(put, Put) and put.is_pending for put in puts)
        assert len(bench.waiting()) == 5
        bench.storage.is_away = False
        await until(lambda: _nothing_waits_after_a_beat(bench))

    assert len(bench.storage.manifests) == 5
    assert [len(batch) for batch in bench.storage.batches] == [5, 5, 5, 5]
    assert bench.waiting() == bench.leftovers() == []


async def _nothing_waits_after_a_beat(bench: Bench) -> bool:
    await bench.beat()
    return not bench.waiting()


async def test_opened_artifacts_listen_for_replies_already(bench: Bench) -> None:
    broker, sender = MemoryBroker(), new_sender("client", "agent.researcher", bench.settings)
    bus = new_client(MemoryTransport(broker), sender, bench.settings, exclusive=True)

    async with bus, Artifacts(bus, DirectAccess(bench.files), bench.folder, storage=bench.storage):
        assert reply_queue(sender.reply_key) in broker.queues
