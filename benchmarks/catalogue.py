"""A hundred thousand manifests, made up as years of work would leave them."""

import hashlib
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import insert, text

from mindbus.sql.database import Database
from storage_service.tables import ManifestRow, SequenceRow, TraceMemberRow

_SEED = 20261121
_BATCH = 5000
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
AGENTS = ("researcher", "ideator", "critic", "editor", "pushkin", "context", "tracker", "packer")
TYPES = ("research_report", "idea", "critique", "draft", "article", "summary", "dataset")
STEPS = ("research", "ideas", "critique", "write", "edit")
OF_A_TRACE = 20
# A user starts every so manieth run; everybody of the team takes part in it.
USERS = 50
# One who reads next to nothing.
STRANGER = "agent.stranger"

_SPANS = (
    "INSERT INTO creation_spans (stretch, earliest, latest)"
    " SELECT position / 256, min(created_at), max(created_at) FROM artifact_manifests GROUP BY position / 256"
)


def manifests(count: int) -> Iterator[dict[str, Any]]:
    """In order of commit, about a minute apart; one in fifty was made days before it could be registered."""
    chance = random.Random(_SEED)
    for number in range(count):
        committed = BEGIN + timedelta(minutes=number)
        late = timedelta(days=chance.uniform(1, 5)) if chance.random() < 0.02 else timedelta(seconds=5)
        owner = f"agent.{AGENTS[number % len(AGENTS)]}"
        artifact_id = f"art_{number:032x}"
        yield {
            "id": artifact_id,
            "position": number + 1,
            "logical_id": artifact_id,
            "version": 1,
            "trace_id": trace_of(number),
            "step_id": STEPS[number % len(STEPS)],
            "created_by": f"{owner}.1",
            "created_at": committed - late,
            "artifact_type": TYPES[number % len(TYPES)],
            "content_type": "text/markdown",
            "sha256": hashlib.sha256(artifact_id.encode()).hexdigest(),
            "generation": 1,
            "size_bytes": chance.randrange(1_000_000),
            "retention": "infinite",
            "owner": owner,
            "visibility": chance.choices(("public", "trace", "private"), (1, 6, 3))[0],
            "context": {"model_name": "offline-1", "prompt_version": "1.0.0", "input_artifacts": []},
            "committed_at": committed,
        }


def hidden_manifests(count: int) -> Iterator[dict[str, Any]]:
    """All alike and all of one hermit's own, but for three that anybody may read."""
    shown = {count // 3, count // 2, count - count // 100}
    for number, row in enumerate(manifests(count)):
        alike = {"trace_id": "run_hidden", "step_id": "research", "artifact_type": "draft", "owner": "agent.hermit"}
        yield row | alike | {"visibility": "public" if number in shown else "private"}


def trace_of(number: int) -> str:
    return f"run_{number // OF_A_TRACE:06}"


def members(count: int) -> Iterator[dict[str, Any]]:
    """Everybody of the team, whoever started it."""
    for number in range(0, count, OF_A_TRACE):
        user = f"user.{number // OF_A_TRACE % USERS}"
        for member in (*(f"agent.{agent}" for agent in AGENTS), user, "svc.orchestrator"):
            yield {"trace_id": trace_of(number), "member": member}


async def fill(database: Database, rows: Iterator[dict[str, Any]], lists: Iterator[dict[str, Any]]) -> None:
    """Put them in, have the database look at what it has got."""
    async with database.transaction() as session:
        position = 0
        for table, content in ((ManifestRow, rows), (TraceMemberRow, lists)):
            for batch in _batches(content):
                await session.execute(insert(table), batch)
                position = batch[-1].get("position", position)
        await session.execute(text(_SPANS))
        await session.execute(insert(SequenceRow).values(name=ManifestRow.__tablename__, value=position))
    async with database.engine.connect() as connection:
        plain = await connection.execution_options(isolation_level="AUTOCOMMIT")
        if not database.is_sqlite:
            await plain.execute(text("VACUUM ANALYZE"))


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
