"""Checkpoints of LangGraph in a worker's own database: the last one of each thread."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from sqlalchemy import Column, Connection, LargeBinary, MetaData, Row, String, Table, Text, bindparam, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from mindbus.sql.database import Database
from mindbus.sql.errors import answering
from mindbus.sql.tables import Utc

# A step ends within hours: an older thread belongs to no step.
KEPT = timedelta(days=7)

_TABLE = Table(
    "loop_checkpoints",
    MetaData(),
    Column("thread_id", String(256), primary_key=True),
    Column("checkpoint_id", String(64), nullable=False),
    Column("saved_at", Utc, nullable=False, index=True),
    Column("type", String(32), nullable=False),
    Column("checkpoint", LargeBinary, nullable=False),
    Column("metadata", Text, nullable=False),
)
# Of LangGraph's own checkpointers, which earlier releases had.
_FORMER = ("checkpoints", "writes", "checkpoint_blobs", "checkpoint_writes", "checkpoint_migrations")
_OF_THREAD = _TABLE.c.thread_id == bindparam("of")
_READ, _DELETE = select(_TABLE).where(_OF_THREAD), delete(_TABLE).where(_OF_THREAD)


class SqlCheckpoints(BaseCheckpointSaver[int]):
    """Keeps of each thread the last checkpoint, in group commits on SQLite.

    There is nothing to keep before the first node has run, nor of the writes of a node apart from the checkpoint after
    it: in a loop one node runs at a time. Every method raises DatabaseAway.
    """

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database
        dialect = sqlite if database.is_sqlite else postgresql
        insertion = dialect.insert(_TABLE)
        changed = {column.name: insertion.excluded[column.name] for column in _TABLE.c if not column.primary_key}
        self._saving = insertion.on_conflict_do_update(index_elements=["thread_id"], set_=changed)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The last checkpoint of the thread."""
        row = await self._database.read(
            lambda connection: connection.execute(_READ, {"of": config["configurable"]["thread_id"]}).first()
        )
        return None if row is None else self._tuple(row)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """The last checkpoints of all threads, or that of one."""
        query = select(_TABLE).order_by(_TABLE.c.thread_id).limit(limit)
        if config is not None:
            query = query.where(_TABLE.c.thread_id == config["configurable"]["thread_id"])
        for row in await self._database.read(lambda connection: connection.execute(query).all()):
            yield self._tuple(row)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint in place of the one before, unless no node has run yet."""
        thread_id = config["configurable"]["thread_id"]
        if metadata.get("source") == "update" or metadata.get("step", 1) > 0:
            kind, content = self.serde.dumps_typed(checkpoint)
            row = {
                "thread_id": thread_id,
                "checkpoint_id": checkpoint["id"],
                "saved_at": datetime.now(UTC),
                "type": kind,
                "checkpoint": content,
                "metadata": json.dumps(metadata, ensure_ascii=False),
            }
            await self._database.write(lambda connection: connection.execute(self._saving, row))
        return _config_of(thread_id, checkpoint["id"])

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Nothing to keep."""

    async def adelete_thread(self, thread_id: str) -> None:
        await self._database.write(lambda connection: connection.execute(_DELETE, {"of": thread_id}))

    async def forget_before(self, moment: datetime) -> int:
        """Delete the threads without a checkpoint since a moment; returns their number."""
        old = delete(_TABLE).where(_TABLE.c.saved_at < moment)
        return await self._database.write(lambda connection: connection.execute(old).rowcount)

    def _tuple(self, row: Row[Any]) -> CheckpointTuple:
        checkpoint: Checkpoint = self.serde.loads_typed((row.type, row.checkpoint))
        return CheckpointTuple(
            config=_config_of(row.thread_id, row.checkpoint_id),
            checkpoint=checkpoint,
            metadata=json.loads(row.metadata),
            pending_writes=[],
        )


@asynccontextmanager
async def open_checkpoints(database_url: str, service: str) -> AsyncIterator[SqlCheckpoints]:
    """The checkpointer of one service: a file, or a schema in the shared PostgreSQL. Raises DatabaseAway."""
    database = Database(database_url, schema=f"checkpoints_{service}")
    try:
        with answering(database.name):
            await asyncio.to_thread(database.run_on_admin_connection, _prepare)
        yield SqlCheckpoints(database)
    finally:
        await database.dispose()


def _prepare(connection: Connection) -> None:
    for former in _FORMER:
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {former}")
    _TABLE.metadata.create_all(connection)


def _config_of(thread_id: str, checkpoint_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": checkpoint_id}}
