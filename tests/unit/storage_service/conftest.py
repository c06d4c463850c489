"""Storage on what it may stand on, one fresh copy a test: one machine's disk, or what production has."""

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mindbus.files.store import FileStore, open_folder
from mindbus.sql.database import Database
from tests.postgres import DatabaseOf
from tests.seaweed import Place
from tests.storage_kit import Depot, OpenDepot


@pytest.fixture
def local_files(tmp_path: Path) -> FileStore:
    return open_folder((tmp_path / "artifacts").as_uri())


@pytest.fixture
def s3_files(s3_place: Place) -> FileStore:
    return s3_place.files()


@pytest.fixture(
    params=[
        pytest.param(("sqlite_database_of", "local_files"), id="sqlite + files"),
        pytest.param(("postgres_database_of", "s3_files"), id="postgres + seaweed", marks=pytest.mark.backends),
    ]
)
def backends(request: pytest.FixtureRequest) -> tuple[DatabaseOf, FileStore]:
    """Where the rows go, where the bytes."""
    database_of, files = map(request.getfixturevalue, request.param)
    return database_of, files


@pytest.fixture
async def open_depot(tmp_path: Path, backends: tuple[DatabaseOf, FileStore]) -> AsyncIterator[OpenDepot]:
    """Open storage on this test's rows and bytes, as often as it restarts."""
    database_of, files = backends
    opened: list[Depot] = []

    def opening(**options: Any) -> Depot:
        database = Database(database_of("storage"), "storage")
        opened.append(Depot(tmp_path, database, files, **options))
        return opened[-1]

    yield opening
    for depot in opened:
        await depot.database.dispose()


@pytest.fixture
def depot(open_depot: OpenDepot) -> Depot:
    return open_depot()


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every address that anything tries to connect to; nothing gets through."""
    tried: list[object] = []

    def connect(_socket: socket.socket, address: object) -> None:
        tried.append(address)
        raise ConnectionRefusedError(address)

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket.socket, "connect_ex", connect)
    return tried
