"""Tables of workers and queues."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nicegui import ui
from nicegui.element import Element

from bus_schema.fleet import State
from gateway.activity import ServiceActivity
from gateway.backend import DEAD_SUFFIX, QUEUE_PREFIX
from gateway.event_feed import WorkerInstance, rank
from gateway.ui.components import SegmentedControl, attributes, box, head, search, show_if, text
from gateway.ui.i18n import Localizer
from gateway.ui.rows import Rows, cell, table
from gateway.ui.svg import sparkline
from mindbus.management import QueueState

_SAMPLES = 60
_RIGHT_ALIGNED = "mb-fit mb-right"


@dataclass(frozen=True)
class ServiceRow:
    """One service with its instances."""

    service: str
    seen: tuple[WorkerInstance, ...]
    pace: ServiceActivity

    @property
    def best(self) -> WorkerInstance:
        """The instance that does the work."""
        return min(self.seen, key=rank)

    @property
    def severity(self) -> int:
        """Sort key: problems first."""
        best = self.best
        return 0 if best.is_silent else 1 if best.state is State.UNREADY or best.note else 2


def workers_of(seen: Sequence[WorkerInstance], paces: dict[str, ServiceActivity]) -> list[ServiceRow]:
    """Instances by service; a silent one is listed only if no other took its place."""
    by_service: dict[str, list[WorkerInstance]] = {}
    for one in seen:
        by_service.setdefault(one.service, []).append(one)
    rows = []
    for service, instances in by_service.items():
        alive = [one for one in instances if not one.is_silent] or instances[-1:]
        rows.append(ServiceRow(service, tuple(alive), paces.get(service, ServiceActivity())))
    return sorted(rows, key=lambda row: (row.severity, row.service))


class WorkerTable:
    """A table; cards on a phone."""

    def __init__(self, i18n: Localizer, place: Element, choose: Callable[[str], Any], filter_text: str = "") -> None:
        self._filter = filter_text
        self._workers: list[ServiceRow] = []
        with place:
            with head(i18n("fleet.workers")):
                box("mb-grow")
                search(i18n("filter"), self._find, filter_text)
            with box("mb-scroll mb-grow"):
                self._rows: Rows[ServiceRow] = Rows(
                    table(i18n, _COLUMNS), lambda worker: _ServiceRowView(i18n, lambda: choose(worker.service))
                )

    def show(self, workers: list[ServiceRow]) -> None:
        self._workers = workers
        self._rows.show((one.service, one) for one in workers if self._filter in one.service)

    def _find(self, filter_text: str) -> None:
        self._filter = filter_text.strip().lower()
        self.show(self._workers)


_COLUMNS = (
    ("fleet.worker", ""),
    ("fleet.version", "mb-fit"),
    *((key, _RIGHT_ALIGNED) for key in ("fleet.seen", "fleet.says", "p50", "p99")),
)


class _ServiceRowView:
    def __init__(self, i18n: Localizer, on_click: Callable[[], Any]) -> None:
        self._i18n = i18n
        with attributes(box("mb-pickable-row", "tr"), tabindex="0").on("click", on_click) as self.element:
            with box("mb-card-title", "td"), box("mb-line-x"):
                self._dot = box("mb-dot", "i")
                self._name = text("", "mb-medium mb-ell")
                self._many = text("", "mb-meta")
                self._state = text("", "mb-tag mb-tint mb-hidden")
            self._version = cell(i18n, "fleet.version", "mb-t3 mb-not-phone")
            self._seen = cell(i18n, "fleet.seen", "mb-right mb-num mb-t2 mb-not-phone")
            self._rate = _CurveCell(i18n, "fleet.says")
            self._p50, self._p99 = cell(i18n, "p50"), cell(i18n, "p99")

    def show(self, worker: ServiceRow) -> None:
        i18n, best = self._i18n, worker.best
        colour, shape, state = look_of(best)
        attributes(self.element, data_row=worker.service)
        self._dot.classes(replace=f"mb-dot {shape} mb-{colour}")
        self._name.set_text(worker.service)
        self._many.set_text(f"×{len(worker.seen)}" if len(worker.seen) > 1 else "")
        silent_s = (datetime.now(UTC) - best.at).total_seconds()
        self._state.set_text(i18n(state, time=i18n.span(silent_s)) if state else "")
        show_if(self._state, state)
        self._state.style(f"--c: var(--{colour})")
        self._version.set_text(best.version)
        self._seen.set_text(i18n.span(max(silent_s, 0)))
        rates = worker.pace.rates[-_SAMPLES:]
        self._rate.show(rates, i18n.number(rates[-1] if rates else 0, 1), "" if any(worker.pace.rates) else "mb-t3")
        for place, took in ((self._p50, worker.pace.p50_s), (self._p99, worker.pace.p99_s)):
            place.set_text("–" if took is None else i18n.seconds(took))


class _CurveCell:
    """A number after its sparkline."""

    def __init__(self, i18n: Localizer, key: str) -> None:
        with attributes(box(_RIGHT_ALIGNED, "td"), data_label=i18n(key)), box("mb-line-x mb-end-x"):
            self._spark = ui.html("", sanitize=False).classes("mb-spark")
            self._number = text("", "mb-num mb-w40")

    def show(self, curve: Sequence[float], number: str, curve_look: str, look: str = "") -> None:
        self._spark.set_content(sparkline(curve or (0, 0)))
        self._spark.classes(replace=f"mb-spark {curve_look} {'' if any(curve) else 'mb-idle'}")
        self._number.set_text(number)
        self._number.classes(replace=f"mb-num mb-w40 {look}")


def look_of(best: WorkerInstance) -> tuple[str, str, str]:
    """Colour, shape of the dot, message of the state of an instance."""
    if best.is_silent:
        return "err", "mb-square", "fleet.down"
    if best.state is State.UNREADY:
        return "warn", "mb-ring", "fleet.unready"
    if best.note:
        return "warn", "", "fleet.noted"
    if best.state is State.STANDING_BY:
        return "t3", "mb-ring", "fleet.standing_by"
    return "ok", "", ""


_BACKLOG = 100


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
    def is_abandoned(self) -> bool:
        """True if messages wait that nobody consumes."""
        return self.ready > 0 and not self.consumers

    @property
    def severity(self) -> int:
        """Sort key: problems first."""
        return 0 if self.dead or self.is_abandoned else 1 if self.ready > _BACKLOG else 2


def queues_of(states: Sequence[QueueState], depths: Mapping[str, Sequence[int]]) -> list[QueueRow]:
    """Queues with consumers; dead letters are counted at the first queue of their service."""
    dead = {state.name.removesuffix(DEAD_SUFFIX): state.depth for state in states if state.name.endswith(DEAD_SUFFIX)}
    rows = [
        QueueRow(s.name, s.ready, s.unacked, s.consumers, dead.pop(s.name, 0), tuple(depths.get(s.name, ())))
        for s in states
        if not s.name.endswith(DEAD_SUFFIX)
    ]
    # A service that only hears events has no queue of the plain name.
    orphaned = [QueueRow(f"{name}{DEAD_SUFFIX}", 0, 0, 0, count, ()) for name, count in dead.items() if count]
    return sorted(rows + orphaned, key=lambda row: (row.severity, row.name))


class QueueTable:
    """A table; cards on a phone."""

    def __init__(self, i18n: Localizer, place: Element) -> None:
        self._queues: list[QueueRow] = []
        self._filter = "all"
        with place:
            with head(i18n("fleet.queues")):
                box("mb-grow")
                options = [(key, i18n(f"fleet.queues_{key}")) for key in ("all", "waiting", "failing")]
                SegmentedControl(options, "all", self._choose)
            with box("mb-scroll mb-grow"):
                numbers = ("fleet.depth", "fleet.taken", "fleet.consumers", "fleet.dead")
                body = table(i18n, (("fleet.queue", ""), *((key, _RIGHT_ALIGNED) for key in numbers)))
                self._rows: Rows[QueueRow] = Rows(body, lambda _queue: _QueueRowView(i18n))

    def show(self, queues: list[QueueRow]) -> None:
        self._queues = queues
        self._rows.show((queue.name, queue) for queue in queues if self._fits(queue))

    def _fits(self, queue: QueueRow) -> bool:
        if self._filter == "waiting":
            return bool(queue.ready)
        return queue.severity == 0 if self._filter == "failing" else True

    def _choose(self, chosen: str) -> None:
        self._filter = chosen
        self.show(self._queues)


class _QueueRowView:
    def __init__(self, i18n: Localizer) -> None:
        self._i18n = i18n
        with attributes(box("", "tr"), tabindex="0") as self.element:
            with box("mb-card-title mb-mono mb-ell", "td"):
                self._prefix = text("", "mb-t3")
                self._name = text("")
            self._depth = _CurveCell(i18n, "fleet.depth")
            self._unacked = cell(i18n, "fleet.taken")
            self._consumers = cell(i18n, "fleet.consumers")
            self._dead = cell(i18n, "fleet.dead")

    def show(self, queue: QueueRow) -> None:
        i18n = self._i18n
        attributes(self.element, data_row=queue.name)
        prefix, _, name = queue.name.partition(QUEUE_PREFIX)
        self._prefix.set_text(f"{prefix}{QUEUE_PREFIX}")
        self._name.set_text(name)
        look = "mb-err" if queue.is_abandoned else "mb-warn" if queue.ready > _BACKLOG else ""
        self._depth.show(queue.depths, i18n.number(queue.ready), look or "mb-t3", look)
        self._unacked.set_text(i18n.number(queue.unacked) if queue.unacked else "–")
        self._consumers.set_text(str(queue.consumers))
        self._consumers.classes(replace=f"{_RIGHT_ALIGNED} mb-num {look if queue.is_abandoned else ''}")
        self._dead.set_text(i18n.number(queue.dead) if queue.dead else "–")
        self._dead.classes(replace=f"{_RIGHT_ALIGNED} mb-num {'mb-err mb-medium' if queue.dead else 'mb-t3'}")
