"""Artifacts of runs, as storage has them; also of attempts that were given up, whose steps need no other then."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from sqlalchemy import Connection

from agents.processes.saga import members_of
from agents.processes.steps import checked_ending
from bus_schema.artifacts import AIContext, Manifest
from bus_schema.codes import Code
from bus_schema.process import StepCompleted
from bus_schema.runs import Run, Step, StepStatus
from bus_schema.storage import GetArtifact
from mindbus import Client
from mindbus.errors import BusUnavailable, ReplyError
from mindbus.logs import logger
from mindbus.sdk.steps import artifact_id_of
from mindbus.sql.database import Database
from storage_service import runs

LookUp = Callable[[str, str], Awaitable[Manifest | Code]]
_ASK_WITHIN_S = 5.0


async def look_up(bus: Client, run_id: str, artifact_id: str) -> Manifest | Code:
    """The manifest of an artifact, or why there is none just now."""
    try:
        return await bus.request(GetArtifact(artifact_id=artifact_id), trace=run_id, timeout_s=_ASK_WITHIN_S)
    except (BusUnavailable, ReplyError) as error:
        logger().debug("no artifact", run_id=run_id, artifact=artifact_id, reason=str(error))
        return error.code


async def foreign_inputs(database: Database, look_up: LookUp, run: Run) -> list[str] | None:
    """Inputs that are there for the roles, who take part in other runs, but not for who has started this one.

    None where storage does not say just now.
    """
    answers = await asyncio.gather(*(look_up(run.run_id, each.artifact_id) for each in run.inputs))
    if any(isinstance(each, Code) and each is not Code.NOT_FOUND for each in answers):
        return None
    others = [
        each
        for each in answers
        if isinstance(each, Manifest)
        and each.visibility != "public"
        and each.owner != run.started_by
        and each.trace_id != run.run_id
    ]

    def is_foreign(connection: Connection, manifest: Manifest) -> bool:
        earlier = runs.read_run(connection, manifest.trace_id)
        return earlier is None or run.started_by not in members_of(earlier)

    if not others:
        return []
    return await database.read(lambda connection: [each.id for each in others if is_foreign(connection, each)])


async def completed_late(
    database: Database, look_up: LookUp, run_ids: Sequence[str], now: datetime
) -> list[tuple[str, StepCompleted, str]]:
    """Of steps about to be tried again, whose last attempt has left its artifact in storage: run, end, role."""

    def paused(connection: Connection) -> list[tuple[str, Step]]:
        found = (runs.read_run(connection, run_id) for run_id in run_ids)
        return [(run.run_id, step) for run in found if run for step in run.steps if _is_tried_again(step, now)]

    steps = await database.read(paused)
    ids = [artifact_id_of(run_id, step.step_id, step.attempt) for run_id, step in steps]
    answers = await asyncio.gather(*(look_up(run_id, id_) for (run_id, _), id_ in zip(steps, ids, strict=True)))
    ends = [(_ending(run_id, step, found), step.role) for (run_id, step), found in zip(steps, answers, strict=True)]
    return [(ending.run_id, ending, role) for ending, role in ends if ending is not None]


def _is_tried_again(step: Step, now: datetime) -> bool:
    is_due = step.due_at is not None and step.due_at <= now
    return is_due and step.status is StepStatus.PENDING and step.attempt > step.attempts_before


def _ending(run_id: str, step: Step, found: Manifest | Code) -> StepCompleted | None:
    if not isinstance(found, Manifest):
        return None
    about = {"run_id": run_id, "step_id": step.step_id, "attempt": step.attempt}
    ending = StepCompleted(**about, artifact=found.ref, context=found.context or AIContext())
    checked = checked_ending(ending, found)
    return checked if isinstance(checked, StepCompleted) else None
