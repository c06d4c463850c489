"""The workers: who is there, how busy they are, who needs somebody."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from bus_schema.fleet import State
from gateway.feed import Seen
from gateway.ui.paces import Pace
from gateway.ui.parts import attributes, box, search, show_if, text
from gateway.ui.rows import Rows
from gateway.ui.sparkline import sparkline
from gateway.ui.words import Words

_KEPT = 60


@dataclass(frozen=True)
class WorkerSeen:
    """One service with its instances."""

    service: str
    seen: tuple[Seen, ...]
    pace: Pace

    @property
    def best(self) -> Seen:
        """The instance that does the work."""
        return min(self.seen, key=lambda one: (one.is_silent, one.state is State.UNREADY, one.state is not State.READY))

    @property
    def trouble(self) -> int:
        """Trouble sorts first."""
        best = self.best
        return 0 if best.is_silent else 1 if best.state is State.UNREADY else 2


def workers_of(seen: Sequence[Seen], paces: dict[str, Pace]) -> list[WorkerSeen]:
    """By service; an instance that is silent is shown only where nobody has taken its place."""
    by_service: dict[str, list[Seen]] = {}
    for one in seen:
        by_service.setdefault(one.service, []).append(one)
    found = []
    for service, instances in by_service.items():
        alive = [one for one in instances if not one.is_silent] or instances[-1:]
        found.append(WorkerSeen(service, tuple(alive), paces.get(service, Pace())))
    return sorted(found, key=lambda worker: (worker.trouble, worker.service))


class Workers:
    """Their table; on a phone, cards."""

    def __init__(self, words: Words, place: Element, wanted: str = "") -> None:
        self.words = words
        self._wanted = wanted
        self._workers: list[WorkerSeen] = []
        with place:
            with box("mb-head"):
                text(words("fleet.workers"), "", "h2")
                box("mb-grow")
                search(words("filter"), self._find, wanted)
            with box("mb-scroll mb-grow"), box("mb-table mb-cards", "table"):
                with box("", "thead"), box("", "tr"):
                    for key, classes in _COLUMNS:
                        text(words(key), classes, "th")
                self._rows: Rows[WorkerSeen] = Rows(box("", "tbody"), lambda _worker: _Row(words))

    def show(self, workers: list[WorkerSeen]) -> None:
        """As they are now."""
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


class _Row:
    def __init__(self, words: Words) -> None:
        self._words = words
        with attributes(box("", "tr"), tabindex="0") as self.element:
            with box("mb-card-title", "td"), box("mb-line-x"):
                self._dot = box("mb-dot", "i")
                self._name = text("", "mb-medium mb-ell")
                self._many = text("", "mb-meta")
                self._state = text("", "mb-tag mb-tint mb-hidden")
            self._version = self._cell("fleet.version", "mb-t3 mb-not-phone")
            self._seen = self._cell("fleet.seen", "mb-right mb-num mb-t2 mb-not-phone")
            with attributes(box("mb-fit mb-right", "td"), data_label=words("fleet.says")), box("mb-line-x mb-end-x"):
                self._spark = ui.html("", sanitize=False).classes("mb-spark")
                self._rate = text("", "mb-num mb-w40")
            self._p50 = self._cell("p50", "mb-right mb-num")
            self._p99 = self._cell("p99", "mb-right mb-num")

    def show(self, worker: WorkerSeen) -> None:
        words, best = self._words, worker.best
        colour, shape, state = _look_of(best)
        attributes(self.element, data_row=worker.service)
        self._dot.classes(replace=f"mb-dot {shape} mb-{colour}")
        self._name.set_text(worker.service)
        self._many.set_text(f"×{len(worker.seen)}" if len(worker.seen) > 1 else "")
        silent_s = (datetime.now(UTC) - best.at).total_seconds()
        said = words(state, time=words.span(silent_s)) if state else ""
        self._state.set_text(said)
        show_if(self._state, said)
        self._state.style(f"--c: var(--{colour})")
        self._version.set_text(best.version)
        self._seen.set_text(words.span(max(silent_s, 0)))
        self._spark.set_content(sparkline(worker.pace.rates[-_KEPT:] or (0, 0)))
        self._spark.classes(replace=f"mb-spark {'' if any(worker.pace.rates) else 'mb-t3 mb-idle'}")
        self._rate.set_text(words.number(worker.pace.rates[-1] if worker.pace.rates else 0, 1))
        for cell, took in ((self._p50, worker.pace.p50_s), (self._p99, worker.pace.p99_s)):
            cell.set_text("–" if took is None else words.seconds(took))

    def _cell(self, key: str, classes: str) -> TextElement:
        made = text("", f"mb-fit {classes}", "td")
        attributes(made, data_label=self._words(key))
        return made


def _look_of(best: Seen) -> tuple[str, str, str]:
    if best.is_silent:
        return "err", "mb-square", "fleet.down"
    if best.state is State.UNREADY:
        return "warn", "mb-ring", "fleet.unready"
    if best.state is State.STANDING_BY:
        return "t3", "mb-ring", "fleet.standing_by"
    return "ok", "", ""
