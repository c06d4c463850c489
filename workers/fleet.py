"""Every worker there is, with what it is made of."""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mindbus.bus.worker import Worker, WorkerContext
from workers.third_party import Maker, third_party_workers


class UnknownWorker(LookupError):
    """There is no such worker."""


class BrokenWorker(Exception):
    """This worker of another package cannot be used; mend or uninstall the package."""


@dataclass(frozen=True)
class Deferred:
    """A maker whose libraries are imported when it is needed: a process pays for its own workers, no others."""

    load: Callable[[], Maker]

    def __call__(self, worker_context: WorkerContext) -> Worker:
        return self.load()(worker_context)


def _storage() -> Maker:
    from mindbus.files.store import open_files
    from mindbus.sql.database import Database
    from storage_service.care.rules import rules_of
    from storage_service.service import open_storage
    from storage_service.signing_account import open_presigner
    from workers.storage.worker import StorageWorker

    def make(worker_context: WorkerContext) -> Worker:
        database = Database(worker_context.settings.database_of("storage"), schema="storage")
        files = open_files(worker_context.settings)
        presigner = open_presigner(files, worker_context.clock, worker_context.settings.s3_public_endpoint_url)
        rules = rules_of(worker_context.settings)
        return StorageWorker(open_storage(database, files, worker_context.clock, presigner=presigner, rules=rules))

    return make


def _orchestrator() -> Maker:
    from agents.configuration.prompts import role_names
    from workers.orchestrator import open_orchestrator

    return lambda worker_context: open_orchestrator(worker_context, role_names())


def _glm() -> Maker:
    from workers.glm.worker import open_glm

    return open_glm


def _lsm() -> Maker:
    from workers.lsm.worker import open_lsm

    return open_lsm


def _packer() -> Maker:
    from workers.packer.worker import PackerWorker

    return PackerWorker


def _swm() -> Maker:
    from workers.swm.worker import SwmWorker

    return SwmWorker


def _history() -> Maker:
    from workers.history import HistoryWorker

    return HistoryWorker


def _kps() -> Maker:
    from workers.kps import open_kps

    return open_kps


def _tracker() -> Maker:
    from workers.tracker import TrackerWorker

    return TrackerWorker


def _dialogue() -> Maker:
    from workers.dialogue.worker import DialogueWorker
    from workers.subagent_registry import known_subagents

    return lambda worker_context: DialogueWorker(
        worker_context, known_subagents=known_subagents(worker_context.settings, whole_fleet().makers)
    )


def _subagent_analytic() -> Maker:
    from workers.subagent_analytic import AnalyticSubagent

    return AnalyticSubagent


def _task_manager() -> Maker:
    from workers.task_manager import TaskManagerWorker

    return TaskManagerWorker


def _context_manager() -> Maker:
    from workers.context_manager import ContextManagerWorker

    return ContextManagerWorker


def _mood_watcher() -> Maker:
    from workers.mood_watcher import MoodWatcherWorker

    return MoodWatcherWorker


def _context() -> Maker:
    from workers.context import ContextWorker

    return ContextWorker


def _sim() -> Maker:
    from workers.sim.worker import SimWorker

    return SimWorker


def _gateway() -> Maker:
    from gateway.ui.mounting import Screens
    from gateway.worker import GatewayWorker

    return lambda worker_context: GatewayWorker(worker_context, Screens)


def _creative(role: str) -> Maker:
    from workers.creative import creative

    return creative(role)


FLEET: dict[str, Callable[[WorkerContext], Worker]] = {
    "storage": Deferred(_storage),
    "orchestrator": Deferred(_orchestrator),
    "glm": Deferred(_glm),
    "lsm": Deferred(_lsm),
    "packer": Deferred(_packer),
    "swm": Deferred(_swm),
    "history": Deferred(_history),
    "kps": Deferred(_kps),
    "tracker": Deferred(_tracker),
    "task_manager": Deferred(_task_manager),
    "context_manager": Deferred(_context_manager),
    "mood_watcher": Deferred(_mood_watcher),
    "context": Deferred(_context),
    "dialogue": Deferred(_dialogue),
    "subagent-analytic": Deferred(_subagent_analytic),
    "sim": Deferred(_sim),
    "researcher": Deferred(lambda: _creative("researcher")),
    "ideator": Deferred(lambda: _creative("ideator")),
    "critic": Deferred(lambda: _creative("critic")),
    "editor": Deferred(lambda: _creative("editor")),
    "pushkin": Deferred(lambda: _creative("pushkin")),
    "gateway": Deferred(_gateway),
}


# Whoever needs others starts once those consume (spec 004 §6.3); whoever is not named starts with the agents, second.
_STAGES: tuple[tuple[str, ...], ...] = (
    ("storage", "glm", "lsm", "swm", "history"),
    ("task_manager", "context_manager", "mood_watcher"),
    ("context",),
    ("dialogue",),
    ("tracker",),
    ("sim", "gateway"),
)
_AGENTS = 1


def in_order(names: Iterable[str]) -> list[list[str]]:
    """The workers in the order in which they start, those together that may start together."""
    stage_of = {name: number for number, stage in enumerate(_STAGES) for name in stage}
    stages: list[list[str]] = [[] for _ in _STAGES]
    for name in names:
        stages[stage_of.get(name, _AGENTS)].append(name)
    return [stage for stage in stages if stage]


@dataclass(frozen=True)
class Fleet:
    """All workers of this installation; `broken` says why some of other packages are not among them."""

    makers: dict[str, Maker]
    third_party: frozenset[str]
    broken: dict[str, str]

    def maker(self, name: str) -> Maker:
        """How to build one, its libraries loaded. Raises UnknownWorker, BrokenWorker."""
        self.require(name)
        maker = self.makers[name]
        return maker.load() if isinstance(maker, Deferred) else maker

    def require(self, name: str) -> None:
        """Raises UnknownWorker, BrokenWorker where there is none of that name to build."""
        if name in self.makers:
            return
        if name in self.broken:
            raise BrokenWorker(f"{self.broken[name]}. {BrokenWorker.__doc__}")
        near = difflib.get_close_matches(name, self.makers, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self.makers)}"
        raise UnknownWorker(f"There is no worker {name!r}: {hint}")


def whole_fleet() -> Fleet:
    """Our own workers, then those of other packages."""
    found = third_party_workers(taken=FLEET)
    return Fleet(FLEET | found.makers, frozenset(found.makers), found.broken)
