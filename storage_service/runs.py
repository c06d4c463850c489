"""Runs of the orchestrator: tables, conversion, queries. The row is the truth about a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    Connection,
    ForeignKey,
    Index,
    Row,
    String,
    Text,
    and_,
    bindparam,
    delete,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from bus_schema.artifacts import ArtifactRef
from bus_schema.cards import Card
from bus_schema.process import ListProcesses, RunPage
from bus_schema.runs import Run, RunStatus, Step, StepStatus
from mindbus.sql.statements import PreparedStatement
from mindbus.sql.tables import Utc, add_inbox_tables, named_metadata
from retrieval.cursors import PageKey, split_page
from storage_service.rows import inserting

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
    budget_from: Mapped[int | None]
    is_budget_free: Mapped[bool | None]


class StepRow(RunBase):
    """A step of a run; `due_at` is its timer: end of an attempt, of a pause, or of the wait for its artifact.

    `details` are the fields without a column, as far as they are not as by default: those of plain steps are empty.
    """

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
    misbehaviours: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON(none_as_null=True))
    details: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


inbox_tables = add_inbox_tables(RunBase.metadata)


_RUNS, _STEPS = RunRow.__table__, StepRow.__table__
_DETAILS = set(Step.model_fields) - {column.name for column in _STEPS.columns}
_STEP_COLUMNS = tuple(column.name for column in _STEPS.columns if column.name in Step.model_fields)
_RUN_COLUMNS = tuple(name for name in Run.model_fields if name not in ("steps", "retention"))


def as_run(row: Row[Any], steps: Sequence[Step]) -> Run:
    columns = {name: getattr(row, name) for name in _RUN_COLUMNS}
    columns |= {"budget_from": row.budget_from or 0, "is_budget_free": bool(row.is_budget_free)}
    return Run.model_validate(columns | {"steps": steps, "retention": row.card.get("retention")})


def run_columns(run: Run) -> dict[str, Any]:
    return run.model_dump(include={"finished_at", "reason", "budget_from", "is_budget_free"}) | run.model_dump(
        mode="json", include={"status", "result"}
    )


def step_columns(step: Step) -> dict[str, Any]:
    columns = step.model_dump(exclude=_DETAILS)
    columns |= step.model_dump(mode="json", include={"status", "artifact", "context", "misbehaviours"})
    return columns | {"details": step.model_dump(mode="json", include=_DETAILS, exclude_defaults=True) or None}


def as_step(row: Row[Any]) -> Step:
    # Rows from before a column have nothing in it.
    more = {"misbehaviours": row.misbehaviours or (), **(row.details or {})}
    return Step.model_validate({name: getattr(row, name) for name in _STEP_COLUMNS} | more)


_AT_ONCE = 500
_OF_RUN = RunRow.run_id == bindparam("of_run")
_RUN = PreparedStatement(select(_RUNS).where(_OF_RUN))
_LOCKED_RUN = PreparedStatement(select(_RUNS).where(_OF_RUN).with_for_update())
_STEP_OF_RUN = StepRow.run_id == bindparam("of_run")
_STEPS_OF_RUN = PreparedStatement(select(_STEPS).where(_STEP_OF_RUN).order_by(StepRow.position))
_STEPS_OF_RUNS = (
    select(_STEPS).where(StepRow.run_id.in_(bindparam("of_runs", expanding=True))).order_by(StepRow.position)
)
_CHANGE = PreparedStatement(update(RunRow).where(_OF_RUN, RunRow.version == bindparam("of_version")))
_STEP_CHANGE = PreparedStatement(update(StepRow).where(_STEP_OF_RUN, StepRow.step_id == bindparam("of_step")))
# What came too late for its step is of use to a retry.
_MAY_COME = or_(StepRow.status == StepStatus.PENDING_STORAGE, StepRow.status == StepStatus.FAILED)
_AWAITED = PreparedStatement(select(_STEPS.c.artifact).where(_STEP_OF_RUN, _MAY_COME))


class RunChangedMeanwhile(Exception):
    """The run was changed concurrently; read it again, then decide again."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as it was read, with its card, digest and version."""

    run: Run
    card: Card
    request_sha256: str
    version: int


def add_run(connection: Connection, run: Run, card: Card, request_sha256: str) -> bool:
    """Insert a run; False where its id is taken."""
    row = {
        **run.model_dump(include={"run_id", "card_name", "started_by", "started_at", "params"}),
        **run.model_dump(mode="json", include={"inputs"}),
        **run_columns(run),
        "version": 1,
        "request_sha256": request_sha256,
        "card": card.model_dump(mode="json"),
    }
    if inserting(RunRow).first(connection, row) is None:
        return False
    steps = [
        {"run_id": run.run_id, "position": position, **step_columns(step)} for position, step in enumerate(run.steps)
    ]
    connection.execute(insert(StepRow), steps)
    return True


def run_to_change(connection: Connection, run_id: str) -> StoredRun | None:
    """A run, locked until the transaction ends."""
    row = _LOCKED_RUN.first(connection, {"of_run": run_id})
    if row is None:
        return None
    return StoredRun(_with_own_steps(connection, row), Card.model_validate(row.card), row.request_sha256, row.version)


def save_run(connection: Connection, stored: StoredRun, run: Run) -> None:
    """Store the changes of a run since it was read, and its new steps. Raises RunChangedMeanwhile."""
    of = {"of_run": run.run_id, "of_version": stored.version}
    if not _CHANGE.count(connection, {**run_columns(run), "version": stored.version + 1, **of}):
        raise RunChangedMeanwhile(run.run_id)
    known = {step.step_id: step for step in stored.run.steps}
    steps = [
        step_columns(step) | {"of_run": run.run_id, "of_step": step.step_id}
        for step in run.steps
        if step.step_id in known and step != known[step.step_id]
    ]
    _STEP_CHANGE.run(connection, steps)
    new = [
        {"run_id": run.run_id, "position": position, **step_columns(step)}
        for position, step in enumerate(run.steps)
        if step.step_id not in known
    ]
    if new:
        connection.execute(insert(StepRow), new)


