"""Promote, commit, clean: what registration keeps, however often and however badly it is asked."""

import asyncio
import dataclasses
import errno
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from bus_schema.artifacts import AIContext, Manifest
from bus_schema.ids import mint
from bus_schema.replies import Code
from bus_schema.storage import ArtifactRegistered, RegisterArtifact, Registration
from mindbus.errors import Rejected, TemporaryFailure
from mindbus.testing import deliver
from storage_service.blobs import Blobs, Declared, Labels
from storage_service.service import StorageService
from storage_service.tables import GONE, LIVE, BlobRow, ManifestRow
from tests.passing_blobs import PassingBlobs
from tests.storage_kit import CRITIC, RESEARCHER, TRACE, Depot, OpenDepot

CONTENT = "# Отчёт\nfindings\n".encode()


async def refusal(depot: Depot, manifest: Manifest, by: str | None = None, trace: str | None = None) -> Rejected:
    with pytest.raises(Rejected) as refused:
        await depot.register(manifest, by, trace)
    return refused.value


async def test_a_staged_file_becomes_an_artifact(depot: Depot) -> None:
    manifest = depot.manifest(CONTENT, step_id="research")

    registration = await depot.register(manifest)

    assert registration == Registration(
        artifact_id=manifest.id, version=1, sha256=manifest.sha256, outcome="registered"
    )
    stored = await depot.get(manifest.id)
    told = manifest.model_copy(update={"status": "completed", "uri": stored.uri})
    assert stored.model_dump(exclude={"presigned_url"}) == told.model_dump()
    assert stored.uri == f"objects/sha256/{stored.sha256[:2]}/{stored.sha256[2:4]}/{stored.sha256}/1"
    assert depot.content_of(stored) == CONTENT


async def test_every_field_of_a_manifest_comes_back(depot: Depot) -> None:
    source = await depot.put(b"source")
    context = AIContext(
        prompt_version="1.2.0",
        model_name="gpt-4o-mini",
        model_params={"temperature": 0.7, "max_tokens": 4000, "стиль": "строгий", "seed": None},
        input_artifacts=(source,),
        execution_time_ms=3500,
    )
    created_at = depot.clock() - timedelta(microseconds=1)
    manifest = depot.manifest(
        CONTENT, step_id="research", context=context, retention="30d", visibility="public", created_at=created_at
    )

    await depot.register(manifest)

    stored = await depot.get(manifest.id)
    assert stored.model_dump(exclude={"uri", "status"}) == manifest.model_dump(exclude={"uri", "status"})


async def test_the_event_tells_what_listeners_need_in_the_artifacts_own_trace(depot: Depot) -> None:
    manifest = depot.manifest(CONTENT, step_id="research", visibility="private")

    delivered = await deliver(depot.worker, RegisterArtifact(manifest=manifest), by=RESEARCHER, trace="run_other")

    assert delivered.published == (
        ArtifactRegistered(
            artifact=manifest.ref,
            trace_id=TRACE,
            step_id="research",
            artifact_type="research_report",
            created_by=RESEARCHER,
            owner="agent.researcher",
            visibility="private",
            retention="infinite",
        ),
    )
    (event,) = [each.envelope for each in delivered.outgoing if each.envelope.type == ArtifactRegistered.wire.type]
    assert (event.mbtraceid, event.mbstepid) == (TRACE, "research")


async def test_retention_is_for_ever_unless_it_says_days(depot: Depot) -> None:
    await depot.put(CONTENT)
    await depot.put(CONTENT, retention="7d")

    async with depot.database.reading() as session:
        until = (await session.scalars(select(ManifestRow.retention_until).order_by(ManifestRow.position))).all()

    assert until == [None, depot.clock() + timedelta(days=7)]


