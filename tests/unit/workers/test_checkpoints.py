"""The checkpointer is durable, shared by name, kept from growing for ever."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint

from benchmarks.servers.postgres import PrivatePostgres
from tests.postgres import DatabaseOf
from workers.checkpoints import open_checkpoints


def thread(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name, "checkpoint_ns": ""}}


async def think(saver: BaseCheckpointSaver[Any], name: str) -> None:
    await saver.aput(thread(name), empty_checkpoint(), {}, {})


async def test_what_was_thought_is_there_after_a_restart(empty_database_of: DatabaseOf) -> None:
    url = empty_database_of("critic")
    async with open_checkpoints(url, "critic") as saver:
        await think(saver, "a")

    async with open_checkpoints(url, "critic") as saver:
        assert await saver.aget_tuple(thread("a")) is not None


async def test_only_what_is_old_is_forgotten(empty_database_of: DatabaseOf) -> None:
    async with open_checkpoints(empty_database_of("critic"), "critic") as saver:
        await think(saver, "a")
        now = datetime.now(UTC)

        assert await saver.forget_before(now - timedelta(minutes=1)) == 0
        assert await saver.aget_tuple(thread("a")) is not None
        assert await saver.forget_before(now + timedelta(minutes=1)) == 1
        assert await saver.aget_tuple(thread("a")) is None


async def test_services_that_share_a_database_do_not_share_their_thoughts(empty_database_of: DatabaseOf) -> None:
    urls = {service: empty_database_of(service) for service in ("critic", "editor")}
    async with (
        open_checkpoints(urls["critic"], "critic") as critic,
        open_checkpoints(urls["editor"], "editor") as editor,
    ):
        await think(critic, "a")

        assert await editor.aget_tuple(thread("a")) is None


async def test_instances_that_start_together_prepare_the_tables_once(empty_postgres_url: str) -> None:
    async def one(name: str) -> None:
        async with open_checkpoints(empty_postgres_url, "critic") as saver:
            await think(saver, name)
            assert await saver.aget_tuple(thread(name)) is not None

    await asyncio.gather(*(one(f"thread {number}") for number in range(4)))


async def test_a_checkpointer_outlives_a_crash_of_its_postgresql(own_postgres: PrivatePostgres) -> None:
    async with open_checkpoints(own_postgres.url, "critic") as saver:
        await think(saver, "a")
        await own_postgres.kill()
        await own_postgres.start()

        await think(saver, "b")

        assert await saver.aget_tuple(thread("a")) is not None
        assert await saver.aget_tuple(thread("b")) is not None
