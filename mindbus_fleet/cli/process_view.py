"""A process run as a table of its steps."""

from collections.abc import Mapping

from rich.table import Table
from rich.text import Text

from bus_schema.process import Run, RunStatus, Step, StepStatus
from mindbus.cli.console import table

_COLOURS = {
    StepStatus.RUNNING: "cyan",
    StepStatus.COMPLETED: "green",
    StepStatus.PENDING_STORAGE: "yellow",
    StepStatus.FAILED: "red",
    StepStatus.CANCELLED: "red",
}
OVER = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})


def step_table(run: Run, notes: Mapping[str, str] | None = None) -> Table:
    """Who did what, with which model, in how many seconds, and what came of it."""
    title = f"{run.run_id}  {run.card_name}  {run.status.value}"
    columns = ("step", "role", "status", "model", "seconds", "artifact", "sha256")
    if notes is None:
        return table(columns, (_row(step) for step in run.steps), title)
    rows = ((*_row(step)[:5], notes.get(step.step_id, "")) for step in run.steps)
    return table((*columns[:5], "note"), rows, title)


def _row(step: Step) -> tuple[object, ...]:
    status = Text(step.status.value, style=_COLOURS.get(step.status, "dim"))
    if step.attempt > 1:
        status.append(f" (attempt {step.attempt})")
    model = step.context.model_name if step.context else None
    artifact = step.artifact
    return (
        step.step_id,
        step.role,
        status,
        model or "",
        _seconds(step),
        artifact.artifact_id if artifact else step.reason,
        artifact.sha256 if artifact else "",
    )


def _seconds(step: Step) -> str:
    if step.context is not None and step.context.execution_time_ms is not None:
        return f"{step.context.execution_time_ms / 1000:.1f}"
    if step.started_at is not None and step.finished_at is not None:
        return f"{(step.finished_at - step.started_at).total_seconds():.1f}"
    return ""