def read_card(connection: Connection, run_id: str) -> Card | None:
    """The card of a run, as it was started with."""
    row = _RUN.first(connection, {"of_run": run_id})
    return None if row is None else Card.model_validate(row.card)


def read_run(connection: Connection, run_id: str) -> Run | None:
    row = _RUN.first(connection, {"of_run": run_id})
    return None if row is None else _with_own_steps(connection, row)


def is_awaited(connection: Connection, run_id: str, artifact: ArtifactRef) -> bool:
    """Whether a step of the run waits for storage to register this artifact."""
    awaited = _AWAITED.all(connection, {"of_run": run_id})
    return any(row.artifact is not None and row.artifact["artifact_id"] == artifact.artifact_id for row in awaited)


def list_runs(connection: Connection, listed: ListProcesses, started_by: str | None = None) -> RunPage:
    """A page of runs, newest first; only those that somebody has started, where named. Raises InvalidCursor."""
    status, card, cursor, limit = listed.status, listed.card, listed.cursor, listed.limit
    query = select(_RUNS).order_by(RunRow.started_at.desc(), RunRow.run_id.desc()).limit(limit + 1)
    if started_by is not None:
        query = query.where(RunRow.started_by == started_by)
    if status is not None:
        query = query.where(RunRow.status == status)
    if card is not None:
        query = query.where(RunRow.card_name == card)
    if cursor is not None:
        key = PageKey.parse_plain(cursor)
        earlier = and_(RunRow.started_at == key.time, RunRow.run_id < key.id)
        query = query.where(or_(RunRow.started_at < key.time, earlier))
    rows = connection.execute(query).all()
    page, last = split_page(rows, limit)
    return RunPage(
        items=_with_steps(connection, page),
        next_cursor=PageKey(last.started_at, last.run_id).plain if last else None,
    )


def starting_runs(connection: Connection, limit: int) -> tuple[Run, ...]:
    """Runs whose trace members storage has not confirmed, oldest first."""
    waiting = select(_RUNS).where(RunRow.status == RunStatus.STARTING).order_by(RunRow.started_at).limit(limit)
    return _with_steps(connection, connection.execute(waiting).all())


def due_runs(connection: Connection, now: datetime, limit: int) -> tuple[str, ...]:
    """Runs that go on with a step whose timer has expired, the longest overdue first."""
    going_on = RunRow.status == RunStatus.RUNNING
    due = select(_STEPS.c.run_id).join(_RUNS).where(StepRow.due_at <= now, going_on).order_by(StepRow.due_at)
    return tuple(dict.fromkeys(connection.execute(due.limit(limit)).scalars()))


def timed_runs(connection: Connection) -> tuple[str, ...]:
    """Runs that are not over and have a step with a timer."""
    is_open = RunRow.status.in_((RunStatus.RUNNING, RunStatus.PAUSED))
    timed = select(_STEPS.c.run_id).join(_RUNS).where(StepRow.due_at.is_not(None), is_open)
    return tuple(dict.fromkeys(connection.execute(timed).scalars()))


def claim_runs(connection: Connection, run_ids: Sequence[str]) -> tuple[str, ...]:
    """The runs that no other transaction is changing, locked."""
    free = select(_RUNS.c.run_id).where(RunRow.run_id.in_(run_ids)).order_by(RunRow.run_id)
    return tuple(connection.execute(free.with_for_update(skip_locked=True)).scalars())


def awaited_artifacts(connection: Connection, limit: int) -> tuple[tuple[str, ArtifactRef], ...]:
    """Artifacts that wait in agents' buffers, with their runs; the newest, so that lost ones do not hide them."""
    waiting = select(_STEPS.c.run_id, _STEPS.c.artifact).where(StepRow.status == StepStatus.PENDING_STORAGE)
    steps = connection.execute(waiting.order_by(StepRow.started_at.desc()).limit(limit)).all()
    return tuple((step.run_id, ArtifactRef.model_validate(step.artifact)) for step in steps)


def runs_to_forget(connection: Connection, started_by: str | None) -> tuple[Run, ...]:
    """All runs, or those that a user has started."""
    query = select(_RUNS).order_by(RunRow.run_id)
    if started_by is not None:
        query = query.where(RunRow.started_by == started_by)
    return _with_steps(connection, connection.execute(query).all())


def forget_runs(connection: Connection, run_ids: Sequence[str]) -> None:
    for first in range(0, len(run_ids), _AT_ONCE):
        for table in (StepRow, RunRow):
            connection.execute(delete(table).where(table.run_id.in_(run_ids[first : first + _AT_ONCE])))


def _with_own_steps(connection: Connection, row: Any) -> Run:
    return as_run(row, [as_step(step) for step in _STEPS_OF_RUN.all(connection, {"of_run": row.run_id})])


def _with_steps(connection: Connection, rows: Sequence[Row[Any]]) -> tuple[Run, ...]:
    steps: dict[str, list[Step]] = {row.run_id: [] for row in rows}
    for first in range(0, len(rows), _AT_ONCE):
        of = [row.run_id for row in rows[first : first + _AT_ONCE]]
        for step in connection.execute(_STEPS_OF_RUNS, {"of_runs": of}):
            steps[step.run_id].append(as_step(step))
    return tuple(as_run(row, steps[row.run_id]) for row in rows)
