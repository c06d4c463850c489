"""Many artifacts in one message: each is registered or refused by itself, all are committed at once."""

import dataclasses
from typing import Any

import pytest
from pydantic import ValidationError

from bus_schema.artifacts import Manifest
from bus_schema.replies import Code
from bus_schema.storage import ArtifactRegistered, RegisterArtifacts, RegistrationReport
from mindbus.testing import deliver
from storage_service.blobs import Blobs, Declared, Labels
from storage_service.service import StorageService
from storage_service.tables import GONE
from tests.passing_blobs import PassingBlobs
from tests.storage_kit import RESEARCHER, Depot, OpenDepot
from tests.unit.storage_service.test_registration import set_blob


async def register(depot: Depot, *manifests: Manifest, **where: Any) -> RegistrationReport:
    report = await depot.handle(RegisterArtifacts(manifests=manifests), RESEARCHER, **where)
    assert isinstance(report, RegistrationReport)
    return report


def statuses(report: RegistrationReport) -> list[str]:
    return [item.status for item in report.items]


async def test_all_become_artifacts_with_an_event_each(depot: Depot) -> None:
    manifests = [depot.manifest(b"number %d" % number) for number in range(40)]

    delivered = await deliver(
        depot.worker, RegisterArtifacts(manifests=tuple(manifests)), by=RESEARCHER, message_id="msg_1"
    )

    items = delivered.result.items
    assert [(item.artifact_id, item.status, item.sha256) for item in items] == [
        (manifest.id, "registered", manifest.sha256) for manifest in manifests
    ]
    told = [event.artifact for event in delivered.published if isinstance(event, ArtifactRegistered)]
    assert told == [manifest.ref for manifest in manifests]
    for manifest in manifests:
        assert depot.content_of(await depot.get(manifest.id)) == b"number %d" % manifests.index(manifest)
    await depot.worker.maintenance.clean()
    assert depot.staged_files() == []


async def test_what_is_refused_harms_no_other_and_has_its_own_reason(depot: Depot) -> None:
    taken = await depot.put(b"taken")
    again = depot.manifest(b"twice")
    await depot.register(again)
    members = {
        "good": depot.manifest(b"good"),
        "another's": depot.manifest(b"another's", by="agent.critic.1"),
        "missing": depot.manifest(b"missing", uri=depot.files.uri(depot.upload_key())),
        "other bytes": depot.manifest(b"other bytes", checksum=f"sha256:{'0' * 64}"),
        "taken id": depot.manifest(b"others", id=taken),
        "again": again.model_copy(update={"uri": depot.stage(b"twice")}),
        "good, too": depot.manifest(b"good, too"),
    }

    report = await register(depot, *members.values())

    found = dict(zip(members, ((item.status, item.code) for item in report.items), strict=True))
    assert found == {
        "good": ("registered", None),
        "another's": ("refused", Code.UNAUTHORIZED),
        "missing": ("refused", Code.FILE_NOT_FOUND),
        "other bytes": ("refused", Code.CHECKSUM_MISMATCH),
        "taken id": ("refused", Code.CONFLICT),
        "again": ("already_exists", None),
        "good, too": ("registered", None),
    }
    assert report.items[4].details["existing"]["artifact_id"] == taken
    assert await depot.rows("artifact_manifests") == 4


async def test_of_corrections_of_one_artifact_one_is_the_next_version(depot: Depot) -> None:
    first = await depot.put(b"first")
    corrections = [depot.manifest(b"second %d" % n, supersedes=first, version=2) for n in range(3)]

    report = await register(depot, *corrections)

    assert sorted(statuses(report)) == ["refused", "refused", "registered"]
    assert {item.code for item in report.items if item.status == "refused"} == {Code.CONFLICT}


async def test_the_same_bytes_under_several_ids_share_one_object(depot: Depot) -> None:
    report = await register(depot, *(depot.manifest(b"alike") for _ in range(5)))

    assert statuses(report) == ["registered"] * 5
    assert len(depot.object_files()) == 1


async def test_a_message_seen_twice_is_handled_once(depot: Depot) -> None:
    manifests = [depot.manifest(b"one"), depot.manifest(b"two", uri=depot.files.uri(depot.upload_key()))]

    first = await register(depot, *manifests, message_id="msg_1")
    second = await register(depot, *manifests, message_id="msg_1")

    assert statuses(first) == statuses(second) == ["registered", "refused"]


async def test_an_artifact_is_named_once(depot: Depot) -> None:
    manifest = depot.manifest()

    with pytest.raises(ValidationError, match="once"):
        RegisterArtifacts(manifests=(manifest, manifest))


class Stumbling(PassingBlobs):
    """Fails over one content."""

    def __init__(self, blobs: Blobs, sha256: str) -> None:
        super().__init__(blobs)
        self.sha256 = sha256

    async def promote(self, upload: str, key: str, declared: Declared, labels: Labels) -> None:
        if declared.sha256 == self.sha256:
            raise OSError("the disk says no")
        await self.blobs.promote(upload, key, declared, labels)


class Collecting(PassingBlobs):
    """Collects one content between its copy and its commit."""

    def __init__(self, blobs: Blobs, sha256: str, depot: Depot) -> None:
        super().__init__(blobs)
        self.sha256, self.depot = sha256, depot

    async def promote(self, upload: str, key: str, declared: Declared, labels: Labels) -> None:
        await self.blobs.promote(upload, key, declared, labels)
        if declared.sha256 == self.sha256:
            await set_blob(self.depot, declared.sha256, state=GONE)


@pytest.mark.parametrize("fails", ["in the store", "by a collection"])
async def test_what_fails_for_a_time_may_be_sent_again(open_depot: OpenDepot, fails: str) -> None:
    plain = open_depot()
    good, unlucky = plain.manifest(b"good"), plain.manifest(b"unlucky")

    def arrange(storage: StorageService) -> StorageService:
        stumbling = Stumbling(storage.blobs, unlucky.sha256)
        blobs = stumbling if fails == "in the store" else Collecting(storage.blobs, unlucky.sha256, plain)
        return dataclasses.replace(storage, registrar=dataclasses.replace(storage.registrar, blobs=blobs))

    report = await register(open_depot(arrange=arrange), good, unlucky)

    assert [(item.status, item.code) for item in report.items] == [("registered", None), ("failed", Code.UNAVAILABLE)]
    assert statuses(await register(plain, unlucky)) == ["registered"]
