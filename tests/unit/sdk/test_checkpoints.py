"""The checkpointer is durable, shared by name, kept from growing for ever."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint

from mindbus.sdk.checkpoints import forget_before, open_checkpoints


def thread(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name, "checkpoint_ns": ""}}


async def test_what_was_thought_is_there_after_a_restart(tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path / 'deep' / 'critic.db'}"
    async with open_checkpoints(url, "critic") as saver:
        await saver.aput(thread("a"), empty_checkpoint(), {}, {})

    async with open_checkpoints(url, "critic") as saver:
        assert await saver.aget_tuple(thread("a")) is not None


async def test_only_what_is_old_is_forgotten(tmp_path: Path) -> None:
    async with open_checkpoints(f"sqlite+aiosqlite:///{tmp_path / 'critic.db'}", "critic") as saver:
        await saver.aput(thread("a"), empty_checkpoint(), {}, {})
        now = datetime.now(UTC)

        assert await forget_before(saver, now - timedelta(minutes=1)) == 0
        assert await saver.aget_tuple(thread("a")) is not None
        assert await forget_before(saver, now + timedelta(minutes=1)) == 1
        assert await saver.aget_tuple(thread("a")) is None
