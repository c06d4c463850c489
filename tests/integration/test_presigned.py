"""An agent that holds no key to the object store: all it has is a bus, and what storage signs for it."""

import hashlib
import os
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from bus_schema.artifacts import Manifest
from bus_schema.storage import GetArtifact
from bus_schema.uploads import PresignedGet, PresignedPut, RequestUpload
from config.settings import FleetSettings
from mindbus import Client, ReplyError, connect
from mindbus.bus.worker import utc_now
from mindbus.files.presigned import BytesRefused, PresignedTransfer
from mindbus.files.store import open_files
from mindbus.sdk.artifacts import Artifacts, open_access, open_artifacts
from mindbus.sdk.errors import ArtifactNotFound, PresigningUnavailable
from mindbus.sdk.presigned_access import PresignedAccess
from mindbus.sdk.storage_link import StorageClient
from mindbus.sdk.transfers import ByteStream
from storage_service.blobs import Declared
from storage_service.uploads import GET_WITHIN, PUT_WITHIN, Presigner, open_presigner
from tests.fleets import fleet_of
from tests.greetings import Greet, Greeted, Greeter
from tests.installed import FLEET
from tests.seaweed import Place

TRACE = "run_1"
MIB = 1024 * 1024
CONTENT = os.urandom(3 * MIB + 17)


@pytest.fixture
def settings(tmp_path: Path) -> FleetSettings:
    """Those of an agent: no store, no key to one."""
    return FleetSettings(amqp_url=f"memory://{tmp_path}", data_dir=tmp_path / "agent", artifacts_access="presigned")


@pytest.fixture
async def storage(s3_place: Place, settings: FleetSettings, tmp_path: Path) -> AsyncIterator[FleetSettings]:
    """Storage at work, which alone has the key, whatever is set for everybody."""
    data_dir = tmp_path / "storage"
    own = s3_place.settings(amqp_url=settings.amqp_url, data_dir=data_dir, artifacts_access="presigned")
    async with fleet_of(FLEET["storage"], settings=own):
        yield own


@asynccontextmanager
async def an_agent(
    settings: FleetSettings, identity: str = "agent.researcher"
) -> AsyncIterator[tuple[Client, Artifacts]]:
    async with connect(identity, settings=settings) as bus, open_artifacts(bus, settings) as artifacts:
        yield bus, artifacts


async def put(artifacts: Artifacts, source: Any = CONTENT, **about: Any) -> str:
    made = await artifacts.put(source, **{"artifact_type": "dataset", "trace": TRACE, **about})
    assert made.outcome == "registered"
    return made.ref.artifact_id


async def all_of(pieces: ByteStream) -> list[bytes]:
    found = []
    while piece := await pieces.read():
        found.append(piece)
    await pieces.close()
    return found


@pytest.mark.usefixtures("storage")
async def test_what_it_puts_it_gets_whole_or_in_part(settings: FleetSettings, tmp_path: Path) -> None:
    source, back = tmp_path / "source.bin", tmp_path / "back.bin"
    source.write_bytes(CONTENT)

    async with an_agent(settings) as (bus, artifacts):
        artifact_id, empty = await put(artifacts, source), await put(artifacts, b"")
        whole, nothing = await artifacts.get(artifact_id), await artifacts.get(empty)
        await artifacts.save(artifact_id, back)
        manifest = await artifacts.manifest(artifact_id)
        part = await all_of(await open_access(bus, settings).open(manifest, TRACE, MIB, 2 * MIB))

    assert (whole, nothing, back.read_bytes()) == (CONTENT, b"", CONTENT)
    assert b"".join(part) == CONTENT[MIB : 3 * MIB]
    assert max(map(len, part)) <= MIB


