"""`mindbus credentials` writes the addresses of a stack, of several servers of a kind too."""

import os
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from mindbus.broker_url import nodes_of
from mindbus.sql.database import Database
from tests.command_line import Shell


def keys_of(folder: Path, *options: str) -> Path:
    """The folder with one for each worker."""
    Shell(folder / "data").ok("credentials", str(folder), "--owner", str(os.getuid()), *options)
    return folder


def test_one_of_each(tmp_path: Path) -> None:
    keys = keys_of(tmp_path) / "gateway" / "keys"
    assert (keys / "mindbus_amqp_url").read_text().endswith("@rabbitmq:5672/")
    assert (keys / "mindbus_database_url").read_text().endswith("@postgres/mindbus")
    assert (keys / "mindbus_management_url").read_text().endswith("@rabbitmq:15672")
    assert not (tmp_path / "swm" / "keys" / "mindbus_cache_redis_url").exists()


def test_a_cache_and_the_vectors(tmp_path: Path) -> None:
    folder = keys_of(tmp_path, "--cache-redis", "redis-cache/0")

    durable = (folder / "swm" / "keys" / "mindbus_redis_url").read_text()
    assert (folder / "swm" / "keys" / "mindbus_cache_redis_url").read_text() == durable.replace(
        "@redis/", "@redis-cache/"
    )
    assert not (folder / "history" / "keys" / "mindbus_cache_redis_url").exists()
    key = (folder / "glm" / "keys" / "mindbus_qdrant_api_key").read_text()
    assert key == (folder / "qdrant" / "api_key").read_text()


def test_a_cluster_and_a_standby(tmp_path: Path) -> None:
    options = ("--rabbitmq", "mq-0,mq-1", "--management", "mq", "--postgres", "db-0,db-1/mind")
    keys = keys_of(tmp_path, *options) / "gateway" / "keys"

    nodes = nodes_of((keys / "mindbus_amqp_url").read_text())
    assert [node.rpartition("@")[2] for node in nodes] == ["mq-0/", "mq-1:5672/"]
    assert (keys / "mindbus_management_url").read_text().endswith("@mq:15672")
    database = make_url((keys / "mindbus_database_url").read_text())
    assert (database.database, database.username, database.host) == ("mind", "gateway", None)
    assert database.query == {"host": "db-0,db-1", "target_session_attrs": "read-write"}
    assert 'GRANT CONNECT ON DATABASE "mind"' in (tmp_path / "postgres" / "roles.sql").read_text()


@pytest.mark.backends
async def test_the_server_that_answers_is_taken(postgres_url: str) -> None:
    url = make_url(postgres_url)
    several = {
        "host": "127.0.0.1,127.0.0.1",
        "port": f"1,{url.port}",
        "target_session_attrs": "read-write",
    }
    database = Database(url.set(host=None, port=None, query=several).render_as_string(hide_password=False), "storage")
    async with database.engine.connect() as connection:
        assert (await connection.exec_driver_sql("SELECT 1")).scalar() == 1
    await database.dispose()
