"""Bytes of a person on every disk after `users forget`: only where the documentation says, gone after their bound."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
from redis import Redis

from benchmarks.servers.postgres import PrivatePostgres, libpq_url
from benchmarks.servers.redis import PrivateRedis
from mindbus.bus.deadletters import DeadLetters
from mindbus.testing.wait import eventually, until
from tests.command_line import Shell, require_rabbitmq
from tests.raw_amqp import an_envelope, raw_publisher
from tests.redises import private_redis
from tests.seaweed import Place

pytestmark = [pytest.mark.rabbit, pytest.mark.timeout(600)]

# As it is said, and as a word of it is found in an index.
SECRET, STEM = "Zanzibarquokka", b"zanzibarquok"
WORKERS = (
    "storage,history,swm,glm,lsm,task_manager,context_manager,mood_watcher,context,orchestrator,tracker,dialogue,"
    "subagent-analytic"
)
SAID = f"We decided: {SECRET} moves on Friday. I need to prepare the {SECRET} contract by Wednesday. I am glad."
# Journals of the broker; data of large messages, for thirty days.
KEPT_FOR_A_TIME = ("broker/", "artifacts/claims/")


def files_with_secret(folder: Path) -> list[str]:
    """Paths below the folder of files that hold the word in clear."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and STEM in path.read_bytes().lower()
    )


def live_through(shell: Shell, tmp_path: Path) -> None:
    """Have zed say the word in all ways that there are, and anna say something else."""
    for user, said in (("zed", SAID), ("anna", "The Marmalade harvest is on Monday.")):
        shell.ok("users", "add", user, "--name", user.title())
        shell.ok("chat", "--user", user, "-m", said)
        shell.ok("dialogues", "end", user)
    long = tmp_path / "long.txt"
    long.write_text(" ".join([SECRET, *("and so it goes on" for _ in range(1500))]), encoding="utf-8")
    shell.ok("chat", "--user", "zed", "--file", str(long))
    shell.ok("tasks", "add", f"Call about {SECRET}", "--user", "zed")
    shell.ok("memory", "add", "--text", f"{SECRET} is mine", "--visibility", "private", "--as", "user.zed")
    shell.ok("memory", "search", SECRET, "--as", "user.zed")
    shared = json.dumps({"content": f"{SECRET} at hand", "visibility": "private"})
    shell.ok("send", "swm.publish_kem", f"kem={shared}", "--wait", "--as", "user.zed")
    shell.ok("episodes", "search", SECRET, "--chat", "zed")
    shell.ok("users", "add", "zed", "--role", "user")
    note = tmp_path / "note.txt"
    note.write_text(f"{SECRET} in a file", encoding="utf-8")
    shell.ok("artifacts", "put", str(note), "--type", "note", "--trace", "t1", "--as", "user.zed")
    asyncio.run(a_dead_letter(shell.json("status", "--show-secrets")["amqp_url"]))
    eventually(lambda: agents_have_read(shell), 120, "the agents have read it")


def agents_have_read(shell: Shell) -> bool:
    events = shell.json("events", "--trace", "conv_zed", "--topic", "fleet")
    return [event["name"] for event in events].count("agent_result") >= 3


async def a_dead_letter(amqp_url: str) -> None:
    said = {"user_id": "zed", "text": SECRET}
    async with raw_publisher(amqp_url) as raw:
        await raw.envelope(an_envelope("mb.cmd.storage.get_user.v1", data=said, mbrequester="user.zed"), "storage")
    await until(lambda: DeadLetters(amqp_url).look("storage"), 60, "a dead letter")


def forget(shell: Shell) -> None:
    forgotten = shell.json("users", "forget", "zed", "--yes")
    assert forgotten["removed"]["dead letters"] == {"messages": 1}
    assert forgotten["removed"]["access"] == {"accounts": 1}
    assert shell.json("dlq", "ls") == []


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    require_rabbitmq()
    return tmp_path / "data"


