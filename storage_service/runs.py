"""Runs of the orchestrator: tables, conversion, queries. The row is the truth about a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, Select, String, Text, and_, delete, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from bus_schema.artifacts import ArtifactRef
from bus_schema.process import Card, Run, RunPage, RunStatus, Step, StepStatus
from mindbus.sql.tables import Utc, add_inbox_tables, named_metadata
from retrieval.cursors import PageKey, split_page
from storage_service.rows import insert_if_absent

MIGRATIONS = Path(__file__).parent / "migrations" / "orchestrator"


class RunBase(DeclarativeBase):
    """Base of the orchestrator's tables, in a database or schema of their own."""

    metadata = named_metadata()


class RunRow(RunBase):
    """A run; `version` counts its changes, so that of two concurrent changes one fails."""

    __tablename__ = "runs"
    __table_args__ = (Index(None, "started_at", "run_id"),)
    run_id: Mapped[str] = mapped_column(String(68), primary_key=True)
    version: Mapped[int]
    request_sha256: Mapped[str] = mapped_column(String(64))
    card_name: Mapped[str] = mapped_column(String(63))
    card: Mapped[dict[str, Any]] = mapped_column(JSON)
    status: Mapped[str] = mapped_column(String(16), index=True)
    started_by: Mapped[str] = mapped_column(String(160))
    started_at: Mapped[datetime] = mapped_column(Utc)
    finished_at: Mapped[datetime | None] = mapped_column(Utc)
    inputs: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    params: Mapped[dict[str, str]] = mapped_column(JSON)
    result: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    reason: Mapped[str] = mapped_column(Text)


class StepRow(RunBase):
    """A step of a run; `due_at` is its timer: end of an attempt, of a pause, or of the wait for its artifact."""

    __tablename__ = "steps"
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.run_id"), primary_key=True)
    step_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    position: Mapped[int]
    role: Mapped[str] = mapped_column(String(63))
    status: Mapped[str] = mapped_column(String(16), index=True)
    attempt: Mapped[int]
    critical: Mapped[bool]
    artifact: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    context: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    started_at: Mapped[datetime | None] = mapped_column(Utc)
    finished_at: Mapped[datetime | None] = mapped_column(Utc)
    due_at: Mapped[datetime | None] = mapped_column(Utc, index=True)
    reason: Mapped[str] = mapped_column(Text)


inbox_tables = add_inbox_tables(RunBase.metadata)


def as_run(row: RunRow, steps: Sequence[Step]) -> Run:
    columns = {name: getattr(row, name) for name in Run.model_fields if name not in ("steps", "retention")}
    return Run.model_validate(columns | {"steps": steps, "retention": row.card.get("retention")})


def run_columns(run: Run) -> dict[str, Any]:
    return run.model_dump(include={"finished_at", "reason"}) | run.model_dump(mode="json", include={"status", "result"})


def step_columns(step: Step) -> dict[str, Any]:
    return step.model_dump() | step.model_dump(mode="json", include={"status", "artifact", "context"})


_AT_ONCE = 500


class RunChangedMeanwhile(Exception):
    """The run was changed concurrently; read it again, then decide again."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as it was read, with its card, digest and version."""

    run: Run
    card: Card
    request_sha256: str
    version: int


async def add_run(session: AsyncSession, run: Run, card: Card, request_sha256: str) -> bool:
    """Insert a run; False where its id is taken."""
    row = {
        **run.model_dump(include={"run_id", "card_name", "started_by", "started_at", "params"}),
        **run.model_dump(mode="json", include={"inputs"}),
        **run_columns(run),
        "version": 1,
        "request_sha256": request_sha256,
        "card": card.model_dump(mode="json"),
    }
    if not await insert_if_absent(session, RunRow, **row):
        return False
    for position, step in enumerate(run.steps):
        session.add(StepRow(run_id=run.run_id, position=position, **step_columns(step)))
    await session.flush()
    return True


async def run_to_change(session: AsyncSession, run_id: str) -> StoredRun | None:
    """A run, locked until the transaction ends."""
    locked = select(RunRow).where(RunRow.run_id == run_id).with_for_update()
    row = await session.scalar(locked.execution_options(populate_existing=True))
    if row is None:
        return None
    (run,) = await _with_steps(session, [row])
    return StoredRun(run, Card.model_validate(row.card), row.request_sha256, row.version)


