"""The fleet screen: key figures, workers, queues, dead letters."""

import asyncio
from functools import partial

from bus_schema.fleet import State
from gateway.activity import count_dead
from gateway.backend import QUEUE_PREFIX
from gateway.ui.components import Kpi, attributes, box, toggle
from gateway.ui.fleet.dead_letters import DeadLetterList
from gateway.ui.fleet.tables import QueueTable, WorkerTable, queues_of, workers_of
from gateway.ui.fleet.worker_drawer import WorkerDrawer, failures_of, log_tail
from gateway.ui.page_session import PageSession
from gateway.ui.sections import ScreenSection

_LOOK_EVERY_S = 2.0


class FleetScreen:
    """Rows with problems come first."""

    def __init__(self, session: PageSession) -> None:
        self.session = session
        self._shown_worker: object = None
        i18n = session.i18n
        with box("mb-fleet mb-scroll") as self._place:
            with box("mb-panel mb-kpis"):
                self._messages = Kpi(i18n("fleet.said"), "mb-kpi-spark")
                keys = ("waiting", "retrying", "dead_letters", "workers")
                self._waiting, self._retrying, self._dead, self._ready = (Kpi(i18n(f"fleet.{key}")) for key in keys)
            workers, queues = box("mb-panel mb-fleet-workers", "section"), box("mb-panel mb-fleet-queues", "section")
            self.workers = WorkerTable(i18n, workers, self.choose, session.query.get("find", ""))
            self.queues = QueueTable(i18n, queues)
            letters = box("mb-panel mb-fleet-dead", "section")
            self.letters = DeadLetterList(session, letters, self.refresh_letters)
            drawer = attributes(box("mb-drawer mb-sheet mb-over mb-hidden", "aside"))
            self.drawer = WorkerDrawer(i18n, session.backend.names, drawer, lambda: self.choose(None))
            self._chosen = session.query.get("worker")
            self._queues_part, self._letters_part = ScreenSection(i18n, queues), ScreenSection(i18n, letters)

    @classmethod
    async def draw(cls, session: PageSession) -> None:
        screen = cls(session)
        session.every(1.0, screen.refresh)
        session.every(_LOOK_EVERY_S, screen.refresh_letters)
        session.every(_LOOK_EVERY_S, screen.refresh_worker)
        session.on_keys({"r": screen.replay_row, "Escape": lambda: screen.choose(None)})

    async def choose(self, service: str | None) -> None:
        """Open a worker, or close what is open."""
        self._chosen = service
        self.session.remember(worker=service)
        if service is None:
            self.drawer.close()
            self._shown_worker = None
        await self.refresh_worker()

    async def refresh_worker(self) -> None:
        chosen, backend, activity = self._chosen, self.session.backend, self.session.activity
        workers = workers_of(backend.feed.workers, activity.services())
        worker = next((one for one in workers if one.service == chosen), None)
        if worker is None:
            return
        failures = await failures_of(backend, worker.service)
        log = await asyncio.to_thread(log_tail, backend.settings.data_dir, worker.service)
        own = (QUEUE_PREFIX + worker.service, f"{QUEUE_PREFIX}{worker.service}.")
        states = [state for state in activity.queues or () if state.name == own[0] or state.name.startswith(own[1])]
        # It may have been closed meanwhile; what is unchanged is not drawn again under the reader.
        shown = worker.service, failures and tuple(failures), tuple(log), worker.seen
        if self._chosen == worker.service and shown != self._shown_worker:
            self._shown_worker = shown
            self.drawer.show(worker, queues_of(states, activity.depths), failures, log)

    def refresh(self) -> None:
        activity, i18n = self.session.activity, self.session.i18n
        workers = workers_of(self.session.backend.feed.workers, activity.services())
        self.workers.show(workers)
        ready = sum(worker.best.state is not State.UNREADY and not worker.best.is_silent for worker in workers)
        self._ready.show(str(ready), i18n("fleet.of_ready", n=len(workers)))
        self._messages.show(i18n.number(activity.health.per_second, 1), i18n("unit.per_second"), list(activity.rates))
        if activity.queues is None:
            return
        queues = queues_of([queue for queue in activity.queues if queue.name.startswith(QUEUE_PREFIX)], activity.depths)
        self.queues.show(queues)
        self.session.subtitle(
            f"{i18n.count('fleet.count_workers', len(workers))} · {i18n.count('fleet.count_queues', len(queues))}"
        )
        fullest = max(queues, key=lambda queue: queue.ready, default=None)
        waiting = sum(queue.ready for queue in queues)
        self._waiting.show(i18n.number(waiting), fullest.name.removeprefix(QUEUE_PREFIX) if fullest and waiting else "")
        retrying = sum(queue.depth for queue in activity.queues if queue.name.startswith("mb.retry"))
        self._retrying.show(i18n.number(retrying), look="mb-warn" if retrying else "")
        dead = count_dead(activity.queues)
        self._dead.show(i18n.number(dead), look="mb-err" if dead else "")
        toggle(self._place, "mb-has-dead", is_on=dead)

    async def refresh_letters(self, *, is_acted_on: bool = False) -> None:
        await self._letters_part.attempt(partial(self.letters.refresh, is_acted_on=is_acted_on))

    async def replay_row(self) -> None:
        """Replay the selection, else the focused row."""
        chosen = self.letters.selected or {key for key in self.letters.keys if key[1] == self.session.row}
        if chosen:
            await self.letters.replay(set(chosen))
