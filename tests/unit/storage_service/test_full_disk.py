"""A disk is full: nothing is half there, what was asked for is done once there is room."""

import asyncio
import errno
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

import psycopg
import pytest
from psycopg.sql import SQL, Identifier, Literal
from sqlalchemy.engine import make_url

from benchmarks.servers.postgres import PrivatePostgres, libpq_url
from bus_schema.artifacts import AIContext, Manifest
from bus_schema.ids import mint
from bus_schema.storage import RegisterArtifact
from mindbus.errors import TemporaryFailure
from mindbus.files.store import open_folder
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sql.database import Database
from mindbus.testing.deliver import running
from mindbus.testing.wait import until
from storage_service.blobs import Declared
from storage_service.local_blobs import LocalBlobs
from storage_service.local_folders import NEW
from storage_service.service import StorageService
from tests.fleets import settings_for
from tests.installed import FLEET
from tests.postgres import DatabaseOf
from tests.small_disks import SmallDisk, small_disk_at
from tests.storage_kit import Depot

pytestmark = pytest.mark.slow

CONTENT = os.urandom(1024**2)
SMALL_MB = 8


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk_at(tmp_path / "small", SMALL_MB) as disk:
        yield disk


@asynccontextmanager
async def depot_on(folder: Path, database_url: str, blobs: LocalBlobs | None = None) -> AsyncIterator[Depot]:
    """Bytes in the folder, rows at the URL."""

    def arrange(storage: StorageService) -> StorageService:
        return storage if blobs is None else replace(storage, registrar=replace(storage.registrar, blobs=blobs))

    database = Database(database_url, "storage")
    yield Depot(folder, database, open_folder(folder.as_uri()), arrange=arrange)
    await database.dispose()


async def require_nothing_half_there(depot: Depot) -> None:
    """The upload, as it was; no more."""
    assert depot.object_files() == depot.temporary_files() == []
    assert len(depot.staged_files()) == 1
    for table in ("artifact_manifests", "inbox", "outbox", "spent_uploads"):
        assert await depot.rows(table) == 0


async def require_artifact(depot: Depot, manifest: Manifest) -> None:
    """There once, whole, tidy."""
    await depot.worker.maintenance.clean()
    assert depot.content_of(await depot.get(manifest.id)) == CONTENT
    assert depot.staged_files() == depot.temporary_files() == []
    assert await depot.rows("artifact_manifests") == 1


@pytest.mark.parametrize("leaving_bytes", [0, 4096, 300_000, len(CONTENT) - 4096])
async def test_a_copy_that_finds_no_room_is_made_when_there_is_some(
    disk: SmallDisk, sqlite_database_of: DatabaseOf, leaving_bytes: int
) -> None:
    async with depot_on(disk.folder, sqlite_database_of("storage")) as depot:
        command = RegisterArtifact(manifest=depot.manifest(CONTENT))
        disk.fill(leaving_bytes)
        for _ in range(2):
            with pytest.raises(TemporaryFailure, match="No space left"):
                await depot.handle(command, message_id="msg_1")
            await require_nothing_half_there(depot)

        disk.clear()
        await depot.handle(command, message_id="msg_1")

        await require_artifact(depot, command.manifest)


