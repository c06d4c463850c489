"""Runs in and out of their tables' rows."""

from collections.abc import Sequence
from typing import Any

from bus_schema.artifacts import ArtifactRef
from bus_schema.process import Run, RunStatus, Step
from storage_service.run_tables import RunRow, StepRow


def as_run(row: RunRow, steps: Sequence[Step]) -> Run:
    """The run as it is told."""
    return Run(
        run_id=row.run_id,
        card_name=row.card_name,
        status=RunStatus(row.status),
        started_by=row.started_by,
        started_at=row.started_at,
        finished_at=row.finished_at,
        inputs=tuple(ArtifactRef.model_validate(artifact) for artifact in row.inputs),
        params=row.params,
        retention=row.card.get("retention"),
        steps=tuple(steps),
        result=None if row.result is None else ArtifactRef.model_validate(row.result),
        reason=row.reason,
    )


def as_step(row: StepRow) -> Step:
    """The step as it is told."""
    return Step.model_validate({name: getattr(row, name) for name in Step.model_fields})


def run_columns(run: Run) -> dict[str, Any]:
    """The columns of a run that change."""
    return {
        "status": run.status.value,
        "finished_at": run.finished_at,
        "result": run.result.model_dump(mode="json") if run.result else None,
        "reason": run.reason,
    }


def step_columns(step: Step) -> dict[str, Any]:
    """All columns of a step but its run and its place in it."""
    columns = step.model_dump(mode="python")
    columns["status"] = step.status.value
    columns["artifact"] = step.artifact.model_dump(mode="json") if step.artifact else None
    columns["context"] = step.context.model_dump(mode="json") if step.context else None
    return columns