async def test_the_same_id_with_the_same_bytes_exists_already(depot: Depot) -> None:
    manifest = depot.manifest(CONTENT)
    await depot.register(manifest)
    again = manifest.model_copy(update={"uri": depot.stage(CONTENT)})

    returned = await depot.handle(RegisterArtifact(manifest=again), RESEARCHER)

    assert returned.outcome == "already_exists"
    assert await depot.rows("artifact_manifests") == 1


async def test_the_same_id_with_other_bytes_is_a_conflict_that_names_what_exists(depot: Depot) -> None:
    manifest = depot.manifest(CONTENT)
    await depot.register(manifest)

    refused = await refusal(depot, depot.manifest(b"other bytes", id=manifest.id))

    assert refused.code is Code.CONFLICT
    assert refused.details["existing"] == manifest.ref.model_dump()
    assert depot.content_of(await depot.get(manifest.id)) == CONTENT
    assert len(depot.object_files()) == 1


async def test_an_id_of_anothers_is_a_conflict_that_tells_nothing_of_it(depot: Depot) -> None:
    manifest = depot.manifest(CONTENT, visibility="private")
    await depot.register(manifest)

    refused = await refusal(depot, depot.manifest(CONTENT, by=CRITIC, id=manifest.id))

    assert refused.code is Code.CONFLICT
    assert refused.details == {"artifact_id": manifest.id}


async def test_another_instance_may_finish_what_one_began(depot: Depot) -> None:
    manifest = depot.manifest(CONTENT)

    assert (await depot.register(manifest, by="agent.researcher.2")).outcome == "registered"
    assert (await depot.register(manifest, by="agent.researcher.1")).outcome == "already_exists"


async def test_a_message_seen_twice_is_handled_once(depot: Depot) -> None:
    command = RegisterArtifact(manifest=depot.manifest(CONTENT))

    await depot.handle(command, RESEARCHER, message_id="msg_1")
    await depot.handle(command, RESEARCHER, message_id="msg_1")

    assert await depot.rows("artifact_manifests") == await depot.rows("inbox") == 1


@pytest.mark.parametrize(
    ("staged", "changes", "code"),
    [
        (b"other bytes", {}, Code.CHECKSUM_MISMATCH),
        (CONTENT + b"!", {}, Code.CHECKSUM_MISMATCH),
        (CONTENT[:-1], {}, Code.CHECKSUM_MISMATCH),
        (CONTENT, {"size_bytes": len(CONTENT) + 1}, Code.CHECKSUM_MISMATCH),
        (CONTENT, {"size_bytes": 0}, Code.CHECKSUM_MISMATCH),
        (CONTENT, {"checksum": f"sha256:{'0' * 64}"}, Code.CHECKSUM_MISMATCH),
        (CONTENT, {"size_bytes": 65 * 1024 * 1024}, Code.TOO_LARGE),
        (CONTENT, {"owner": "agent.critic"}, Code.UNAUTHORIZED),
        (CONTENT, {"created_by": CRITIC, "owner": "agent.critic"}, Code.UNAUTHORIZED),
        (CONTENT, {"context": {"model_params": {"api_key": "sk-1"}}}, Code.INVALID),
        (CONTENT, {"context": {"input_artifacts": ["art_absent"]}}, Code.NOT_FOUND),
        (CONTENT, {"supersedes": "art_absent", "version": 2}, Code.NOT_FOUND),
    ],
)
async def test_a_wrong_manifest_is_refused_with_nothing_written(
    depot: Depot, staged: bytes, changes: dict[str, Any], code: Code
) -> None:
    manifest = depot.manifest(CONTENT, uri=depot.stage(staged))
    manifest = Manifest.model_validate(manifest.model_dump() | changes)

    refused = await refusal(depot, manifest, by=RESEARCHER)

    assert refused.code is code
    assert str(refused)
    assert depot.object_files() == depot.temporary_files() == []
    for table in ("artifact_manifests", "artifact_inputs", "spent_uploads"):
        assert await depot.rows(table) == 0, table
    # The refusal itself, for a duplicate; until it is published, its row is all that there is of it.
    assert (await depot.rows("inbox"), await depot.rows("outbox")) == (1, 0)
    assert len(depot.staged_files()) == 1


