"""A sample of the same stories with SQLite and files, with PostgreSQL and SeaweedFS."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mindbus.files.store import open_folder
from storage_service.service import open_blobs
from tests.crashes.real_world import tell_really
from tests.postgres import DatabaseOf
from tests.seaweed import Place

COUNTS = [3, pytest.param(100, marks=[pytest.mark.proof, pytest.mark.timeout(1800)])]


@pytest.mark.parametrize("count", COUNTS)
async def test_no_story_breaks_a_promise_on_sqlite_and_files(
    count: int, sqlite_database_of: DatabaseOf, tmp_path: Path, report: Callable[[str], None]
) -> None:
    files = open_folder((tmp_path / "artifacts").as_uri())
    for seed in range(count):
        await tell_really(seed, sqlite_database_of("storage"), files, open_blobs(files))
    report(f"{count} schedules on SQLite and files: none broke a promise")


@pytest.mark.parametrize("count", COUNTS)
async def test_no_story_breaks_a_promise_on_postgresql_and_seaweedfs(
    count: int, postgres_database_of: DatabaseOf, s3_place: Place, report: Callable[[str], None]
) -> None:
    files = s3_place.files()
    blobs = open_blobs(files)
    await blobs.prepare()
    for seed in range(count):
        await tell_really(seed, postgres_database_of("storage"), files, blobs)
    report(f"{count} schedules on PostgreSQL and SeaweedFS: none broke a promise")
