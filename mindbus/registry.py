"""The workers installed here, by the entry-point group `mindbus.workers`; each is imported only when it is loaded."""

import difflib
import importlib
import inspect
import re
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from pydantic.fields import FieldInfo

from bus_schema.identities import SERVICE_NAME
from bus_schema.replies import Code
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import MindBusError
from mindbus.settings import Settings

GROUP = "mindbus.workers"
# Each names a function that returns further entry points of workers, such as those made from files.
SOURCES = "mindbus.worker_sources"
# Each names a subclass of `Settings` with the settings that a package adds.
SETTINGS = "mindbus.settings"
# The distribution whose workers are MindBus's own, and its package, which puts their modules on the path.
FLEET_DISTRIBUTION = "mindbus-fleet"
FLEET_PACKAGE = "mindbus_fleet"

# Users of RabbitMQ that are no workers.
_RESERVED = frozenset({"mindbus", "viewer", "guest", "cli", "client"})

Factory = Callable[[WorkerContext], Worker]


class UnknownWorker(MindBusError, LookupError, code=Code.INVALID):
    """There is no such worker."""

    exit_code = 2


class BrokenWorker(MindBusError, code=Code.INVALID):
    """This worker cannot be used; fix or uninstall its package."""


class HiddenPackage(BrokenWorker):
    """The worker needs a package whose name is taken in this process by a package of the fleet, such as `agents`."""


class BrokenModule(MindBusError, code=Code.INVALID):
    """Your own module raises an error when it is imported."""


class WorkerNameTaken(MindBusError, code=Code.CONFLICT):
    """Another worker, or a RabbitMQ user, has this worker's name, and so its queues; give yours another name."""


@dataclass(frozen=True)
class WorkerEntry:
    """An installed worker: a factory whose module is imported when a worker is built."""

    point: EntryPoint

    @property
    def name(self) -> str:
        """The worker's name, which its queues are called by."""
        return self.point.name

    @property
    def is_own(self) -> bool:
        return _is_of_fleet_distribution(self.point)

    def load(self) -> Factory:
        """Import the factory. Raises BrokenWorker."""
        if not re.fullmatch(SERVICE_NAME, self.name):
            raise self.broken("a worker's name is lowercase letters, digits, - and _")
        try:
            factory = load_entry_point(self.point)
        except MindBusError:
            raise
        except Exception as error:
            if self.is_own:
                raise
            reason = f"cannot be imported: {type(error).__name__}: {error}"
            if isinstance(error, ImportError) and _is_of_fleet(error.name):
                advice = "the fleet has a package of that name: run it with `mindbus worker`, in a process of its own"
                raise HiddenPackage(str(self.broken(f"{reason}; {advice}"))) from error
            raise self.broken(reason) from error
        if not callable(factory):
            raise self.broken("is not a callable that takes a WorkerContext, such as a Worker class")
        return cast("Factory", factory)

    def broken(self, reason: str) -> BrokenWorker:
        """The error that says why this worker cannot be used."""
        package = f" of {self.point.dist.name}" if self.point.dist is not None else ""
        return BrokenWorker(f"entry point {self.name} = {self.point.value}{package}: {reason}")

    def __call__(self, context: WorkerContext) -> Worker:
        return self.load()(context)


@dataclass(frozen=True)
class WorkerRegistry:
    """Installed workers by name, MindBus's own first; `broken` says why others of their packages are left out."""

    entries: Mapping[str, WorkerEntry] = field(default_factory=dict)
    broken: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, points: Iterable[EntryPoint]) -> "WorkerRegistry":
        """The registry of these entry points, of which no two may have one name."""
        # An installation that is listed twice on the path is one.
        claims: dict[str, dict[str, WorkerEntry]] = defaultdict(dict)
        for point in sorted(points):
            claims[point.name].setdefault(point.value, WorkerEntry(point))
        entries: dict[str, WorkerEntry] = {}
        broken: dict[str, str] = {}
        for name, claimed in claims.items():
            own = [entry for entry in claimed.values() if entry.is_own]
            third_party = [entry for entry in claimed.values() if not entry.is_own]
            if own:
                entries[name] = own[0]
                if third_party:
                    broken[name] = str(third_party[0].broken("MindBus has a worker of this name; give yours another"))
            elif len(third_party) > 1:
                rivals = ", ".join(sorted(claimed))
                broken[name] = f"the worker {name!r} is defined by several packages: {rivals}; uninstall all but one"
            else:
                entries[name] = third_party[0]
        return cls(dict(sorted(entries.items(), key=lambda item: not item[1].is_own)), broken)

    @property
    def own(self) -> dict[str, WorkerEntry]:
        return {name: entry for name, entry in self.entries.items() if entry.is_own}

    @property
    def third_party(self) -> dict[str, WorkerEntry]:
        return {name: entry for name, entry in self.entries.items() if not entry.is_own}

    def without(self, *names: str) -> "WorkerRegistry":
        return WorkerRegistry({name: e for name, e in self.entries.items() if name not in names}, self.broken)

    def checked(self, *, apart: bool = False) -> "WorkerRegistry":
        """Import the workers of other packages; those that cannot be imported are broken, the others stay.

        `apart`: each is to run in a process of its own, where the fleet hides no package from it.
        """
        usable, broken = dict(self.own), dict(self.broken)
        for name, entry in self.third_party.items():
            try:
                entry.load()
            except BrokenWorker as error:
                if not (apart and isinstance(error, HiddenPackage)):
                    broken[name] = str(error)
                    continue
            usable[name] = entry
        return WorkerRegistry(usable, broken)

    def require_free(self, name: str, target: str) -> None:
        """Check that no other worker has the name of the one at a target of `workers_at`. Raises WorkerNameTaken."""
        entry = self.entries.get(name)
        module = target.removesuffix(".py") if target.endswith(".py") else target.partition(":")[0]
        is_same = entry is not None and not entry.is_own and _last_of(entry.point.module) == _last_of(module)
        if name in _RESERVED or (entry is not None and not is_same):
            raise WorkerNameTaken(f"{WorkerNameTaken.__doc__} ({name})")

    def require(self, name: str) -> WorkerEntry:
        """The worker of that name. Raises UnknownWorker, BrokenWorker."""
        if name in self.entries:
            return self.entries[name]
        if name in self.broken:
            raise BrokenWorker(f"{self.broken[name]}. {BrokenWorker.__doc__}")
        matches = difflib.get_close_matches(name, self.entries, 1)
        if matches:
            hint = f"did you mean {matches[0]}?"
        elif self.own:
            hint = f"there are {', '.join(self.entries)}"
        else:
            hint = f"MindBus's own come with `pip install {FLEET_DISTRIBUTION}`; yours is module:Class"
        raise UnknownWorker(f"There is no worker {name!r}: {hint}")


