"""Storage on this machine's disk, one fresh copy a test."""

import asyncio
import shutil
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade
from storage_service.models import MIGRATIONS
from tests.storage_kit import Depot, OpenDepot


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database with all its tables: to migrate anew for every test takes longer than most tests."""
    path = tmp_path_factory.mktemp("template") / "storage.db"
    database = Database(f"sqlite+aiosqlite:///{path}", "storage")
    asyncio.run(upgrade(database, MIGRATIONS))
    return path


@pytest.fixture
async def open_depot(tmp_path: Path, migrated: Path) -> AsyncIterator[OpenDepot]:
    """Open storage on this test's files, as often as it restarts."""
    shutil.copy(migrated, tmp_path / "storage.db")
    opened: list[Depot] = []

    def opening(**options: Any) -> Depot:
        database = Database(f"sqlite+aiosqlite:///{tmp_path / 'storage.db'}", "storage")
        opened.append(Depot(tmp_path, database, **options))
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
