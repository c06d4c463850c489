"""Checks of `doctor` that concern the language model, the dialogue's files and queues, and memory's vectors."""

import asyncio
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from sqlalchemy.exc import SQLAlchemyError

from agents.configuration.model_roles import ROLES, ModelSpec, spec_of
from agents.configuration.prompts import role_names
from agents.configuration.validation import InvalidFile
from agents.context.preferences import open_preferences
from agents.models.errors import ModelHalfConfigured
from agents.people_directory import open_people_directory
from agents.sim.scenarios import SimLibrary
from config.settings import FleetSettings
from config.shipped import shipped_names
from memory.glm.service import database_of, open_vector_index, space_in_use
from memory.vectors.index import IndexAway, IndexRefused
from mindbus.bus.topology import backbone, commands_queue, events_queue
from mindbus.errors import TemporaryFailure
from mindbus.management import QueueState
from mindbus_fleet.cli.config_overrides import own_configuration
from mindbus_fleet.cli.simulation_files import scenarios_of, teams_of
from retrieval.embedding.embedder import EmbeddingSpace

Status = Literal["ok", "warning", "failed"]
# On the way of a message, each with its worker.
_QUEUES = {commands_queue(worker): worker for worker in ("storage", "context", "dialogue", "history")} | {
    events_queue(worker): worker for worker in ("task_manager", "context_manager", "mood_watcher", "context", "tracker")
}
_CHECK = "Vectors of glm"
_LIMITS_BY_ITSELF = 4


@dataclass(frozen=True)
class CheckResult:
    """One thing that was looked at."""

    check: str
    status: Status
    detail: str


def dialogue_files(settings: FleetSettings) -> Iterator[CheckResult]:
    """The model, the files that agents and simulations read."""
    yield _model(settings)
    yield CheckResult("Configuration", *own_configuration())
    yield _file("Habits", settings.habits or "those that come with MindBus", lambda: open_preferences(settings.habits))
    yield _file(
        "People",
        settings.people or "the simulated teams alone",
        lambda: open_people_directory(settings.people, settings.sim_dir),
    )
    yield _simulations(settings)


def dialogue_queues(queues: Sequence[QueueState], ready: Collection[str]) -> CheckResult:
    """Whether there is somebody to answer wherever a dialogue goes; `ready` are the workers here that consume.

    RabbitMQ counts consumers every few seconds: it does not know yet of those that have just begun.
    """
    heard = {queue.name for queue in queues if queue.consumers}
    silent = [name for name, worker in _QUEUES.items() if name not in heard and worker not in ready]
    if silent:
        advice = "start all workers with `mindbus up`"
        return CheckResult("Dialogue", "warning", f"nobody listens to {', '.join(silent)}: {advice}")
    return CheckResult("Dialogue", "ok", "every queue on the way of a message has a consumer")


def delivery_limit(queues: Sequence[QueueState], version: str) -> CheckResult:
    """Whether a message that kills its worker is taken out of the queue at last."""
    check, limit = "Delivery limit", "delivery-limit"
    if version.partition(".")[0].isdecimal() and int(version.partition(".")[0]) >= _LIMITS_BY_ITSELF:
        return CheckResult(check, "ok", f"RabbitMQ {version} has one of its own")
    limited = [re.compile(policy.pattern) for policy in backbone(()).policies if limit in policy.definition]
    work = [queue for queue in queues if any(pattern.match(queue.name) for pattern in limited)]
    known = [(queue.name, queue.policy | queue.arguments) for queue in work if queue.policy is not None]
    if without := [name for name, arguments in known if not arguments.keys() & {limit, f"x-{limit}"}]:
        advice = (
            "a message that kills its worker comes again for ever; a policymaker's `mindbus topology apply` sets it"
        )
        return CheckResult(check, "failed", f"none for {', '.join(without)}: {advice}")
    return CheckResult(check, "ok", f"for {len(work)} queues")


def _model(settings: FleetSettings) -> CheckResult:
    """The model of the dialogue, then those of roles that have another one."""
    check = "Language model"
    try:
        specs = {role: spec_of(settings, role) for role in (*ROLES, *shipped_names("subagents"), *role_names())}
    except (ModelHalfConfigured, InvalidFile) as error:
        return CheckResult(check, "failed", str(error))
    dialogue, *others = [(role, _model_name(spec)) for role, spec in specs.items()]
    differing = [f"{role}: {name}" for role, name in others if name != dialogue[1]]
    return CheckResult(check, "ok", "; ".join([dialogue[1], *differing]))


def _model_name(spec: ModelSpec | None) -> str:
    if spec is None:
        return "the offline model"
    return f"{spec.model} at {urlsplit(spec.base_url).hostname}; not asked"


def _file(check: str, name: str, read: Callable[[], object]) -> CheckResult:
    try:
        read()
    except InvalidFile as bad:
        return CheckResult(check, "failed", str(bad))
    except OSError as unreadable:
        return CheckResult(check, "failed", f"{name} cannot be read: {unreadable.strerror}")
    return CheckResult(check, "ok", name)


def _simulations(settings: FleetSettings) -> CheckResult:
    check = "Simulations"
    if settings.sim_dir is not None and not os.access(settings.sim_dir, os.R_OK | os.X_OK):
        return CheckResult(check, "failed", f"{settings.sim_dir} is not a readable folder: correct MINDBUS_SIM_DIR")
    library = SimLibrary(settings.sim_dir)
    teams, scenarios = teams_of(library), scenarios_of(library)
    if problems := [f"{each.name}: {each.problem}" for each in (*teams, *scenarios) if each.problem]:
        return CheckResult(check, "warning", f"{'; '.join(problems)}. See all of it: mindbus sim check FILE")
    return CheckResult(check, "ok", f"{len(teams)} teams, {len(scenarios)} scenarios")


async def vectors_of_glm(settings: FleetSettings) -> CheckResult:
    """Whether there is an index of vectors, of the model that the settings name."""
    try:
        space = await _space(settings)
    except (SQLAlchemyError, TemporaryFailure) as trouble:
        return CheckResult(_CHECK, "warning", f"not looked for: {trouble}")
    if space is None:
        return CheckResult(_CHECK, "ok", "made at the first start")
    if lacking := await _lacking(space, settings):
        return lacking
    if space.model != settings.embedding_model:
        detail = f"of {space.model}, not of {settings.embedding_model}: `mindbus glm reindex` goes over to it"
        return CheckResult(_CHECK, "warning", detail)
    return CheckResult(_CHECK, "ok", f"of {space.model}, {space.dim} numbers each")


async def _space(settings: FleetSettings) -> EmbeddingSpace | None:
    database = database_of(settings)
    try:
        if database.is_sqlite and not await asyncio.to_thread(Path(database.url.database or "").exists):
            return None
        return await space_in_use(database)
    finally:
        await database.dispose()


async def _lacking(space: EmbeddingSpace, settings: FleetSettings) -> CheckResult | None:
    index = open_vector_index(settings, "glm", space)
    try:
        if await index.exists():
            return None
    except IndexRefused as refusal:
        return CheckResult(_CHECK, "failed", str(refusal))
    except IndexAway:
        pass
    finally:
        await index.close()
    if settings.qdrant_url is None and not settings.pgvector:
        return CheckResult(_CHECK, "warning", "not in this data folder: the next start of glm makes them from the rows")
    detail = "their server does not answer, or has none: bring its data back, or make them anew: `mindbus glm rebuild`"
    return CheckResult(_CHECK, "failed", detail)