async def test_a_missing_file_is_said_to_be_missing(depot: Depot) -> None:
    refused = await refusal(depot, depot.manifest(CONTENT, uri=depot.files.uri(depot.upload_key())))

    assert refused.code is Code.FILE_NOT_FOUND


async def test_a_secret_in_the_parameters_is_not_repeated_in_the_answer(depot: Depot) -> None:
    manifest = depot.manifest(CONTENT, context={"model_params": {"api_key": "sk-canary"}})

    refused = await refusal(depot, manifest)

    assert "sk-canary" not in f"{refused} {refused.details}"


async def test_what_was_refused_can_be_set_right_and_registered(depot: Depot) -> None:
    manifest = depot.manifest(CONTENT, uri=depot.stage(b"half of it"))
    await refusal(depot, manifest)

    right = manifest.model_copy(update={"uri": depot.stage(CONTENT)})

    assert (await depot.register(right)).outcome == "registered"


async def test_a_liar_about_the_size_does_not_spoil_the_digest_for_others(depot: Depot) -> None:
    honest = depot.manifest(CONTENT)
    await refusal(depot, honest.model_copy(update={"id": mint("art"), "size_bytes": 1}))

    await depot.register(honest)

    assert (await depot.get(honest.id)).size_bytes == len(CONTENT)


async def test_the_staged_file_goes_only_after_the_commit(depot: Depot) -> None:
    await depot.register(depot.manifest(CONTENT))
    assert len(depot.staged_files()) == 1

    await depot.worker.maintenance.clean()

    assert depot.staged_files() == []
    assert await depot.rows("spent_uploads") == 0
    assert len(depot.object_files()) == 1


async def test_a_refused_upload_stays_for_its_owner_to_look_at(depot: Depot) -> None:
    await refusal(depot, depot.manifest(CONTENT, uri=depot.stage(b"other bytes")))

    await depot.worker.maintenance.clean()

    assert len(depot.staged_files()) == 1


async def test_the_second_upload_of_an_artifact_goes_as_well(depot: Depot) -> None:
    manifest = depot.manifest(CONTENT)
    await depot.register(manifest)
    await depot.register(manifest.model_copy(update={"uri": depot.stage(CONTENT)}))

    await depot.worker.maintenance.clean()

    assert depot.staged_files() == []


async def test_artifacts_of_the_same_bytes_share_one_object(depot: Depot) -> None:
    first, second = depot.manifest(CONTENT), depot.manifest(CONTENT, by=CRITIC)

    await depot.register(first)
    await depot.register(second)

    assert (await depot.get(first.id)).uri == (await depot.get(second.id, CRITIC)).uri
    assert len(depot.object_files()) == 1


async def test_an_event_in_an_announcement_is_no_way_to_its_bytes(depot: Depot) -> None:
    announced = depot.manifest(CONTENT, visibility="private")
    await depot.register(announced)
    unseen = depot.manifest(CONTENT, by=CRITIC, uri=depot.files.uri(depot.upload_key("agent.critic")))

    refused = await refusal(depot, unseen)

    assert refused.code is Code.FILE_NOT_FOUND


async def test_one_id_registered_many_times_at_once_is_registered_once(depot: Depot) -> None:
    manifest = depot.manifest(CONTENT)

    outcomes = await asyncio.gather(*(depot.register(manifest) for _ in range(8)))

    assert sorted(each.outcome for each in outcomes) == ["already_exists"] * 7 + ["registered"]
    assert await depot.rows("artifact_manifests") == 1


async def test_the_same_bytes_under_many_ids_at_once_are_all_registered(depot: Depot) -> None:
    manifests = [depot.manifest(CONTENT) for _ in range(8)]

    outcomes = await asyncio.gather(*map(depot.register, manifests))

    assert {each.outcome for each in outcomes} == {"registered"}
    assert len(depot.object_files()) == 1