async def test_a_message_too_large_for_the_bus_goes_by_claim_both_ways(
    settings: FleetSettings, storage: FleetSettings
) -> None:
    note = "я" * MIB
    async with fleet_of(Greeter, settings=settings) as fleet, fleet.bus.subscribe(Greeted) as events:
        greeting = await fleet.bus.request(Greet(name="Anna", note=note))
        heard = await anext(aiter(events))
    direct = storage.model_copy(update={"artifacts_access": "direct"})
    async with fleet_of(Greeter, settings=direct), an_agent(settings) as (bus, _):
        by_key = await bus.request(Greet(name="Anna", note=note))

    assert (greeting.times_seen, heard.text) == (len(note), note)
    assert by_key.times_seen == len(note)


@pytest.mark.usefixtures("storage")
async def test_an_address_to_read_is_told_to_those_who_may_read_and_opens_this_object_alone(
    settings: FleetSettings,
) -> None:
    async with an_agent(settings) as (bus, artifacts):
        artifact_id = await put(artifacts, b"secret notes", visibility="private", content_type="text/html")
        found = await bus.request(GetArtifact(artifact_id=artifact_id, presigned=True))
    async with an_agent(settings, "agent.critic") as (bus, artifacts):
        with pytest.raises(ReplyError) as no:
            await bus.request(GetArtifact(artifact_id=artifact_id, presigned=True))
        with pytest.raises(ArtifactNotFound):
            await artifacts.get(artifact_id)
    assert found.presigned_url is not None
    url = found.presigned_url.url

    async with httpx.AsyncClient(timeout=60) as client:
        answer = await client.get(url)
        wrong = {
            "another object": await client.get(url.replace(found.uri, f"{found.uri}0")),
            "shown in place": await client.get(url.replace("attachment", "inline")),
            "removed": await client.delete(url),
            "overwritten": await client.put(url, content=b"x"),
            "tampered with": await client.get(tampered(url)),
        }

    assert answer.content == b"secret notes"
    assert answer.headers["content-disposition"] == f'attachment; filename="{artifact_id}.html"'
    assert timedelta(0) < found.presigned_url.expires - datetime.now(UTC) <= GET_WITHIN
    assert {what: status.status_code for what, status in wrong.items()} == dict.fromkeys(wrong, 403)
    assert (no.value.code, set(no.value.details)) == ("not_found", {"artifact_id"})


@pytest.mark.usefixtures("storage")
async def test_an_address_to_stage_is_for_the_declared_bytes_once(settings: FleetSettings) -> None:
    async with an_agent(settings) as (bus, _):
        put = await requested(bus)
        other = await requested(bus)
    headers, shorter = put.headers, CONTENT[:-1]
    other_digest = {"x-amz-checksum-sha256": b64encode(bytes(32)).decode()}

    async with httpx.AsyncClient(timeout=60) as client:
        wrong = {
            "tampered with": await client.put(tampered(put.url), content=CONTENT, headers=headers),
            "another length": await client.put(
                put.url, content=shorter, headers=headers | {"content-length": str(len(shorter))}
            ),
            "another digest": await client.put(put.url, content=CONTENT, headers=headers | other_digest),
            "other bytes": await client.put(put.url, content=b"x" * len(CONTENT), headers=headers),
            "without the condition": await client.put(
                put.url, content=CONTENT, headers={k: v for k, v in headers.items() if k != "if-none-match"}
            ),
            "another key": await client.put(other.url.replace("staging", "objects"), content=CONTENT, headers=headers),
        }
        first = await client.put(put.url, content=CONTENT, headers=headers)
        second = await client.put(put.url, content=CONTENT, headers=headers)

    assert {what: answer.status_code for what, answer in wrong.items()} == dict.fromkeys(wrong, 403) | {
        "other bytes": 400
    }
    assert (first.status_code, second.status_code) == (200, 412)
    assert timedelta(0) < put.expires - datetime.now(UTC) <= PUT_WITHIN


def tampered(url: str) -> str:
    return url[:-1] + ("0" if url[-1] != "0" else "1")


