"""Workers that other packages bring along, by the entry-point group `mindbus.workers`."""

import re
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points

from bus_schema.identities import SERVICE_NAME
from mindbus.bus.worker import Worker, WorkerContext

GROUP = "mindbus.workers"

Maker = Callable[[WorkerContext], Worker]


@dataclass(frozen=True)
class ThirdParty:
    """What was found: workers that can be built, and why the others cannot."""

    makers: dict[str, Maker] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)


def third_party_workers(taken: Collection[str] = (), points: Collection[EntryPoint] | None = None) -> ThirdParty:
    """Load every entry point; one that cannot be loaded is reported, the others run."""
    points = entry_points(group=GROUP) if points is None else points
    # An installation that is listed twice on the path is one.
    distinct = sorted({(point.name, point.value): point for point in points}.items())
    claims = Counter(name for (name, _value), _point in distinct)
    found = ThirdParty()
    for (name, _value), point in distinct:
        if name in taken:
            found.broken[name] = _said_of(point, "MindBus has a worker of this name; give yours another")
        elif claims[name] > 1:
            rivals = ", ".join(sorted(value for (other, value), _ in distinct if other == name))
            found.broken[name] = f"the worker {name!r} is defined by several packages: {rivals}; uninstall all but one"
        else:
            _load(point, found)
    return found


def _load(point: EntryPoint, found: ThirdParty) -> None:
    if not re.fullmatch(SERVICE_NAME, point.name):
        found.broken[point.name] = _said_of(point, "a worker's name is lowercase letters, digits, - and _")
        return
    try:
        maker = point.load()
    except Exception as error:  # noqa: BLE001  # whatever a stranger's module raises, the rest of the fleet runs
        found.broken[point.name] = _said_of(point, f"cannot be imported: {type(error).__name__}: {error}")
        return
    if not callable(maker):
        found.broken[point.name] = _said_of(
            point, "is not a callable that takes a WorkerContext, such as a Worker class"
        )
        return
    found.makers[point.name] = _taking_a_kit(maker)


def _taking_a_kit(maker: Callable[..., Worker]) -> Maker:
    """A worker that needs nothing may do without a constructor."""
    if isinstance(maker, type) and maker.__init__ is object.__init__:  # type: ignore[misc]  # of a class, not an instance
        return lambda _kit: maker()
    return maker


def _said_of(point: EntryPoint, trouble: str) -> str:
    package = f" of {point.dist.name}" if point.dist is not None else ""
    return f"entry point {point.name} = {point.value}{package}: {trouble}"