async def test_of_many_bytes_for_one_id_at_once_one_wins_whole(depot: Depot) -> None:
    artifact_id = mint("art")
    manifests = [depot.manifest(b"bytes %d" % number, id=artifact_id) for number in range(8)]

    outcomes = await asyncio.gather(*map(depot.register, manifests), return_exceptions=True)

    conflicts = [each for each in outcomes if isinstance(each, Rejected) and each.code is Code.CONFLICT]
    assert len(conflicts) == 7
    winner = await depot.get(artifact_id)
    assert depot.content_of(winner) in {b"bytes %d" % number for number in range(8)}


async def test_a_correction_is_the_next_version_of_what_it_supersedes(depot: Depot) -> None:
    first = await depot.put(CONTENT)

    second = await depot.register(depot.manifest(b"better", supersedes=first, version=2))

    assert second.version == 2
    assert (await depot.get(second.artifact_id)).supersedes == first


@pytest.mark.parametrize("version", [3, 7])
async def test_a_version_cannot_be_skipped(depot: Depot, version: int) -> None:
    first = await depot.put(CONTENT)

    refused = await refusal(depot, depot.manifest(b"better", supersedes=first, version=version))

    assert refused.code is Code.INVALID
    assert refused.details == {"version": version, "superseded_version": 1}


async def test_history_does_not_fork(depot: Depot) -> None:
    first = await depot.put(CONTENT)
    await depot.put(b"better", supersedes=first, version=2)

    refused = await refusal(depot, depot.manifest(b"better still", supersedes=first, version=2))

    assert refused.code is Code.CONFLICT


async def test_of_many_corrections_at_once_one_is_the_next_version(depot: Depot) -> None:
    first = await depot.put(CONTENT)
    corrections = [depot.manifest(b"version %d" % number, supersedes=first, version=2) for number in range(6)]

    outcomes = await asyncio.gather(*map(depot.register, corrections), return_exceptions=True)

    assert sum(isinstance(each, Registration) for each in outcomes) == 1
    assert {each.code for each in outcomes if isinstance(each, Rejected)} == {Code.CONFLICT}


async def test_whoever_takes_part_in_the_trace_may_correct_what_the_trace_may_read(depot: Depot) -> None:
    first = await depot.put(CONTENT)
    await depot.set_members("agent.researcher", "agent.critic")

    assert await depot.put(b"corrected", by=CRITIC, supersedes=first, version=2)


async def test_a_trace_without_a_list_is_taken_part_in_by_asking_within_it(depot: Depot) -> None:
    first = await depot.put(CONTENT, visibility="public")
    correction = depot.manifest(b"corrected", by=CRITIC, supersedes=first, version=2)

    assert (await refusal(depot, correction)).code is Code.UNAUTHORIZED
    assert (await depot.register(correction, trace=TRACE)).version == 2


async def test_a_private_artifact_cannot_even_be_found_to_be_corrected(depot: Depot) -> None:
    first = await depot.put(CONTENT, visibility="private")
    await depot.set_members("agent.researcher", "agent.critic")

    refused = await refusal(depot, depot.manifest(b"corrected", by=CRITIC, supersedes=first, version=2))

    assert refused.code is Code.NOT_FOUND


async def test_inputs_must_be_readable_by_their_user(depot: Depot) -> None:
    theirs = await depot.put(CONTENT, by=CRITIC, visibility="private")
    mine = await depot.put(CONTENT)

    refused = await refusal(depot, depot.manifest(b"made of", context={"input_artifacts": [mine, theirs]}))

    assert refused.code is Code.NOT_FOUND
    assert refused.details == {"missing": [theirs]}


class Failing(PassingBlobs):
    """A store with no room left."""

    def __init__(self, blobs: Blobs, trouble: OSError) -> None:
        super().__init__(blobs)
        self.trouble = trouble

    async def promote(self, upload: str, key: str, declared: Declared, labels: Labels) -> None:
        raise self.trouble

    async def discard(self, upload: str) -> None:
        raise self.trouble


