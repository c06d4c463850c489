"""Whether the timeline follows what happens, or stays while somebody reads."""

from collections.abc import Callable, Sequence
from typing import Any

from gateway.ui.frame import Frame
from gateway.ui.parts import attributes, box, text
from gateway.ui.timeline.marks import Mark

_MOST_WAITING = 5000


class Live:
    """The button; while it is off, what comes waits and is counted."""

    def __init__(self, frame: Frame, on_toggle: Callable[[], Any]) -> None:
        self.frame = frame
        self.is_on = frame.query.get("live") != "0"
        self._waiting: list[Mark] = []
        self._button = attributes(box("mb-live", "button"), type="button")
        self._button.on("click", on_toggle)
        with self._button:
            box("mb-dot", "i")
            self._said = text("")
        self._tell()

    def keep(self, fresh: Sequence[Mark]) -> None:
        """For later."""
        self._waiting = [*self._waiting, *fresh][-_MOST_WAITING:]
        self._tell()

    def toggle(self) -> list[Mark]:
        """What has waited, if it is on from now on."""
        self.is_on = not self.is_on
        waited: list[Mark] = []
        if self.is_on:
            waited, self._waiting = self._waiting, []
        self.frame.remember(live=None if self.is_on else "0")
        self._tell()
        return waited

    def _tell(self) -> None:
        words = self.frame.words
        said = words("live") if self.is_on else words("paused")
        if self._waiting:
            said = words("paused_with", n=words.number(len(self._waiting)))
        self._said.set_text(said)
        attributes(self._button, aria_pressed=str(self.is_on).lower()).update()
