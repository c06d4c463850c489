"""Empty SQLite databases of all services, made once a process: to migrate anew takes longer than most tests."""

import asyncio
import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from memory.glm import tables as glm_tables
from memory.history import sql_store as history_tables
from memory.lsm import tables as lsm_tables
from memory.swm import tables as swm_tables
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade
from storage_service import runs, tables
from tests.postgres import DatabaseOf


async def migrate(database_of: DatabaseOf) -> None:
    """Give every service its tables."""
    services = {
        "storage": tables.MIGRATIONS,
        "orchestrator": runs.MIGRATIONS,
        "glm": glm_tables.MIGRATIONS,
        "lsm": lsm_tables.MIGRATIONS,
        "history": history_tables.MIGRATIONS,
        "swm": swm_tables.MIGRATIONS,
    }
    for service, migrations in services.items():
        await upgrade(Database(database_of(service), service), migrations)


@cache
def migrated_databases() -> Path:
    """A folder with the database of every service; called where no event loop runs."""
    folder = Path(tempfile.mkdtemp(prefix="mindbus-migrated-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    asyncio.run(migrate(sqlite_in(folder)))
    return folder


def add_databases(folder: Path) -> None:
    """Put those into a folder that are not there."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in migrated_databases().iterdir():
        if not (folder / file.name).exists():
            shutil.copy(file, folder)


def sqlite_in(folder: Path) -> DatabaseOf:
    return lambda service: f"sqlite+aiosqlite:///{folder / f'{service}.db'}"
