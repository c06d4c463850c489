"""Every worker there is, with what it is made of."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from mindbus.bus.worker import Kit, Worker
from workers.third_party import Maker, third_party_workers


class UnknownWorker(LookupError):
    """There is no such worker."""


class BrokenWorker(Exception):
    """This worker of another package cannot be used; mend or uninstall the package."""


def _storage(kit: Kit) -> Worker:
    from mindbus.files import open_file_store
    from mindbus.sql.database import Database
    from storage_service.service import open_storage
    from workers.storage import StorageWorker

    database = Database(kit.settings.database_of("storage"), schema="storage")
    return StorageWorker(open_storage(database, open_file_store(kit.settings.files_url), kit.clock))


def _orchestrator(kit: Kit) -> Worker:
    from agents.roles import role_names

    from workers.orchestrator import open_orchestrator

    return open_orchestrator(kit, role_names())


def _creative(role: str) -> Maker:
    def make(kit: Kit) -> Worker:
        from workers.creative import creative

        return creative(role)(kit)

    return make


# Built from what each imports for itself: a process pays for its own workers' libraries, `mindbus up` for none.
FLEET: dict[str, Callable[[Kit], Worker]] = {
    "storage": _storage,
    "orchestrator": _orchestrator,
    "researcher": _creative("researcher"),
    "ideator": _creative("ideator"),
    "critic": _creative("critic"),
    "editor": _creative("editor"),
    "pushkin": _creative("pushkin"),
}


@dataclass(frozen=True)
class Fleet:
    """All workers of this installation; `broken` says why some of other packages are not among them."""

    makers: dict[str, Maker]
    third_party: frozenset[str]
    broken: dict[str, str]

    def maker(self, name: str) -> Maker:
        """How to build one. Raises UnknownWorker, BrokenWorker."""
        if name in self.makers:
            return self.makers[name]
        if name in self.broken:
            raise BrokenWorker(f"{self.broken[name]}. {BrokenWorker.__doc__}")
        near = difflib.get_close_matches(name, self.makers, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self.makers)}"
        raise UnknownWorker(f"There is no worker {name!r}: {hint}")


def whole_fleet() -> Fleet:
    """Our own workers, then those of other packages."""
    found = third_party_workers(taken=FLEET)
    return Fleet(FLEET | found.makers, frozenset(found.makers), found.broken)
