"""Outputs of a run's steps that a person puts in place of those of a role."""

from bus_schema.artifacts import AIContext
from bus_schema.process import GetProcess
from bus_schema.replies import Code
from bus_schema.run_control import ReplaceOutput
from bus_schema.runs import Run, Step
from mindbus.bus.client import Client
from mindbus.errors import Rejected
from mindbus.sdk.artifacts import Artifacts
from mindbus.sdk.errors import StorageAway
from mindbus.sdk.step_values import values_of
from mindbus.sdk.transfers import PutOptions

# Of a step that has no output whose type it could have.
_TYPE = "edited"


async def replace_output(bus: Client, artifacts: Artifacts, run_id: str, step_id: str, text: str) -> Run:
    """Register a text as the next version of a step's output, and have the run go on from it.

    Raises Rejected where the run has no such step, StorageAway, ArtifactRejected, ReplyError.
    """
    run = await bus.request(GetProcess(run_id=run_id), trace=run_id)
    step = next((step for step in run.steps if step.step_id == step_id), None)
    if step is None:
        ids = ", ".join(step.step_id for step in run.steps)
        raise Rejected(Code.INVALID, f"{run_id} has no step {step_id!r}; it has {ids}")
    put = await artifacts.put(text.encode(), **await _about(artifacts, run_id, step, text))
    if put.is_pending:
        raise StorageAway
    return await bus.request(ReplaceOutput(run_id=run_id, step_id=step_id, artifact=put.ref), trace=run_id)


async def _about(artifacts: Artifacts, run_id: str, step: Step, text: str) -> PutOptions:
    # What a person has written is good as it is, whatever the card asks about it.
    values = {"satisfied": True, **values_of(text, ("answer", "items"))}
    about: PutOptions = {
        "artifact_type": _TYPE,
        "trace": run_id,
        "step": step.step_id,
        "content_type": "text/markdown",
        "context": AIContext(values=values),
    }
    if step.artifact is not None:
        newest = await artifacts.newest(step.artifact, trace=run_id)
        manifest = await artifacts.manifest(newest.artifact_id, trace=run_id)
        about |= {"artifact_type": manifest.artifact_type, "supersedes": newest}
    return about
