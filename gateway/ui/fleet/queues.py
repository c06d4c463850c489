"""The queues: how full, who takes from them, what has died."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from gateway.ui.parts import Segments, attributes, box, text
from gateway.ui.rows import Rows
from gateway.ui.sparkline import sparkline
from gateway.ui.words import Words
from mindbus.management import QueueState

DEAD = ".dead"
_MANY = 100


@dataclass(frozen=True)
class QueueSeen:
    """A queue of a service, beside it how many of that service's messages are dead."""

    name: str
    ready: int
    unacked: int
    consumers: int
    dead: int
    depths: tuple[int, ...]

    @property
    def trouble(self) -> int:
        """Trouble sorts first."""
        return 0 if self.dead or (self.ready and not self.consumers) else 1 if self.ready > _MANY else 2


def queues_of(states: Sequence[QueueState], depths: Mapping[str, Sequence[int]]) -> list[QueueSeen]:
    """Queues that somebody takes from; the dead stand beside the first queue of their service."""
    dead = {state.name.removesuffix(DEAD): state.depth for state in states if state.name.endswith(DEAD)}
    found = [
        QueueSeen(
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
    orphaned = [QueueSeen(f"{name}{DEAD}", 0, 0, 0, count, ()) for name, count in dead.items() if count]
    return sorted(found + orphaned, key=lambda queue: (queue.trouble, queue.name))


class Queues:
    """Their table; on a phone, cards."""

    def __init__(self, words: Words, place: Element) -> None:
        self.words = words
        self._queues: list[QueueSeen] = []
        self._wanted = "all"
        with place:
            with box("mb-head"):
                text(words("fleet.queues"), "", "h2")
                box("mb-grow")
                options = [(key, words(f"fleet.queues_{key}")) for key in ("all", "waiting", "failing")]
                Segments(options, "all", self._choose)
            with box("mb-scroll mb-grow"), box("mb-table mb-cards", "table"):
                with box("", "thead"), box("", "tr"):
                    text(words("fleet.queue"), "", "th")
                    for key in ("fleet.depth", "fleet.taken", "fleet.consumers", "fleet.dead"):
                        text(words(key), "mb-fit mb-right", "th")
                self._rows: Rows[QueueSeen] = Rows(box("", "tbody"), lambda _queue: _Row(words))

    def show(self, queues: list[QueueSeen]) -> None:
        """As they are now."""
        self._queues = queues
        self._rows.show((queue.name, queue) for queue in queues if self._fits(queue))

    def _fits(self, queue: QueueSeen) -> bool:
        if self._wanted == "waiting":
            return bool(queue.ready)
        return queue.trouble == 0 if self._wanted == "failing" else True

    def _choose(self, wanted: str) -> None:
        self._wanted = wanted
        self.show(self._queues)


class _Row:
    def __init__(self, words: Words) -> None:
        self._words = words
        with attributes(box("", "tr"), tabindex="0") as self.element:
            with box("mb-card-title mb-mono mb-ell", "td"):
                self._prefix = text("", "mb-t3")
                self._name = text("")
            with attributes(box("mb-fit mb-right", "td"), data_label=words("fleet.depth")), box("mb-line-x mb-end-x"):
                self._spark = ui.html("", sanitize=False).classes("mb-spark")
                self._depth = text("", "mb-num mb-w40")
            self._unacked = self._cell("fleet.taken")
            self._consumers = self._cell("fleet.consumers")
            self._dead = self._cell("fleet.dead")

    def show(self, queue: QueueSeen) -> None:
        attributes(self.element, data_row=queue.name)
        prefix, _, name = queue.name.partition("mb.q.")
        self._prefix.set_text(f"{prefix}mb.q.")
        self._name.set_text(name)
        look = "err" if queue.ready and not queue.consumers else "warn" if queue.ready > _MANY else ""
        self._spark.set_content(sparkline([float(depth) for depth in queue.depths] or [0, 0]))
        self._spark.classes(
            replace=f"mb-spark {f'mb-{look}' if look else 'mb-t3'} {'' if any(queue.depths) else 'mb-idle'}"
        )
        self._depth.set_text(self._words.number(queue.ready))
        self._depth.classes(replace=f"mb-num mb-w40 {f'mb-{look}' if look else ''}")
        self._unacked.set_text(self._words.number(queue.unacked) if queue.unacked else "–")
        self._consumers.set_text(str(queue.consumers))
        self._consumers.classes(replace=f"mb-fit mb-right mb-num {'mb-err' if look == 'err' else ''}")
        self._dead.set_text(self._words.number(queue.dead) if queue.dead else "–")
        self._dead.classes(replace=f"mb-fit mb-right mb-num {'mb-err mb-medium' if queue.dead else 'mb-t3'}")

    def _cell(self, key: str) -> TextElement:
        made = text("", "mb-fit mb-right mb-num", "td")
        attributes(made, data_label=self._words(key))
        return made
