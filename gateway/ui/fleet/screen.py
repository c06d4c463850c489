"""The fleet screen: key figures, workers, queues, dead letters."""

from functools import partial

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from bus_schema.fleet import State
from gateway.ui.components import box, text
from gateway.ui.errors import ScreenSection
from gateway.ui.fleet.dead_letters import DeadLetterList
from gateway.ui.fleet.tables import DEAD, QueueTable, WorkerTable, queues_of, workers_of
from gateway.ui.page_session import PageSession
from gateway.ui.svg import sparkline

_LOOK_EVERY_S = 2.0


class FleetScreen:
    """Rows with problems come first."""

    def __init__(self, session: PageSession) -> None:
        self.session = session
        i18n = session.i18n
        with box("mb-fleet mb-scroll"):
            with box("mb-panel mb-kpis"):
                self._messages = _Number(i18n("fleet.said"), "mb-acc")
                self._waiting = _Number(i18n("fleet.waiting"), "mb-acc")
                self._retrying = _Number(i18n("fleet.retrying"), "mb-warn")
                self._dead = _Number(i18n("fleet.dead_letters"), "mb-err")
                self._ready = _Number(i18n("fleet.workers"), "")
            workers, queues = box("mb-panel mb-fleet-workers", "section"), box("mb-panel mb-fleet-queues", "section")
            self.workers = WorkerTable(i18n, workers, session.query.get("find", ""))
            self.queues = QueueTable(i18n, queues)
            letters = box("mb-panel mb-fleet-dead", "section")
            self.letters = DeadLetterList(session, letters, self.refresh_letters)
            self._queues_part, self._letters_part = ScreenSection(i18n, queues), ScreenSection(i18n, letters)

    @classmethod
    async def draw(cls, session: PageSession) -> None:
        screen = cls(session)
        session.every(1.0, screen.refresh)
        session.every(_LOOK_EVERY_S, screen.refresh_letters)
        session.on_key("r", screen.replay_row)

    def refresh(self) -> None:
        activity, i18n = self.session.activity, self.session.i18n
        workers = workers_of(self.session.backend.feed.workers, activity.services())
        self.workers.show(workers)
        ready = sum(worker.best.state is not State.UNREADY and not worker.best.is_silent for worker in workers)
        self._ready.show(str(ready), i18n("fleet.of_ready", n=len(workers)))
        self._messages.show(i18n.number(activity.health.per_second, 1), i18n("unit.per_second"), list(activity.rates))
        if activity.queues is None:
            return
        queues = queues_of([queue for queue in activity.queues if queue.name.startswith("mb.q.")], activity.depths)
        self.queues.show(queues)
        self.session.subtitle(
            f"{i18n.count('fleet.count_workers', len(workers))} · {i18n.count('fleet.count_queues', len(queues))}"
        )
        fullest = max(queues, key=lambda queue: queue.ready, default=None)
        waiting = sum(queue.ready for queue in queues)
        self._waiting.show(i18n.number(waiting), fullest.name.removeprefix("mb.q.") if fullest and waiting else "")
        retrying = sum(queue.depth for queue in activity.queues if queue.name.startswith("mb.retry"))
        self._retrying.show(i18n.number(retrying), "", is_quiet=not retrying)
        dead = sum(queue.depth for queue in activity.queues if queue.name.endswith(DEAD))
        self._dead.show(i18n.number(dead), "", is_quiet=not dead)

    async def refresh_letters(self, *, is_acted_on: bool = False) -> None:
        await self._letters_part.attempt(partial(self.letters.refresh, is_acted_on=is_acted_on))

    async def replay_row(self, row: str | None) -> None:
        """Replay the selection, else the focused row."""
        chosen = self.letters.selected or {key for key in self.letters.keys if key[1] == row}
        if chosen:
            await self.letters.replay(set(chosen))


class _Number:
    """A figure with a sparkline."""

    def __init__(self, label: str, colour: str) -> None:
        self._colour = colour
        with box("mb-kpi"):
            with box("mb-stack"):
                text(label, "mb-label")
                with box("mb-kpi-line"):
                    self._value: TextElement = text("–", "mb-kpi-value mb-num")
                    self._note: TextElement = text("", "mb-meta mb-ell")
            self._spark: Element = ui.html("", sanitize=False).classes("mb-spark mb-kpi-spark mb-hidden")

    def show(self, value: str, note: str, curve: list[float] | None = None, *, is_quiet: bool = False) -> None:
        self._value.set_text(value)
        self._note.set_text(note)
        is_alarm = not is_quiet and self._colour in ("mb-warn", "mb-err")
        self._value.classes(replace=f"mb-kpi-value mb-num {self._colour if is_alarm else ''}")
        if curve:
            self._spark.set_content(sparkline(curve, 72, 24))  # type: ignore[attr-defined]  # it is an Html
            self._spark.classes(remove="mb-hidden")
