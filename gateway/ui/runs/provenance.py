"""The graph of a run: what it was given, what its steps made, what they are still to make."""

from collections.abc import Sequence
from urllib.parse import quote

from agents.configuration.prompts import role_names
from agents.processes.cards import UnknownCard, shipped_card
from bus_schema.artifacts import Manifest
from bus_schema.identities import owner_of
from bus_schema.process import BRIEF, Run, Step, StepStatus
from gateway.ui.runs.lineage import Graph, Look, Node

_LOOKS: dict[StepStatus, Look] = {StepStatus.PENDING_STORAGE: "buffered", StepStatus.RUNNING: "writing"}
_ENDED = (StepStatus.COMPLETED, StepStatus.FAILED, StepStatus.CANCELLED)


def graph_of_run(run: Run, manifests: Sequence[Manifest]) -> Graph:
    """Registered artifacts as storage knows them, the others as the card has them."""
    given = {ref.artifact_id for ref in run.inputs}
    nodes = {manifest.id: node_of(manifest, is_source=manifest.id in given) for manifest in manifests}
    edges = {(source, each.id) for each in manifests for source in _inputs(each)}
    made = {step.step_id: _id_of(run, step) for step in run.steps}
    needed = _needs(run)
    for step in run.steps:
        name = made[step.step_id]
        if name in nodes or step.status in _ENDED:
            continue
        nodes[name] = Node(name, step.step_id, step.role, _LOOKS.get(step.status, "planned"))
        for source in needed.get(step.step_id, ()):
            sources = [ref.artifact_id for ref in run.inputs] if source == BRIEF else [made.get(source, "")]
            edges |= {(one, name) for one in sources}
    known = frozenset((source, target) for source, target in edges if source in nodes and target in nodes)
    return Graph(tuple(nodes.values()), known)


def node_of(manifest: Manifest, *, is_source: bool) -> Node:
    """A registered artifact."""
    by = owner_of(manifest.owner).partition(".")[2]
    title = f"{manifest.artifact_type} v{manifest.version}" if manifest.version > 1 else manifest.artifact_type
    look: Look = "source" if is_source else "registered"
    return Node(manifest.id, title, by, look, place_of(manifest.id, manifest.trace_id))


def place_of(artifact_id: str, trace_id: str) -> str:
    """Where it is shown: within its run, if it is of one."""
    if trace_id.startswith("run_"):
        return f"/runs/{quote(trace_id)}?artifact={quote(artifact_id)}"
    return f"/artifacts/{quote(artifact_id)}?trace={quote(trace_id)}"


def _inputs(manifest: Manifest) -> tuple[str, ...]:
    used = manifest.context.input_artifacts if manifest.context else ()
    return (*used, manifest.supersedes) if manifest.supersedes else used


def _id_of(run: Run, step: Step) -> str:
    return step.artifact.artifact_id if step.artifact else f"{run.run_id}/{step.step_id}"


def _needs(run: Run) -> dict[str, tuple[str, ...]]:
    try:
        return {step.id: step.inputs for step in shipped_card(run.card_name, role_names()).steps}
    except UnknownCard:
        return {}