def test_no_file_of_the_data_folder_has_a_word_of_theirs(data_dir: Path, tmp_path: Path) -> None:
    shell = Shell(data_dir)
    try:
        shell.ok("up", "-d", "--workers", WORKERS, spawned=True)
        live_through(shell, tmp_path)
        before = files_with_secret(data_dir)
        forget(shell)
        eventually(lambda: not kept_for_ever(data_dir), 30, "what is deleted within seconds, logs of SQLite")
    finally:
        shell.ok("down")

    assert {"storage.db", "lsm.db", "glm.db"} <= {name.removesuffix("-wal") for name in before}
    assert kept_for_ever(data_dir) == []
    assert b"marmalade" in (data_dir / "storage.db").read_bytes().lower()


def kept_for_ever(data_dir: Path) -> list[str]:
    return [name for name in files_with_secret(data_dir) if not name.startswith(KEPT_FOR_A_TIME)]


@pytest.fixture
async def cache_redis() -> AsyncIterator[PrivateRedis]:
    """A Redis for units at hand alone, which may evict them."""
    server = private_redis("--maxmemory", "64mb", "--maxmemory-policy", "volatile-lru")
    try:
        await server.start()
        yield server
    finally:
        await server.remove()


async def test_no_server_has_a_word_of_theirs(
    data_dir: Path,
    tmp_path: Path,
    own_postgres: PrivatePostgres,
    own_redis: PrivateRedis,
    cache_redis: PrivateRedis,
    s3_place: Place,
) -> None:
    servers = {
        "MINDBUS_DATABASE_URL": own_postgres.url,
        "MINDBUS_REDIS_URL": own_redis.url,
        "MINDBUS_CACHE_REDIS_URL": cache_redis.url,
    }
    shell = Shell(data_dir, settings=servers | s3_place.environment())

    def story() -> None:
        try:
            shell.ok("up", "-d", "--workers", WORKERS, spawned=True)
            live_through(shell, tmp_path)
            assert in_postgres(own_postgres)
            assert in_redis(own_redis)
            assert in_redis(cache_redis)
            assert in_objects(s3_place)
            forget(shell)
            eventually(lambda: not in_objects(s3_place), 120, "what is deleted within seconds")
        finally:
            shell.ok("down")

    await asyncio.to_thread(story)

    assert kept_for_ever(data_dir) == []
    assert in_redis(own_redis) == in_redis(cache_redis) == []
    # As autovacuum does in its time.
    assert in_postgres(own_postgres, "VACUUM FULL") == []


def in_redis(server: PrivateRedis) -> list[bytes]:
    """Keys whose values hold the word."""
    with Redis.from_url(server.url) as redis:
        return [key for key in redis.scan_iter() if STEM in (redis.dump(key) or b"").lower() + key.lower()]


def in_postgres(server: PrivatePostgres, *maintenance: str) -> list[str]:
    """Tables and indexes whose files hold the word after this maintenance."""
    with psycopg.connect(libpq_url(server.url), autocommit=True) as connection:
        for work in (*maintenance, "CHECKPOINT"):
            connection.execute(work)
        names: dict[str, str] = dict(
            connection.execute("SELECT pg_relation_filepath(oid), oid::regclass::text FROM pg_class").fetchall()
        )
    files = files_with_secret(server.folder / "data" / "base")
    return [names.get(f"base/{file}", file) for file in files]


def in_objects(place: Place) -> list[str]:
    """Paths of objects that hold the word, but for the data of large messages."""
    fs, root = place.files().fs, place.url.removeprefix("s3://")
    fs.invalidate_cache()
    paths = [path for path in fs.find(root) if not path.startswith(f"{root}/claims/")]
    if not paths:
        return []
    # One that is deleted meanwhile is left out.
    return [path for path, content in fs.cat(paths, on_error="omit").items() if STEM in content.lower()]