def installed_workers() -> WorkerRegistry:
    """Every worker that a package on the path registers, itself or by a source; none is imported."""
    more = [point for source in _points(SOURCES) for point in load_entry_point(source)()]
    return WorkerRegistry.of([*_points(GROUP), *more])


def workers_at(target: str) -> dict[str, Factory]:
    """Workers of one's own, by name: the class at `module:Class`, or all that a file `counter.py` defines.

    Raises UnknownWorker where there is none.
    """
    if target.endswith(".py"):
        file = Path(target)
        if not file.is_file():
            raise UnknownWorker(f"There is no file {target}")
        module = import_from(file.parent, file.stem)
        classes = worker_classes(module)
        if not classes:
            raise UnknownWorker(f"{target} defines no Worker class with a name")
        return {worker_class.name: worker_class for worker_class in classes}
    name, _, attribute = target.partition(":")
    name = name.removesuffix(".py")
    module = import_from(Path(), name)
    worker = getattr(module, attribute, None)
    if not (inspect.isclass(worker) and issubclass(worker, Worker)):
        names = ", ".join(worker_class.__name__ for worker_class in worker_classes(module)) or "none"
        raise UnknownWorker(f"{attribute!r} is not a Worker class of {name}; it has {names}")
    return {worker.name: worker}


def import_from(folder: Path, name: str) -> ModuleType:
    """Import a module, searching the folder first. Raises UnknownWorker, BrokenModule."""
    folder_name = str(folder.absolute())
    if folder_name not in sys.path:
        sys.path.insert(0, folder_name)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _broken(name, error) from error
        raise UnknownWorker(f"There is no module {name!r} in {folder_name} or among the installed packages") from error
    except Exception as error:
        raise _broken(name, error) from error


def _broken(module: str, error: Exception) -> BrokenModule:
    """The error of a module, without the frames of whoever imports it."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename.startswith(
        (__file__, importlib.__file__, "<frozen ")
    ):
        frame = frame.tb_next
    lines = traceback.format_exception(type(error), error, frame, chain=False)
    return BrokenModule(f"{module} cannot be imported\n{''.join(lines).rstrip()}")


def worker_classes(module: ModuleType) -> list[type[Worker]]:
    """The workers that a module defines itself, in the order of the file."""
    return [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Worker) and value.name and value.__module__ == module.__name__
    ]


def load_entry_point(point: EntryPoint) -> Any:
    """Import what an entry point names; the fleet's package first puts its modules on the path."""
    if _is_of_fleet_distribution(point):
        importlib.import_module(FLEET_PACKAGE)
    return point.load()


def known_settings() -> dict[str, FieldInfo]:
    """The fields of the library's settings, then those that installed packages add."""
    fields = dict(Settings.model_fields)
    for point in sorted(_points(SETTINGS)):
        fields |= load_entry_point(point).model_fields
    return fields


def _points(group: str) -> Iterable[EntryPoint]:
    """The entry points of a group."""
    found: Iterable[EntryPoint] = _points_on(tuple(sys.path)).select(group=group)
    return found


@lru_cache(maxsize=4)
def _points_on(_path: tuple[str, ...]) -> Any:
    """All entry points on the path, for which a file of every distribution there is read."""
    return entry_points()


def _last_of(module: str) -> str:
    return re.split(r"[./\\]", module)[-1]


def _is_of_fleet_distribution(point: EntryPoint) -> bool:
    return point.dist is not None and _name_of(point.dist) == FLEET_DISTRIBUTION


@lru_cache
def _name_of(distribution: Distribution) -> str:
    """Its name, for which the whole of its metadata is parsed."""
    return distribution.name


def _is_of_fleet(module: str | None) -> bool:
    """Whether the module of this name here is one of the packages that the fleet's wheel puts on the path."""
    fleet, package = (sys.modules.get(name) for name in (FLEET_PACKAGE, (module or "").partition(".")[0]))
    if fleet is None or package is None or not (fleet.__file__ and package.__file__):
        return False
    return Path(fleet.__file__).parent in Path(package.__file__).parents
