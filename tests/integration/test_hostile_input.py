"""Addresses and names that mean harm, over the bus, to a storage in a folder as to one in an object store."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bus_schema.artifacts import Manifest
from bus_schema.ids import mint
from bus_schema.messages import Command
from bus_schema.replies import Code
from bus_schema.storage import (
    GetArtifact,
    GetLineage,
    GetVersions,
    RegisterArtifact,
    SearchArtifacts,
    SetTraceMembers,
)
from bus_schema.uploads import OpenClaim, RequestUpload
from config.settings import FleetSettings
from mindbus import Client
from mindbus.files.store import FileStore, open_files
from tests.fleets import fleet_of
from tests.hostile_addresses import hostile_addresses, hostile_names
from tests.installed import FLEET
from tests.seaweed import Place

CONTENT = b"findings"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
SECRET = "not an artifact"


@dataclass
class House:
    """Storage at work, in a place whose every file is watched, beside somebody who waits to be called."""

    folder: Path
    files: FileStore
    bus: Client
    port: int
    visitors: list[object] = field(default_factory=list)

    def good(self) -> str:
        return self.files.uri(f"staging/{datetime.now(UTC):%Y/%m/%d}/user_local/{'0' * 32}")

    def addresses(self) -> list[str]:
        """As they are, and as calls to the one who waits."""
        hostile = [each for each in hostile_addresses(self.files.url, self.good()) if len(each) < 900]
        called = [each.replace("127.0.0.1", f"127.0.0.1:{self.port}").replace(":80:", ":") for each in hostile]
        return sorted({*hostile, *called})

    async def codes(self, *commands: Command[Any]) -> list[Code | None]:
        async def code_of(command: Command[Any]) -> Code | None:
            return (await self.bus.ask(command)).code

        return await asyncio.gather(*map(code_of, commands))

    def contents(self) -> dict[str, object]:
        """Every file around, every object there is; but for databases, which are asked instead."""
        paths = [path for path in self.folder.rglob("*") if path.is_file() and ".db" not in path.name]
        found: dict[str, object] = {str(path): path.read_bytes() for path in paths}
        if self.files.local_root is None:
            objects = self.files.fs.find(self.files.root, detail=True)
            # Storage tries its store out while it starts.
            found |= {key: stored.get("ETag") for key, stored in objects.items() if "/.tmp/" not in key}
        return found


@pytest.fixture(params=["folder", pytest.param("object store", marks=pytest.mark.backends)])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> FleetSettings:
    where = {"amqp_url": f"memory://{tmp_path}", "data_dir": tmp_path / "data"}
    if request.param == "folder":
        return FleetSettings.model_validate(where)
    place: Place = request.getfixturevalue("s3_place")
    return place.settings(**where)


@pytest.fixture
async def house(settings: FleetSettings, tmp_path: Path) -> AsyncIterator[House]:
    (tmp_path / "secret.txt").write_text(SECRET, encoding="utf-8")
    files = open_files(settings)

    def visited(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found.visitors.append(writer.get_extra_info("peername"))
        writer.close()

    server = await asyncio.start_server(visited, "127.0.0.1", 0)
    async with server, fleet_of(FLEET["storage"], settings=settings) as fleet:
        found = House(tmp_path, files, fleet.bus, server.sockets[0].getsockname()[1])
        yield found


@asynccontextmanager
async def nothing_happens(house: House) -> AsyncIterator[None]:
    """Nobody is called, no byte is written, no artifact is there that was not there before."""
    before = await asyncio.to_thread(house.contents)
    yield
    assert await asyncio.to_thread(house.contents) == before
    assert (await house.bus.request(SearchArtifacts())).items == ()
    assert house.visitors == []


def a_manifest(house: House, **changes: Any) -> Manifest:
    fields: dict[str, Any] = {
        "id": mint("art"),
        "trace_id": "run_1",
        "created_by": "user.local",
        "created_at": datetime.now(UTC),
        "artifact_type": "draft",
        "content_type": "text/plain",
        "uri": house.good(),
        "size_bytes": len(CONTENT),
        "checksum": f"sha256:{DIGEST}",
        "owner": "user.local",
    }
    return Manifest.model_validate(fields).model_copy(update=changes)


async def test_no_address_is_followed_neither_to_register_nor_to_be_signed(house: House) -> None:
    addresses = house.addresses()
    registering = [RegisterArtifact(manifest=a_manifest(house, uri=address)) for address in addresses]
    signing = [upload(uri=address) for address in addresses]

    async with nothing_happens(house):
        codes = await house.codes(*registering, *signing)

    assert len(addresses) > 200
    assert set(codes) == {Code.INVALID}


def upload(**changes: Any) -> RequestUpload:
    fields: dict[str, Any] = {"content_type": "text/plain", "size_bytes": 8, "checksum": f"sha256:{DIGEST}"}
    return RequestUpload.model_construct(**(fields | changes))


async def test_no_name_that_means_harm_names_anything(house: House) -> None:
    names = [name for name in hostile_names() if len(name) < 1000]
    asking = [
        ask
        for name in names
        for ask in (
            GetArtifact.model_construct(artifact_id=name),
            GetArtifact.model_construct(artifact_id=name, presigned=True),
            GetVersions.model_construct(artifact_id=name),
            GetLineage.model_construct(artifact_id=name),
            OpenClaim.model_construct(key=f"claims/2026/03/14/{name}"),
            OpenClaim.model_construct(key=name),
            SetTraceMembers.model_construct(trace_id="run_1", members=(name,)),
            upload(checksum=name),
            RegisterArtifact.model_construct(manifest=a_manifest(house, id=name)),
            RegisterArtifact.model_construct(manifest=a_manifest(house, artifact_type=f"{name}.")),
            RegisterArtifact.model_construct(manifest=a_manifest(house, owner=name, created_by=name)),
            RegisterArtifact.model_construct(manifest=a_manifest(house, checksum=f"sha256:{name}")),
        )
    ]

    async with nothing_happens(house):
        codes = await house.codes(*asking)

    wrong = [ask for ask, code in zip(asking, codes, strict=True) if code is not Code.INVALID]
    assert len(names) > 60
    assert wrong == []
