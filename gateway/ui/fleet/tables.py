"""Tables of workers and queues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from bus_schema.fleet import State
from gateway.event_feed import WorkerInstance
from gateway.ui.activity import ServiceActivity
from gateway.ui.components import Rows, SegmentedControl, attributes, box, search, show_if, text
from gateway.ui.i18n import Localizer
from gateway.ui.svg import sparkline
from mindbus.management import QueueState

_KEPT = 60


@dataclass(frozen=True)
class ServiceRow:
    """One service with its instances."""

    service: str
    seen: tuple[WorkerInstance, ...]
    pace: ServiceActivity

    @property
    def best(self) -> WorkerInstance:
        """The instance that does the work."""
        return min(self.seen, key=lambda one: (one.is_silent, one.state is State.UNREADY, one.state is not State.READY))

    @property
    def trouble(self) -> int:
        """Sort key: problems first."""
        best = self.best
        return 0 if best.is_silent else 1 if best.state is State.UNREADY else 2


def workers_of(seen: Sequence[WorkerInstance], paces: dict[str, ServiceActivity]) -> list[ServiceRow]:
    """Instances by service; a silent one is listed only if no other took its place."""
    by_service: dict[str, list[WorkerInstance]] = {}
    for one in seen:
        by_service.setdefault(one.service, []).append(one)
    found = []
    for service, instances in by_service.items():
        alive = [one for one in instances if not one.is_silent] or instances[-1:]
        found.append(ServiceRow(service, tuple(alive), paces.get(service, ServiceActivity())))
    return sorted(found, key=lambda worker: (worker.trouble, worker.service))


class WorkerTable:
    """A table; cards on a phone."""

    def __init__(self, i18n: Localizer, place: Element, wanted: str = "") -> None:
        self.i18n = i18n
        self._wanted = wanted
        self._workers: list[ServiceRow] = []
        with place:
            with box("mb-head"):
                text(i18n("fleet.workers"), "", "h2")
                box("mb-grow")
                search(i18n("filter"), self._find, wanted)
            with box("mb-scroll mb-grow"), box("mb-table mb-cards", "table"):
                with box("", "thead"), box("", "tr"):
                    for key, classes in _COLUMNS:
                        text(i18n(key), classes, "th")
                self._rows: Rows[ServiceRow] = Rows(box("", "tbody"), lambda _worker: _ServiceRowView(i18n))

    def show(self, workers: list[ServiceRow]) -> None:
        self._workers = workers
        self._rows.show((one.service, one) for one in workers if self._wanted in one.service)

    def _find(self, wanted: str) -> None:
        self._wanted = wanted.strip().lower()
        self.show(self._workers)


_COLUMNS = (
    ("fleet.worker", ""),
    ("fleet.version", "mb-fit"),
    ("fleet.seen", "mb-fit mb-right"),
    ("fleet.says", "mb-fit mb-right"),
    ("p50", "mb-fit mb-right"),
    ("p99", "mb-fit mb-right"),
)


class _ServiceRowView:
    def __init__(self, i18n: Localizer) -> None:
        self._i18n = i18n
        with attributes(box("", "tr"), tabindex="0") as self.element:
            with box("mb-card-title", "td"), box("mb-line-x"):
                self._dot = box("mb-dot", "i")
                self._name = text("", "mb-medium mb-ell")
                self._many = text("", "mb-meta")
                self._state = text("", "mb-tag mb-tint mb-hidden")
            self._version = _cell(i18n, "fleet.version", "mb-t3 mb-not-phone")
            self._seen = _cell(i18n, "fleet.seen", "mb-right mb-num mb-t2 mb-not-phone")
            with attributes(box("mb-fit mb-right", "td"), data_label=i18n("fleet.says")), box("mb-line-x mb-end-x"):
                self._spark = ui.html("", sanitize=False).classes("mb-spark")
                self._rate = text("", "mb-num mb-w40")
            self._p50 = _cell(i18n, "p50", "mb-right mb-num")
            self._p99 = _cell(i18n, "p99", "mb-right mb-num")

    def show(self, worker: ServiceRow) -> None:
        i18n, best = self._i18n, worker.best
        colour, shape, state = _look_of(best)
        attributes(self.element, data_row=worker.service)
        self._dot.classes(replace=f"mb-dot {shape} mb-{colour}")
        self._name.set_text(worker.service)
        self._many.set_text(f"×{len(worker.seen)}" if len(worker.seen) > 1 else "")
        silent_s = (datetime.now(UTC) - best.at).total_seconds()
        said = i18n(state, time=i18n.span(silent_s)) if state else ""
        self._state.set_text(said)
        show_if(self._state, said)
        self._state.style(f"--c: var(--{colour})")
        self._version.set_text(best.version)
        self._seen.set_text(i18n.span(max(silent_s, 0)))
        self._spark.set_content(sparkline(worker.pace.rates[-_KEPT:] or (0, 0)))
        self._spark.classes(replace=f"mb-spark {'' if any(worker.pace.rates) else 'mb-t3 mb-idle'}")
        self._rate.set_text(i18n.number(worker.pace.rates[-1] if worker.pace.rates else 0, 1))
        for cell, took in ((self._p50, worker.pace.p50_s), (self._p99, worker.pace.p99_s)):
            cell.set_text("–" if took is None else i18n.seconds(took))


def _look_of(best: WorkerInstance) -> tuple[str, str, str]:
    if best.is_silent:
        return "err", "mb-square", "fleet.down"
    if best.state is State.UNREADY:
        return "warn", "mb-ring", "fleet.unready"
    if best.state is State.STANDING_BY:
        return "t3", "mb-ring", "fleet.standing_by"
    return "ok", "", ""


DEAD = ".dead"
_MANY = 100


@dataclass(frozen=True)
class QueueRow:
    """A queue with the number of dead letters of its service."""

    name: str
    ready: int
    unacked: int
    consumers: int
    dead: int
    depths: tuple[int, ...]

    @property
    def trouble(self) -> int:
        """Sort key: problems first."""
        return 0 if self.dead or (self.ready and not self.consumers) else 1 if self.ready > _MANY else 2


def queues_of(states: Sequence[QueueState], depths: Mapping[str, Sequence[int]]) -> list[QueueRow]:
    """Queues with consumers; dead letters are counted at the first queue of their service."""
    dead = {state.name.removesuffix(DEAD): state.depth for state in states if state.name.endswith(DEAD)}
    found = [
        QueueRow(
            state.name,
            state.ready,
            state.unacked,
            state.consumers,
            dead.pop(state.name, 0),
            tuple(depths.get(state.name, ())),
        )
        for state in states
        if not state.name.endswith(DEAD)
    ]
    # A service that only hears events has no queue of the plain name.
    orphaned = [QueueRow(f"{name}{DEAD}", 0, 0, 0, count, ()) for name, count in dead.items() if count]
    return sorted(found + orphaned, key=lambda queue: (queue.trouble, queue.name))


class QueueTable:
    """A table; cards on a phone."""

    def __init__(self, i18n: Localizer, place: Element) -> None:
        self.i18n = i18n
        self._queues: list[QueueRow] = []
        self._wanted = "all"
        with place:
            with box("mb-head"):
                text(i18n("fleet.queues"), "", "h2")
                box("mb-grow")
                options = [(key, i18n(f"fleet.queues_{key}")) for key in ("all", "waiting", "failing")]
                SegmentedControl(options, "all", self._choose)
            with box("mb-scroll mb-grow"), box("mb-table mb-cards", "table"):
                with box("", "thead"), box("", "tr"):
                    text(i18n("fleet.queue"), "", "th")
                    for key in ("fleet.depth", "fleet.taken", "fleet.consumers", "fleet.dead"):
                        text(i18n(key), "mb-fit mb-right", "th")
                self._rows: Rows[QueueRow] = Rows(box("", "tbody"), lambda _queue: _QueueRowView(i18n))

    def show(self, queues: list[QueueRow]) -> None:
        self._queues = queues
        self._rows.show((queue.name, queue) for queue in queues if self._fits(queue))

    def _fits(self, queue: QueueRow) -> bool:
        if self._wanted == "waiting":
            return bool(queue.ready)
        return queue.trouble == 0 if self._wanted == "failing" else True

    def _choose(self, wanted: str) -> None:
        self._wanted = wanted
        self.show(self._queues)


class _QueueRowView:
    def __init__(self, i18n: Localizer) -> None:
        self._i18n = i18n
        with attributes(box("", "tr"), tabindex="0") as self.element:
            with box("mb-card-title mb-mono mb-ell", "td"):
                self._prefix = text("", "mb-t3")
                self._name = text("")
            with attributes(box("mb-fit mb-right", "td"), data_label=i18n("fleet.depth")), box("mb-line-x mb-end-x"):
                self._spark = ui.html("", sanitize=False).classes("mb-spark")
                self._depth = text("", "mb-num mb-w40")
            self._unacked = _cell(i18n, "fleet.taken")
            self._consumers = _cell(i18n, "fleet.consumers")
            self._dead = _cell(i18n, "fleet.dead")

    def show(self, queue: QueueRow) -> None:
        attributes(self.element, data_row=queue.name)
        prefix, _, name = queue.name.partition("mb.q.")
        self._prefix.set_text(f"{prefix}mb.q.")
        self._name.set_text(name)
        look = "err" if queue.ready and not queue.consumers else "warn" if queue.ready > _MANY else ""
        self._spark.set_content(sparkline([float(depth) for depth in queue.depths] or [0, 0]))
        self._spark.classes(
            replace=f"mb-spark {f'mb-{look}' if look else 'mb-t3'} {'' if any(queue.depths) else 'mb-idle'}"
        )
        self._depth.set_text(self._i18n.number(queue.ready))
        self._depth.classes(replace=f"mb-num mb-w40 {f'mb-{look}' if look else ''}")
        self._unacked.set_text(self._i18n.number(queue.unacked) if queue.unacked else "–")
        self._consumers.set_text(str(queue.consumers))
        self._consumers.classes(replace=f"mb-fit mb-right mb-num {'mb-err' if look == 'err' else ''}")
        self._dead.set_text(self._i18n.number(queue.dead) if queue.dead else "–")
        self._dead.classes(replace=f"mb-fit mb-right mb-num {'mb-err mb-medium' if queue.dead else 'mb-t3'}")


def _cell(i18n: Localizer, key: str, classes: str = "mb-right mb-num") -> TextElement:
    cell = text("", f"mb-fit {classes}", "td")
    attributes(cell, data_label=i18n(key))
    return cell
