"""Processes with scripted roles, a scripted storage: whatever they are told, they do."""

import hashlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bus_schema.artifacts import AIContext, ArtifactRef, Manifest
from bus_schema.cards import Card, CardStep
from bus_schema.ids import mint
from bus_schema.messages import Event
from bus_schema.process import ExecuteStep, StartProcess, StepCompleted, StepFailed, StepPendingStorage
from bus_schema.replies import Code
from bus_schema.storage import ArtifactRegistered, GetArtifact, SetTraceMembers
from bus_schema.uploads import FoundManifest
from mindbus import MessageContext, Rejected, Worker, WorkerContext, on_command
from mindbus.sql.database import Database
from workers.orchestrator import OrchestratorWorker
from workers.run_control import OrchestratorRules

ROLES = ("researcher", "ideator", "critic", "editor", "pushkin")
BRIEF = ArtifactRef(artifact_id="art_brief", version=1, sha256="b" * 64, size_bytes=9, content_type="text/markdown")

# Artifacts that roles have registered before they told of them, by id, with the run.
_MADE: dict[str, tuple[ArtifactRef, str]] = {}

Script = Callable[[ExecuteStep], Awaitable[Event | None]]


class ScriptedStorage(Worker):
    """Knows the artifacts that a test puts into it, remembers who takes part in what."""

    name = "storage"

    def __init__(self, _kit: WorkerContext) -> None:
        self.members: dict[str, tuple[str, ...]] = {}
        self.retention: dict[str, str | None] = {}
        self.asked_by: set[str] = set()
        self.artifacts: dict[str, Manifest] = {}
        self.refuses = False
        self.is_away = False

    @on_command
    async def set_trace_members(self, command: SetTraceMembers, message_context: MessageContext) -> None:
        if self.refuses:
            raise Rejected(Code.UNAUTHORIZED, "not for you")
        self.asked_by.add(message_context.requester)
        self.members[command.trace_id] = command.members
        self.retention[command.trace_id] = command.retention

    @on_command
    async def get(self, query: GetArtifact) -> FoundManifest:
        if self.is_away:
            raise Rejected(Code.UNAVAILABLE, "the disk is away")
        found = self.artifacts.get(query.artifact_id)
        if found is None and query.artifact_id in _MADE:
            found = manifest_of(*_MADE[query.artifact_id])
        if found is None:
            raise Rejected(Code.NOT_FOUND, "no such artifact")
        return FoundManifest.model_validate(found.model_dump())


class ScriptedRole(Worker):
    """Does with an order what its script says; keeps the orders."""

    def __init__(self, name: str, script: Script) -> None:
        self.name = name
        self.script = script
        self.orders: list[ExecuteStep] = []

    @property
    def identity(self) -> str:
        return f"agent.{self.name}"

    @on_command
    async def execute(self, order: ExecuteStep) -> Event | None:
        self.orders.append(order)
        return await self.script(order)


async def complete(order: ExecuteStep) -> StepCompleted:
    """What a role does on a good day."""
    return completed(order)


def completed(order: ExecuteStep, attempt: int | None = None) -> StepCompleted:
    """The end of an attempt whose artifact storage has."""
    told = claimed(order, attempt)
    _MADE[told.artifact.artifact_id] = told.artifact, told.run_id
    return told


def claimed(order: ExecuteStep, attempt: int | None = None) -> StepCompleted:
    """The end of an attempt whose artifact nobody has registered."""
    attempt = attempt or order.attempt
    artifact = artifact_of(order.run_id, order.step_id, attempt)
    return StepCompleted(
        run_id=order.run_id, step_id=order.step_id, attempt=attempt, artifact=artifact, context=AIContext()
    )


def buffered(order: ExecuteStep) -> StepPendingStorage:
    return StepPendingStorage.model_validate(claimed(order).model_dump())


def failed(order: ExecuteStep, *, retryable: bool = True) -> StepFailed:
    return StepFailed(
        run_id=order.run_id, step_id=order.step_id, attempt=order.attempt, retryable=retryable, reason="модель молчит"
    )


def artifact_of(run_id: str, step_id: str, attempt: int) -> ArtifactRef:
    name = f"{run_id}-{step_id}-{attempt}"
    return ArtifactRef(
        artifact_id=f"art_{name}"[:68],
        version=1,
        sha256=hashlib.sha256(name.encode()).hexdigest(),
        size_bytes=len(name),
        content_type="text/markdown",
    )


def registered(artifact: ArtifactRef, run_id: str) -> ArtifactRegistered:
    return ArtifactRegistered(
        artifact=artifact,
        trace_id=run_id,
        artifact_type="draft",
        created_by="agent.critic.1",
        owner="agent.critic",
        visibility="trace",
        retention="infinite",
    )


def manifest_of(artifact: ArtifactRef, run_id: str) -> Manifest:
    return Manifest(
        id=artifact.artifact_id,
        trace_id=run_id,
        created_by="agent.critic.1",
        created_at=datetime(2025, 6, 1, tzinfo=UTC),
        artifact_type="draft",
        content_type=artifact.content_type,
        uri="objects/sha256/aa/bb/x/1",
        size_bytes=artifact.size_bytes,
        checksum=f"sha256:{artifact.sha256}",
        owner="agent.critic",
        status="completed",
    )


def a_step(name: str, *inputs: str, role: str = "critic", critical: bool = True, timeout_s: float = 60) -> CardStep:
    return CardStep(
        id=name,
        role=role,
        instructions="Прочти и ответь.",
        inputs=inputs or ("brief",),
        produces="draft",
        critical=critical,
        timeout_s=timeout_s,
        queue_timeout_s=0,
    )


def a_start(*steps: CardStep, card_name: str | None = None, run_id: str | None = None) -> StartProcess:
    """A start of these steps, the last of which makes the result; or of a shipped card."""
    card = Card(name="card", steps=steps, result=steps[-1].id, artifact_deadline_s=900) if steps else None
    return StartProcess(run_id=run_id or mint("run"), card=card, card_name=card_name, inputs=(BRIEF,))


def an_orchestrator(
    folder: Path, settle: timedelta = timedelta(0), heartbeat_s: float = 5
) -> Callable[[WorkerContext], OrchestratorWorker]:
    """Makes an orchestrator over the database in that folder; make another, and it has crashed and come back."""

    def make(worker_context: WorkerContext) -> OrchestratorWorker:
        database = Database(f"sqlite+aiosqlite:///{folder / 'orchestrator.db'}", "orchestrator")
        bus = worker_context.bus.acting_as("svc.orchestrator", service="orchestrator")
        return OrchestratorWorker(database, bus, ROLES, worker_context.clock, OrchestratorRules(settle, heartbeat_s))

    return make


def a_role(name: str, script: Script = complete) -> Callable[[WorkerContext], ScriptedRole]:
    return lambda _kit: ScriptedRole(name, script)
