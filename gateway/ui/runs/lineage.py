"""Lineage of artifacts: what is made of what, as a graph."""

from collections.abc import Sequence
from urllib.parse import quote

from bus_schema.artifacts import Manifest
from bus_schema.cards import BRIEF, Card
from bus_schema.identities import owner_of
from bus_schema.runs import Run, Step, StepStatus
from gateway.ui.graph import Graph, Look, Node

_LOOKS: dict[StepStatus, Look] = {StepStatus.PENDING_STORAGE: "buffered", StepStatus.RUNNING: "writing"}
_NOBODY = "orchestrator"
_ENDED = (StepStatus.COMPLETED, StepStatus.FAILED, StepStatus.CANCELLED, StepStatus.SKIPPED)


def graph_of_run(run: Run, manifests: Sequence[Manifest], card: Card) -> Graph:
    """Registered artifacts with their inputs, and planned ones from the process card."""
    input_ids = {ref.artifact_id for ref in run.inputs}
    nodes = {manifest.id: node_of(manifest, is_source=manifest.id in input_ids) for manifest in manifests}
    edges = {(source, manifest.id) for manifest in manifests for source in _inputs_of(manifest)}
    artifact_ids = {step.step_id: _id_of(run, step) for step in run.steps}
    needed = {step.id: step.inputs for step in card.steps}
    for step in run.steps:
        name = artifact_ids[step.step_id]
        # A step without a role makes nothing.
        if name in nodes or step.status in _ENDED or step.role == _NOBODY:
            continue
        nodes[name] = Node(name, step.step_id, step.role, _LOOKS.get(step.status, "planned"))
        for source in needed.get(step.of or step.step_id, ()):
            sources = [ref.artifact_id for ref in run.inputs] if source == BRIEF else [artifact_ids.get(source, "")]
            edges |= {(one, name) for one in sources}
    valid_edges = frozenset((source, target) for source, target in edges if source in nodes and target in nodes)
    return Graph(tuple(nodes.values()), valid_edges)


def node_of(manifest: Manifest, *, is_source: bool) -> Node:
    by = owner_of(manifest.owner).partition(".")[2]
    title = f"{manifest.artifact_type} v{manifest.version}" if manifest.version > 1 else manifest.artifact_type
    look: Look = "source" if is_source else "registered"
    return Node(manifest.id, title, by, look, artifact_url(manifest.id, manifest.trace_id))


def artifact_url(artifact_id: str, trace_id: str) -> str:
    """URL of an artifact, within its run if it has one."""
    if trace_id.startswith("run_"):
        return f"/runs/{quote(trace_id)}?artifact={quote(artifact_id)}"
    return f"/artifacts/{quote(artifact_id)}?trace={quote(trace_id)}"


def _inputs_of(manifest: Manifest) -> tuple[str, ...]:
    used = manifest.context.input_artifacts if manifest.context else ()
    return (*used, manifest.supersedes) if manifest.supersedes else used


def _id_of(run: Run, step: Step) -> str:
    return step.artifact.artifact_id if step.artifact else f"{run.run_id}/{step.step_id}"
