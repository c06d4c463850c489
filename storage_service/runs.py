"""Runs in their tables: the row is the truth about a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, and_, delete, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.artifacts import ArtifactRef
from bus_schema.process import Card, Run, RunPage, RunStatus, Step, StepStatus
from storage_service.inserts import insert_unless_taken
from storage_service.run_rows import as_run, as_step, run_columns, step_columns
from storage_service.run_tables import RunRow, StepRow

_AT_ONCE = 500


class RunChangedMeanwhile(Exception):
    """Somebody else changed this run at the same time; read it again, then decide anew."""


class NotACursor(ValueError):
    """The cursor is none that a page of runs gave; start again without it."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as it was read, with what only the orchestrator needs of it."""

    run: Run
    card: Card
    request_sha256: str
    version: int


async def add_run(session: AsyncSession, run: Run, card: Card, request_sha256: str) -> bool:
    """Whether it went in; it does not where its id is taken."""
    row = {
        **run_columns(run),
        "run_id": run.run_id,
        "version": 1,
        "request_sha256": request_sha256,
        "card_name": run.card_name,
        "card": card.model_dump(mode="json"),
        "started_by": run.started_by,
        "started_at": run.started_at,
        "inputs": [artifact.model_dump(mode="json") for artifact in run.inputs],
        "params": run.params,
    }
    if not await insert_unless_taken(session, RunRow, **row):
        return False
    for position, step in enumerate(run.steps):
        session.add(StepRow(run_id=run.run_id, position=position, **step_columns(step)))
    await session.flush()
    return True


async def run_to_change(session: AsyncSession, run_id: str) -> StoredRun | None:
    """A run, locked until the transaction ends: who else wants to change it waits."""
    locked = select(RunRow).where(RunRow.run_id == run_id).with_for_update()
    row = await session.scalar(locked.execution_options(populate_existing=True))
    if row is None:
        return None
    (run,) = await _with_steps(session, [row])
    return StoredRun(run, Card.model_validate(row.card), row.request_sha256, row.version)


async def save_run(session: AsyncSession, stored: StoredRun, run: Run) -> None:
    """Put down where a run has got to since it was read. Raises RunChangedMeanwhile."""
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
    """A run as it stands."""
    row = await session.get(RunRow, run_id)
    return None if row is None else (await _with_steps(session, [row]))[0]


async def list_runs(
    session: AsyncSession, status: RunStatus | None, card: str | None, cursor: str | None, limit: int
) -> RunPage:
    """A page of runs, newest first. Raises NotACursor."""
    found = select(RunRow).order_by(RunRow.started_at.desc(), RunRow.run_id.desc()).limit(limit + 1)
    if status is not None:
        found = found.where(RunRow.status == status)
    if card is not None:
        found = found.where(RunRow.card_name == card)
    rows = (await session.scalars(_after(found, cursor))).all()
    page = await _with_steps(session, rows[:limit])
    last = page[-1] if len(rows) > limit else None
    return RunPage(items=page, next_cursor=f"{last.started_at.isoformat()} {last.run_id}" if last else None)


async def starting_runs(session: AsyncSession, limit: int) -> tuple[Run, ...]:
    """Runs whose members storage has not confirmed yet, oldest first."""
    waiting = select(RunRow).where(RunRow.status == RunStatus.STARTING).order_by(RunRow.started_at).limit(limit)
    return await _with_steps(session, (await session.scalars(waiting)).all())


async def due_runs(session: AsyncSession, now: datetime, limit: int) -> tuple[str, ...]:
    """Runs with a step whose time has come, the longest overdue first."""
    due = select(StepRow.run_id).where(StepRow.due_at <= now).order_by(StepRow.due_at).limit(limit)
    return tuple(dict.fromkeys((await session.scalars(due)).all()))


async def claim_runs(session: AsyncSession, run_ids: Sequence[str]) -> tuple[str, ...]:
    """Those of the runs that nobody else is changing just now, locked."""
    free = select(RunRow.run_id).where(RunRow.run_id.in_(run_ids)).order_by(RunRow.run_id)
    return tuple((await session.scalars(free.with_for_update(skip_locked=True))).all())


async def awaited_artifacts(session: AsyncSession, limit: int) -> tuple[tuple[str, ArtifactRef], ...]:
    """What lies in agents' buffers, with the runs that wait for it; the newest, lest lost ones hide them."""
    waiting = select(StepRow).where(StepRow.status == StepStatus.PENDING_STORAGE)
    steps = (await session.scalars(waiting.order_by(StepRow.started_at.desc()).limit(limit))).all()
    return tuple((step.run_id, ArtifactRef.model_validate(step.artifact)) for step in steps)


async def runs_to_forget(session: AsyncSession, started_by: str | None) -> tuple[Run, ...]:
    """All runs, or those that somebody has started."""
    found = select(RunRow).order_by(RunRow.run_id)
    if started_by is not None:
        found = found.where(RunRow.started_by == started_by)
    return await _with_steps(session, (await session.scalars(found)).all())


async def forget_runs(session: AsyncSession, run_ids: Sequence[str]) -> None:
    """As if they had never been."""
    for first in range(0, len(run_ids), _AT_ONCE):
        for table in (StepRow, RunRow):
            gone = delete(table).where(table.run_id.in_(run_ids[first : first + _AT_ONCE]))
            await session.execute(gone.execution_options(synchronize_session=False))


def _after(found: Select[RunRow], cursor: str | None) -> Select[RunRow]:
    if cursor is None:
        return found
    instant, _, run_id = cursor.partition(" ")
    try:
        started_at = datetime.fromisoformat(instant)
    except ValueError:
        raise NotACursor(NotACursor.__doc__) from None
    if started_at.tzinfo is None or not run_id:
        raise NotACursor(NotACursor.__doc__)
    older = RunRow.started_at < started_at
    return found.where(or_(older, and_(RunRow.started_at == started_at, RunRow.run_id < run_id)))


async def _with_steps(session: AsyncSession, rows: Sequence[RunRow]) -> tuple[Run, ...]:
    steps: dict[str, list[Step]] = {row.run_id: [] for row in rows}
    found = select(StepRow).where(StepRow.run_id.in_(list(steps))).order_by(StepRow.position)
    for step in await session.scalars(found.execution_options(populate_existing=True)):
        steps[step.run_id].append(as_step(step))
    return tuple(as_run(row, steps[row.run_id]) for row in rows)
