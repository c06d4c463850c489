"""One worker: its instances, its pace, its queues, its last failures, the end of its log."""

import asyncio
import re
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from bus_schema.timeline import GetTimeline, TimelineEvent
from gateway.activity import ServiceActivity
from gateway.backend import QUEUE_PREFIX, Backend
from gateway.display_names import DisplayNames
from gateway.ui.components import Drawer, anchor, attributes, box, icon_button, moment, scroller, tag, text
from gateway.ui.fleet.tables import QueueRow, ServiceRow, look_of
from gateway.ui.i18n import Localizer
from gateway.ui.timeline.marks import name_of, summary_of
from mindbus.errors import BusUnavailable, ReplyError

_FAILURES: Final = 200
_FAILURES_WITHIN_S: Final = 2.0
_SHOWN: Final = 5
_LOG_LINES: Final = 20
# Of a log as much is read as may hold so many lines of one worker among others.
_LOG_BYTES: Final = 256_000


async def failures_of(backend: Backend, service: str) -> list[TimelineEvent] | None:
    """The latest failures that a service has told of; None while the timeline does not answer."""
    try:
        async with asyncio.timeout(_FAILURES_WITHIN_S):
            page = await backend.query(GetTimeline(failures_only=True, newest_first=True, limit=_FAILURES))
    except (TimeoutError, ReplyError, BusUnavailable):
        return None
    return [event for event in page.items if event.envelope.service == service][:_SHOWN]


def log_tail(data_dir: Path, service: str) -> list[str]:
    """The last lines of the logs of this machine's fleet that name a service, as far as there are some here."""
    lines: deque[str] = deque(maxlen=_LOG_LINES)
    for path in sorted((data_dir / "logs").glob("*.log")):
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - _LOG_BYTES))
            whole = path.stem == service
            text_of_log = log.read().decode("utf-8", errors="replace")
            lines.extend(_compact(line) for line in text_of_log.splitlines() if whole or service in line)
    return list(lines)


def _compact(line: str) -> str:
    """A line without the date and the spaces that align it."""
    return re.sub(r" {2,}", " ", re.sub(r"^\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d)\.\d+Z", r"\1", line))


class WorkerDrawer(Drawer):
    """Beside the tables; the fleet screen shows it anew with what it has learned."""

    def __init__(self, i18n: Localizer, names: DisplayNames, place: Any, close: Callable[[], Any]) -> None:
        super().__init__(place)
        self.i18n, self._names, self._close = i18n, names, close

    def show(
        self,
        worker: ServiceRow,
        queues: Sequence[QueueRow],
        failures: Sequence[TimelineEvent] | None,
        log: Sequence[str],
    ) -> None:
        with self.open(worker.service):
            with box("mb-head mb-drawer-head"):
                text(worker.service, "mb-grow mb-ell", "h2")
                icon_button("close", self.i18n("close"), self._close)
            with scroller("mb-grow"):
                self._instances(worker)
                self._pace(worker.pace, queues)
                self._failures(worker.service, failures)
                self._log(log)

    def _part(self, key: str) -> Any:
        part = attributes(box("mb-drawer-part", "section"), aria_label=self.i18n(key))
        with part:
            text(self.i18n(key), "mb-meta mb-medium", "h3")
        return part

    def _instances(self, worker: ServiceRow) -> None:
        i18n, now = self.i18n, datetime.now(UTC)
        with self._part("fleet.instances"):
            for one in worker.seen:
                colour, shape, state = look_of(one)
                silent_s = max((now - one.at).total_seconds(), 0)
                with box("mb-line-x"):
                    box(f"mb-dot {shape} mb-{colour}", "i")
                    text(one.instance, "mb-mono mb-ell")
                    text(one.version, "mb-meta")
                    box("mb-grow")
                    if state:
                        tag(i18n(state, time=i18n.span(silent_s)), colour)
                    text(i18n("fleet.beat", time=i18n.span(silent_s)), "mb-meta mb-num")
                if one.note:
                    text(one.note, f"mb-{colour}")

    def _pace(self, pace: ServiceActivity, queues: Sequence[QueueRow]) -> None:
        i18n = self.i18n
        times = {"p50": pace.p50_s, "p99": pace.p99_s}
        with self._part("fleet.work"), box("mb-facts"):
            text(i18n("fleet.says"))
            text(i18n.number(pace.rates[-1] if pace.rates else 0, 1), "mb-num")
            for key, took in times.items():
                text(i18n(key))
                text("–" if took is None else i18n.seconds(took), "mb-num")
            for queue in queues:
                text(queue.name.removeprefix(QUEUE_PREFIX), "mb-mono mb-ell")
                numbers = (queue.ready, queue.unacked, queue.dead)
                text(i18n("fleet.queue_numbers", **dict(zip(("n", "taken", "dead"), numbers, strict=True))), "mb-num")

    def _failures(self, service: str, failures: Sequence[TimelineEvent] | None) -> None:
        i18n, now = self.i18n, datetime.now(UTC)
        with self._part("fleet.failures"):
            if not failures:
                text(i18n("fleet.failures_unknown" if failures is None else "fleet.no_failures"), "mb-meta")
            for event in failures or ():
                target = f"/timeline?{urlencode({'event': event.event_id})}"
                with anchor(target, classes="mb-stack"):
                    with box("mb-line-x"):
                        text(name_of(event.envelope), "mb-err mb-medium mb-ell mb-grow")
                        moment(i18n, event.time, f"{i18n.date(event.time, now)}, {i18n.time(event.time)}")
                    text(summary_of(i18n, self._names, event.envelope), "mb-meta mb-clamp")

    def _log(self, lines: Sequence[str]) -> None:
        with self._part("fleet.log"):
            if lines:
                text("\n".join(lines), "mb-json mb-log", "pre")
            else:
                text(self.i18n("fleet.no_log"), "mb-meta")