async def save_run(session: AsyncSession, stored: StoredRun, run: Run) -> None:
    """Store the changes of a run since it was read. Raises RunChangedMeanwhile."""
    changed = await session.execute(
        update(RunRow)
        .where(RunRow.run_id == run.run_id, RunRow.version == stored.version)
        .values(**run_columns(run), version=stored.version + 1)
        .execution_options(synchronize_session=False)
    )
    if not changed.rowcount:  # type: ignore[attr-defined]  # an update's result is a CursorResult
        raise RunChangedMeanwhile(run.run_id)
    for before, step in zip(stored.run.steps, run.steps, strict=True):
        if step != before:
            await session.execute(
                update(StepRow)
                .where(StepRow.run_id == run.run_id, StepRow.step_id == step.step_id)
                .values(**step_columns(step))
                .execution_options(synchronize_session=False)
            )


async def read_run(session: AsyncSession, run_id: str) -> Run | None:
    row = await session.get(RunRow, run_id)
    return None if row is None else (await _with_steps(session, [row]))[0]


async def list_runs(
    session: AsyncSession, status: RunStatus | None, card: str | None, cursor: str | None, limit: int
) -> RunPage:
    """A page of runs, newest first. Raises InvalidCursor."""
    query = select(RunRow).order_by(RunRow.started_at.desc(), RunRow.run_id.desc()).limit(limit + 1)
    if status is not None:
        query = query.where(RunRow.status == status)
    if card is not None:
        query = query.where(RunRow.card_name == card)
    rows = (await session.scalars(_after(query, cursor))).all()
    page, last = split_page(rows, limit)
    return RunPage(
        items=await _with_steps(session, page),
        next_cursor=PageKey(last.started_at, last.run_id).plain if last else None,
    )


async def starting_runs(session: AsyncSession, limit: int) -> tuple[Run, ...]:
    """Runs whose trace members storage has not confirmed, oldest first."""
    waiting = select(RunRow).where(RunRow.status == RunStatus.STARTING).order_by(RunRow.started_at).limit(limit)
    return await _with_steps(session, (await session.scalars(waiting)).all())


async def due_runs(session: AsyncSession, now: datetime, limit: int) -> tuple[str, ...]:
    """Runs with a step whose timer has expired, the longest overdue first."""
    due = select(StepRow.run_id).where(StepRow.due_at <= now).order_by(StepRow.due_at).limit(limit)
    return tuple(dict.fromkeys((await session.scalars(due)).all()))


async def claim_runs(session: AsyncSession, run_ids: Sequence[str]) -> tuple[str, ...]:
    """The runs that no other transaction is changing, locked."""
    free = select(RunRow.run_id).where(RunRow.run_id.in_(run_ids)).order_by(RunRow.run_id)
    return tuple((await session.scalars(free.with_for_update(skip_locked=True))).all())


async def awaited_artifacts(session: AsyncSession, limit: int) -> tuple[tuple[str, ArtifactRef], ...]:
    """Artifacts that wait in agents' buffers, with their runs; the newest, so that lost ones do not hide them."""
    waiting = select(StepRow).where(StepRow.status == StepStatus.PENDING_STORAGE)
    steps = (await session.scalars(waiting.order_by(StepRow.started_at.desc()).limit(limit))).all()
    return tuple((step.run_id, ArtifactRef.model_validate(step.artifact)) for step in steps)


async def runs_to_forget(session: AsyncSession, started_by: str | None) -> tuple[Run, ...]:
    """All runs, or those that a user has started."""
    query = select(RunRow).order_by(RunRow.run_id)
    if started_by is not None:
        query = query.where(RunRow.started_by == started_by)
    return await _with_steps(session, (await session.scalars(query)).all())


async def forget_runs(session: AsyncSession, run_ids: Sequence[str]) -> None:
    for first in range(0, len(run_ids), _AT_ONCE):
        for table in (StepRow, RunRow):
            deletion = delete(table).where(table.run_id.in_(run_ids[first : first + _AT_ONCE]))
            await session.execute(deletion.execution_options(synchronize_session=False))


def _after(query: Select[RunRow], cursor: str | None) -> Select[RunRow]:
    if cursor is None:
        return query
    key = PageKey.parse_plain(cursor)
    return query.where(or_(RunRow.started_at < key.time, and_(RunRow.started_at == key.time, RunRow.run_id < key.id)))


async def _with_steps(session: AsyncSession, rows: Sequence[RunRow]) -> tuple[Run, ...]:
    steps: dict[str, list[Step]] = {row.run_id: [] for row in rows}
    query = select(StepRow).where(StepRow.run_id.in_(list(steps))).order_by(StepRow.position)
    for step in await session.scalars(query.execution_options(populate_existing=True)):
        steps[step.run_id].append(Step.model_validate(step, from_attributes=True))
    return tuple(as_run(row, steps[row.run_id]) for row in rows)
