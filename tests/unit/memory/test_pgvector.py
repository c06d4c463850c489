"""Vectors in PostgreSQL: what its administrator has to do is said, and memory works on it."""

import os
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.engine import make_url

from benchmarks.servers.postgres import libpq_url
from config.settings import FleetSettings
from memory.vectors.index import IndexAway, IndexRefused
from memory.vectors.pgvector import PgVectorIndex
from mindbus.sql.database import Database
from mindbus_fleet.backup import postgresql
from tests.fleets import settings_for
from tests.memory_kit import SPACE, a_vector
from tests.postgres import Postgres, pgvector_package
from tests.unit.memory.test_vectors import a_point, near
from tests.unit.workers.test_glm import desk_of


async def test_an_administrator_is_asked_for_the_extension(postgres_url: str) -> None:
    index = PgVectorIndex(Database(postgres_url, "glm"), SPACE)

    with pytest.raises(IndexRefused, match="CREATE EXTENSION vector"):
        await index.open()
    await index.close()


async def test_a_table_that_somebody_dropped_is_named(pgvector: Postgres) -> None:
    url = pgvector.create()
    with psycopg.connect(libpq_url(url), autocommit=True) as connection:
        connection.execute("CREATE SCHEMA glm")
        connection.execute("CREATE EXTENSION vector SCHEMA glm")
        index = PgVectorIndex(Database(url, "glm"), SPACE)
        await index.open()
        await index.write([a_point("a")], [])
        assert await near(index) == ["a"]

        connection.execute("DROP SCHEMA glm CASCADE")
        with pytest.raises(IndexRefused, match="does not exist"):
            await near(index)
    await index.close()


async def test_a_server_that_is_away_is_asked_again() -> None:
    index = PgVectorIndex(Database("postgresql+psycopg://mindbus:x@127.0.0.1:9/mindbus", "glm"), SPACE)

    with pytest.raises(IndexAway, match="PostgreSQL"):
        await index.exists()
    await index.close()


async def test_memory_keeps_its_vectors_beside_its_rows(pgvector: Postgres, tmp_path: Path) -> None:
    url = pgvector.create()
    with psycopg.connect(libpq_url(url), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    nearest = a_vector(9, 1, 0, 0).model_dump()
    space: dict[str, Any] = {"embedding_model": SPACE.model, "embedding_dim": SPACE.dim}
    settings = settings_for(f"memory://{tmp_path}", tmp_path, database_url=url, pgvector=True, **space)

    async with desk_of(settings) as desk:
        east = await desk.store(embeddings=a_vector(1, 0, 0, 0), metadata={"status": "done"})
        await desk.store(embeddings=a_vector(0, 1, 0, 0), metadata={"status": "late"})
        assert await desk.found(embedding_query=nearest, metadata_filters={"status": "done"}) == [east.id]
    async with desk_of(settings) as desk:
        assert (await desk.report()).vectors == 2
        assert await desk.found(embedding_query=nearest, metadata_filters={"status": "done"}) == [east.id]
    assert not settings.vectors_folder.exists()


async def test_a_backup_is_restored_by_whoever_owns_a_database_with_the_extension(
    pgvector: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = pgvector_package() / "pginstall" / "bin"
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    dumped, there, elsewhere = tmp_path / "glm.dump", pgvector.create(), make_url(pgvector.create())
    for url, schema in ((there, "CREATE SCHEMA glm"), (elsewhere.render_as_string(hide_password=False), "")):
        with psycopg.connect(libpq_url(url), autocommit=True) as connection:
            connection.execute(f"CREATE EXTENSION vector; {schema}")
    with psycopg.connect(libpq_url(pgvector.url), autocommit=True) as connection:
        # Of the database's own name, which nobody else has.
        connection.execute(f"CREATE ROLE {elsewhere.database} LOGIN PASSWORD 'x'")
        connection.execute(f"ALTER DATABASE {elsewhere.database} OWNER TO {elsewhere.database}")
    index = PgVectorIndex(Database(there, "glm"), SPACE)
    await index.open()
    await index.write([a_point("a")], [])
    await index.close()

    postgresql.dump(make_url(there), dumped)
    plain = elsewhere.set(username=elsewhere.database, password="x")
    postgresql.load(plain, dumped)

    restored = PgVectorIndex(Database(plain.render_as_string(hide_password=False), "glm"), SPACE)
    await restored.open()
    assert await near(restored) == ["a"]
    await restored.close()


@pytest.mark.parametrize(
    ("others", "told"),
    [({}, "MINDBUS_DATABASE_URL"), ({"qdrant_url": "http://127.0.0.1:6333"}, "MINDBUS_QDRANT_URL")],
)
def test_settings_that_name_no_place_or_two_are_refused(others: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        FleetSettings.model_validate({"pgvector": True, **others})
