"""Storage as agents meet it: on a real RabbitMQ, through the client."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bus_schema.artifacts import Manifest
from bus_schema.ids import mint
from bus_schema.replies import Code
from bus_schema.storage import (
    ArtifactRegistered,
    GetArtifact,
    GetLineage,
    GetVersions,
    RegisterArtifact,
    SearchArtifacts,
    SetTraceMembers,
)
from config.settings import FleetSettings
from mindbus import Client, ReplyError, connect
from mindbus.bus.deadletters import DeadLetters
from mindbus.files.store import FileStore, open_files
from mindbus.sdk.artifacts import Artifacts, open_access
from mindbus.sdk.registration import StoragePolicy
from mindbus.testing.wait import until
from storage_service.blobs import content_of
from tests.fleets import Fleet, fleet_of, settings_for
from tests.installed import FLEET
from tests.management import Management
from tests.storage_kit import packed_keys

TRACE = "run_1"


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path) -> FleetSettings:
    return settings_for(vhost_url, tmp_path)


@pytest.fixture
def files(settings: FleetSettings) -> FileStore:
    return open_files(settings)


@pytest.fixture
async def fleet(settings: FleetSettings) -> AsyncIterator[Fleet]:
    async with fleet_of(FLEET["storage"], settings=settings) as running:
        yield running


@pytest.fixture
def researcher(fleet: Fleet) -> Client:
    return fleet.bus.acting_as("agent.researcher")


@pytest.fixture
def critic(fleet: Fleet) -> Client:
    return fleet.bus.acting_as("agent.critic")


def staged(files: FileStore, maker: Client, content: bytes, **changes: Any) -> Manifest:
    now = datetime.now(UTC)
    key = f"staging/{now:%Y/%m/%d}/{maker.owner.replace('.', '_')}/{os.urandom(16).hex()}"
    files.put(key, content)
    fields: dict[str, Any] = {
        "id": mint("art"),
        "trace_id": TRACE,
        "created_by": maker.identity,
        "created_at": now,
        "artifact_type": "draft",
        "content_type": "text/markdown; charset=utf-8",
        "uri": files.uri(key),
        "size_bytes": len(content),
        "checksum": f"sha256:{hashlib.sha256(content).hexdigest()}",
        "owner": maker.owner,
    }
    return Manifest.model_validate(fields | changes)


def staged_files(files: FileStore) -> list[str]:
    return [str(path) for path in files.fs.find(f"{files.root}/staging")]


async def refusal(bus: Client, command: Any, **where: Any) -> Code:
    with pytest.raises(ReplyError) as failure:
        await bus.request(command, **where)
    return failure.value.code


async def test_a_registered_artifact_is_answered_told_kept_and_its_staged_file_removed(
    fleet: Fleet, researcher: Client, files: FileStore
) -> None:
    content = "# Черновик\n".encode() * 10_000
    manifest = staged(files, researcher, content)

    async with fleet.bus.subscribe(ArtifactRegistered, trace=TRACE) as events:
        registration = await researcher.request(RegisterArtifact(manifest=manifest), trace=TRACE)
        event = await anext(aiter(events))

    assert (registration.outcome, registration.sha256) == ("registered", manifest.sha256)
    assert event.artifact == manifest.ref
    stored = await researcher.request(GetArtifact(artifact_id=manifest.id))
    with files.open_read(stored.uri) as kept:
        assert kept.read() == content
    await until(lambda: staged_files(files) == [])


async def test_every_no_has_its_code_and_makes_no_dead_letter(
    vhost_url: str, researcher: Client, critic: Client, files: FileStore
) -> None:
    good = staged(files, researcher, b"first", visibility="private")
    await researcher.request(RegisterArtifact(manifest=good))
    absent = files.uri(f"staging/2026/01/01/agent_researcher/{'0' * 32}")

    def changed(**changes: Any) -> RegisterArtifact:
        return RegisterArtifact(manifest=staged(files, researcher, b"other", **changes))

    assert await refusal(researcher, changed(id=good.id)) is Code.CONFLICT
    assert await refusal(researcher, changed(checksum=good.checksum)) is Code.CHECKSUM_MISMATCH
    assert await refusal(researcher, changed(size_bytes=4)) is Code.CHECKSUM_MISMATCH
    assert await refusal(researcher, changed(size_bytes=2**50)) is Code.TOO_LARGE
    assert await refusal(researcher, changed(uri=absent)) is Code.FILE_NOT_FOUND
    assert await refusal(researcher, changed(uri="file:///etc/passwd")) is Code.INVALID
    assert await refusal(critic, changed()) is Code.UNAUTHORIZED
    assert await refusal(critic, SetTraceMembers(trace_id=TRACE, members=("agent.critic",))) is Code.UNAUTHORIZED
    for query in (GetArtifact, GetVersions, GetLineage):
        assert await refusal(critic, query(artifact_id=good.id), trace=TRACE) is Code.NOT_FOUND
    assert await DeadLetters(vhost_url).look("storage") == []
    assert len(packed_keys(Path(files.root))) == 1


async def test_a_trace_reads_what_is_its_own_and_so_does_a_second_instance_of_the_owner(
    fleet: Fleet, researcher: Client, critic: Client, files: FileStore
) -> None:
    manifest = staged(files, researcher, b"findings")
    await researcher.request(RegisterArtifact(manifest=manifest), trace=TRACE)
    get = GetArtifact(artifact_id=manifest.id)

    assert (await critic.request(get, trace=TRACE)).id == manifest.id
    assert await refusal(critic, get, trace="run_2") is Code.NOT_FOUND
    assert await refusal(critic, get) is Code.NOT_FOUND
    assert (await fleet.bus.acting_as("agent.researcher.second").request(get)).id == manifest.id

    orchestrator = fleet.bus.acting_as("svc.orchestrator")
    await orchestrator.request(SetTraceMembers(trace_id=TRACE, members=("agent.researcher", "user.local")))

    assert await refusal(critic, get, trace=TRACE) is Code.NOT_FOUND
    assert (await fleet.bus.request(get)).id == manifest.id


async def test_more_manifests_than_a_body_holds_are_still_one_page(researcher: Client, files: FileStore) -> None:
    manifests = [staged(files, researcher, b"number %d" % number) for number in range(150)]
    await asyncio.gather(*(researcher.request(RegisterArtifact(manifest=each)) for each in manifests))

    page = await researcher.request(SearchArtifacts(trace_id=TRACE, limit=200))

    assert len(page.model_dump_json()) > 64 * 1024
    assert {each.id for each in page.items} == {each.id for each in manifests}


async def test_two_storage_workers_on_one_database_register_everything_once(
    settings: FleetSettings, files: FileStore
) -> None:
    async with fleet_of(FLEET["storage"], FLEET["storage"], settings=settings) as fleet:
        researcher = fleet.bus.acting_as("agent.researcher")
        manifests = [staged(files, researcher, b"bytes %d" % (number % 5)) for number in range(20)]

        async with fleet.bus.subscribe(ArtifactRegistered, trace=TRACE) as events:
            outcomes = await asyncio.gather(
                *(researcher.request(RegisterArtifact(manifest=each)) for each in manifests * 3)
            )
            # An event may be told twice, by both outboxes' relays; none may be missing.
            silent = {each.id for each in manifests}
            async for event in events:
                silent.discard(event.artifact.artifact_id)
                if not silent:
                    break

        assert sorted(each.outcome for each in outcomes) == ["already_exists"] * 40 + ["registered"] * 20
        # Two processes may have packed the same bytes; what nothing refers to is collected.
        contents = {content_of(key) for key in packed_keys(Path(files.root))}
        assert len({content.sha256 for content in contents if content}) == 5
        await until(lambda: staged_files(files) == [])


async def test_what_was_sent_while_storage_was_away_is_registered_when_it_is_back(
    settings: FleetSettings, files: FileStore
) -> None:
    async with fleet_of(FLEET["storage"], settings=settings):
        pass
    async with fleet_of(settings=settings) as nobody:
        researcher = nobody.bus.acting_as("agent.researcher")
        manifest = staged(files, researcher, b"findings")
        await researcher.send(RegisterArtifact(manifest=manifest))

    async with fleet_of(FLEET["storage"], settings=settings) as fleet:
        researcher = fleet.bus.acting_as("agent.researcher")

        async def is_registered() -> bool:
            return bool((await researcher.request(SearchArtifacts(trace_id=TRACE))).items)

        await until(is_registered)


async def test_nobody_listens_for_storage_unless_something_waits_for_it(
    settings: FleetSettings, vhost: str, management: Management
) -> None:
    async def listening() -> list[str]:
        return [name for name in await management.queues(vhost) if name.startswith("mb.tap.")]

    async with connect("agent.researcher", settings=settings) as bus:
        access, policy = open_access(bus, settings), StoragePolicy(attempts=1)
        async with Artifacts(bus, access, settings.data_dir, policy=policy) as artifacts:
            put = await artifacts.put(b"text", artifact_type="draft", trace=TRACE)
            assert put.is_pending
            await until(listening)
            async with fleet_of(FLEET["storage"], settings=settings):
                await until(lambda: artifacts.waiting(put.ref.artifact_id) is None)
                await until(lambda: _none(listening))
                assert (await bus.request(GetArtifact(artifact_id=put.ref.artifact_id))).id == put.ref.artifact_id


async def _none(found: Callable[[], Awaitable[list[str]]]) -> bool:
    return not await found()