async def requested(bus: Client, content: bytes = CONTENT) -> PresignedPut:
    checksum = f"sha256:{hashlib.sha256(content).hexdigest()}"
    query = RequestUpload(content_type="text/plain", size_bytes=len(content), checksum=checksum)
    upload = await bus.request(query)
    assert upload.presigned_put is not None
    return upload.presigned_put


class SlowPost:
    """Hands on what storage signs, but the first address of either kind has been on its way for an hour."""

    def __init__(self, storage: StorageClient, presigner: Presigner) -> None:
        self._storage = storage
        self._an_hour_ago = replace(presigner, clock=lambda: datetime.now(UTC) - timedelta(hours=1))
        self.told: list[str] = []

    async def address_to_stage(self, manifest: Manifest) -> PresignedPut | None:
        self.told.append("to stage")
        if self.told.count("to stage") == 1:
            return self._an_hour_ago.put(manifest.uri, Declared(manifest.sha256, manifest.size_bytes))
        return await self._storage.address_to_stage(manifest)

    async def address_to_read(self, artifact_id: str, trace: str | None) -> PresignedGet | None:
        self.told.append("to read")
        if self.told.count("to read") == 1:
            manifest = await self._storage.manifest(artifact_id, trace)
            return self._an_hour_ago.get(manifest.uri, artifact_id, "text/plain")
        return await self._storage.address_to_read(artifact_id, trace)


async def test_an_address_that_has_expired_is_refused_then_asked_for_anew(
    settings: FleetSettings, storage: FleetSettings
) -> None:
    presigner = open_presigner(open_files(storage), utc_now)
    assert presigner is not None
    async with connect("agent.researcher", settings=settings) as bus:
        post = SlowPost(StorageClient(bus), presigner)
        async with Artifacts(bus, PresignedAccess(post), settings.data_dir) as artifacts:
            back = await artifacts.get(await put(artifacts))

    assert back == CONTENT
    assert post.told == ["to stage", "to stage", "to read", "to read"]


@pytest.mark.usefixtures("storage")
async def test_what_was_sent_before_the_answer_was_lost_is_not_sent_in_vain(settings: FleetSettings) -> None:
    async with an_agent(settings) as (bus, _):
        signed = await requested(bus)
        for _ in range(2):
            await PresignedTransfer().send(signed.url, signed.headers, pieces_of(CONTENT))
        fresh = await requested(bus)
        with pytest.raises(BytesRefused):
            await PresignedTransfer().send(fresh.url, fresh.headers, pieces_of(b"x" * len(CONTENT)))


@pytest.mark.usefixtures("storage")
async def test_a_store_on_this_machine_is_reached_without_the_proxy_of_the_environment(
    settings: FleetSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_agent(settings) as (bus, _):
        signed = await requested(bus)
        for name, value in (("http_proxy", "http://127.0.0.1:1"), ("no_proxy", "")):
            monkeypatch.setenv(name, value)
            monkeypatch.setenv(name.upper(), value)

        await PresignedTransfer().send(signed.url, signed.headers, pieces_of(CONTENT))


async def pieces_of(content: bytes) -> AsyncIterator[bytes]:
    yield content[:MIB]
    yield content[MIB:]


async def test_where_storage_keeps_a_folder_it_says_so_rather_than_signing(
    settings: FleetSettings, tmp_path: Path
) -> None:
    folder = FleetSettings(amqp_url=settings.amqp_url, data_dir=tmp_path / "storage")
    async with fleet_of(FLEET["storage"], settings=folder), connect("agent.writer", settings=folder) as writer:
        async with open_artifacts(writer, folder) as artifacts:
            artifact_id = await put(artifacts, visibility="public")
        async with an_agent(settings) as (bus, artifacts):
            upload = await bus.request(RequestUpload(content_type="a/b", size_bytes=0, checksum=f"sha256:{'0' * 64}"))
            with pytest.raises(PresigningUnavailable, match="MINDBUS_ARTIFACTS_ACCESS=direct"):
                await artifacts.get(artifact_id)

    assert upload.presigned_put is None
    assert upload.uri.startswith("file:///")