class FullBlobs(LocalBlobs):
    """Find no room in the middle of a copy, until there is some."""

    is_full = True

    def _write(self, staged: IO[bytes], temporary: int, part: str, declared: Declared) -> None:
        if not self.is_full:
            super()._write(staged, temporary, part, declared)
            return
        with os.fdopen(os.open(part, NEW, 0o600, dir_fd=temporary), "wb") as target:
            target.write(staged.read(declared.size_bytes // 2))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_a_copy_that_breaks_off_for_want_of_room_leaves_nothing(
    tmp_path: Path, sqlite_database_of: DatabaseOf
) -> None:
    blobs = FullBlobs(tmp_path / "artifacts")
    async with depot_on(tmp_path / "artifacts", sqlite_database_of("storage"), blobs) as depot:
        command = RegisterArtifact(manifest=depot.manifest(CONTENT))
        with pytest.raises(TemporaryFailure, match="No space left"):
            await depot.handle(command, message_id="msg_1")
        await require_nothing_half_there(depot)

        blobs.is_full = False
        await depot.handle(command, message_id="msg_1")

        await require_artifact(depot, command.manifest)


async def test_an_artifact_exists_though_there_is_no_room_for_the_copy_of_its_manifest(
    disk: SmallDisk, sqlite_database_of: DatabaseOf
) -> None:
    async with depot_on(disk.folder, sqlite_database_of("storage")) as depot:
        manifest = depot.manifest(CONTENT)
        await depot.register(manifest)
        disk.fill()

        await depot.worker.maintenance.clean()
        assert depot.content_of(await depot.get(manifest.id)) == CONTENT
        assert (len(depot.staged_files()), await depot.rows("spent_uploads")) == (1, 1)

        disk.clear()
        await require_artifact(depot, manifest)
        assert await depot.rows("spent_uploads") == 0


async def test_rows_that_find_no_room_are_written_when_there_is_some(
    disk: SmallDisk, tmp_path: Path, migrated: Path
) -> None:
    shutil.copy(migrated / "storage.db", disk.folder)
    url = f"sqlite+aiosqlite:///{disk.folder / 'storage.db'}"
    async with depot_on(tmp_path / "artifacts", url) as depot:
        command = RegisterArtifact(manifest=depot.manifest(CONTENT))
        disk.fill()
        with pytest.raises(TemporaryFailure, match="full"):
            await depot.handle(command, message_id="msg_1")

        disk.clear()
        assert await depot.rows("artifact_manifests") == 0
        await depot.handle(command, message_id="msg_1")

        await require_artifact(depot, command.manifest)


async def test_a_full_tablespace_is_no_loss(own_postgres: PrivatePostgres, tmp_path: Path) -> None:
    # Within the server's own folder, since nobody else may look into that of the test.
    with small_disk_at(own_postgres.folder / "small", 32) as disk:
        url = await asyncio.to_thread(_database_in, own_postgres, disk)
        async with depot_on(tmp_path / "artifacts", url) as depot:
            registered = [await depot.put()]
            disk.fill()
            last = await _until_full(depot, registered)

            disk.clear()
            await depot.handle(RegisterArtifact(manifest=last), message_id=last.id)

            for artifact_id in (*registered, last.id):
                assert depot.content_of(await depot.get(artifact_id)) == b"findings"
            assert await depot.rows("artifact_manifests") == len(registered) + 1


async def _until_full(depot: Depot, registered: list[str]) -> Manifest:
    """The first artifact for which there is no room."""
    while True:
        manifest = _with_a_long_context(depot)
        try:
            await depot.handle(RegisterArtifact(manifest=manifest), message_id=manifest.id)
        except TemporaryFailure as full:
            if "No space left" not in str(full):
                raise
            return manifest
        registered.append(manifest.id)


def _with_a_long_context(depot: Depot) -> Manifest:
    params = {f"parameter_{number}": os.urandom(500).hex() for number in range(50)}
    return depot.manifest(id=mint("art"), context=AIContext(model_params=params))


def _database_in(server: PrivatePostgres, disk: SmallDisk) -> str:
    owner = (server.folder / "data").stat()
    os.chown(disk.folder, owner.st_uid, owner.st_gid)
    # None can be copied to which somebody is connected.
    admin = libpq_url(make_url(server.url).set(database="template1").render_as_string(hide_password=False))
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(SQL("CREATE TABLESPACE small LOCATION {}").format(Literal(str(disk.folder))))
        connection.execute(
            SQL("CREATE DATABASE {} TEMPLATE postgres TABLESPACE small").format(Identifier("on_small_disk"))
        )
    return make_url(server.url).set(database="on_small_disk").render_as_string(hide_password=False)


@pytest.mark.parametrize("leaving_bytes", [0, len(CONTENT) + 100_000], ids=["to stage", "to publish"])
async def test_an_agent_goes_on_while_the_disk_of_the_store_is_full(
    disk: SmallDisk, tmp_path: Path, leaving_bytes: int
) -> None:
    settings = settings_for(f"memory://{tmp_path}", tmp_path, artifacts_url=disk.folder.as_uri(), heartbeat_s=0.2)
    async with (
        running(FLEET["storage"], settings=settings, identity="agent.researcher") as bus,
        open_artifacts(bus, settings) as artifacts,
    ):
        disk.fill(leaving_bytes)
        put = await artifacts.put(CONTENT, artifact_type="draft", trace="run_1")
        assert put.is_pending

        disk.clear()

        async def is_registered() -> bool:
            found = await artifacts.find(put.ref.artifact_id, trace="run_1")
            return found is not None and not found.is_pending

        await until(is_registered, 30)
        assert await artifacts.get(put.ref.artifact_id, trace="run_1") == CONTENT