def failing_with(number: int) -> Any:
    def arrange(storage: StorageService) -> StorageService:
        blobs = Failing(storage.blobs, OSError(number, "the disk says no"))
        registrar = dataclasses.replace(storage.registrar, blobs=blobs)
        return dataclasses.replace(storage, blobs=blobs, registrar=registrar)

    return arrange


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES, errno.EMFILE])
async def test_a_store_in_trouble_is_a_temporary_failure(open_depot: OpenDepot, number: int) -> None:
    depot = open_depot(arrange=failing_with(number))
    manifest = depot.manifest(CONTENT)

    with pytest.raises(TemporaryFailure):
        await depot.register(manifest)

    assert (await open_depot().register(manifest)).outcome == "registered"


async def test_a_staged_file_that_cannot_be_removed_is_removed_later(open_depot: OpenDepot) -> None:
    depot = open_depot(arrange=failing_with(errno.EIO))
    await open_depot().register(depot.manifest(CONTENT))

    await depot.worker.maintenance.clean()
    assert len(depot.staged_files()) == 1

    await open_depot().worker.maintenance.clean()
    assert depot.staged_files() == []


async def set_blob(depot: Depot, sha256: str, **values: Any) -> None:
    async with depot.database.transaction() as session:
        await session.execute(update(BlobRow).where(BlobRow.sha256 == sha256).values(**values))


class Collecting(PassingBlobs):
    """Collects a content, as garbage collection might, between its copy and its commit."""

    def __init__(self, blobs: Blobs, depot: list[Depot]) -> None:
        super().__init__(blobs)
        self.depot = depot

    async def promote(self, upload: str, key: str, declared: Declared, labels: Labels) -> None:
        await self.blobs.promote(upload, key, declared, labels)
        while self.depot:
            await set_blob(self.depot.pop(), declared.sha256, state=GONE)


async def test_a_content_collected_before_the_commit_is_promoted_again_under_a_new_key(open_depot: OpenDepot) -> None:
    once = [open_depot()]

    def arrange(storage: StorageService) -> StorageService:
        registrar = dataclasses.replace(storage.registrar, blobs=Collecting(storage.blobs, once))
        return dataclasses.replace(storage, registrar=registrar)

    depot = open_depot(arrange=arrange)
    manifest = depot.manifest(CONTENT)

    with pytest.raises(TemporaryFailure):
        await depot.register(manifest)
    assert await depot.rows("artifact_manifests") == 0
    await depot.register(manifest)

    assert (await depot.get(manifest.id)).uri.endswith(f"{manifest.sha256}/2")


async def test_a_content_that_is_gone_comes_back_under_a_key_never_used_before(depot: Depot) -> None:
    manifest = depot.manifest(CONTENT)
    async with depot.database.transaction() as session:
        await session.execute(insert(BlobRow).values(sha256=manifest.sha256, generation=6, state=GONE))

    await depot.register(manifest)

    assert (await depot.get(manifest.id)).uri.endswith(f"{manifest.sha256}/7")


async def test_a_pin_does_not_make_a_live_content_anything_less(depot: Depot) -> None:
    await depot.put(CONTENT)
    await refusal(depot, depot.manifest(CONTENT, uri=depot.files.uri(depot.upload_key())))

    async with depot.database.reading() as session:
        assert await session.scalar(select(BlobRow.state)) == LIVE


async def test_positions_follow_the_order_of_commits(depot: Depot) -> None:
    ids = [await depot.put(b"number %d" % number) for number in range(5)]

    async with depot.database.reading() as session:
        rows = (await session.execute(select(ManifestRow.id, ManifestRow.position))).all()

    assert sorted(rows, key=lambda row: row.position) == [(each, number) for number, each in enumerate(ids, 1)]
