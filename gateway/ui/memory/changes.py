"""The list of changes of shared memory, the latest first."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from nicegui.element import Element

from bus_schema.kem_match import facets
from gateway.memory_changes import KemChange
from gateway.ui.components import Rows, attributes, box, identifier, moment, show_if, tag, text
from gateway.ui.i18n import Localizer
from gateway.ui.memory.highlights import excerpt, show_text
from gateway.ui.memory.results import content_of
from mindbus.sdk.kem_filters import written

_KEPT: Final = 200
_LENGTH: Final = 200
_COLOURS: Final = {"deleted": "err", "evicted": "t3", "updated": "kem"}


@dataclass(frozen=True)
class _Numbered:
    number: int
    change: KemChange


class ChangeList:
    """Changes since the page was opened."""

    def __init__(self, i18n: Localizer, place: Element, choose: Callable[[str], Any]) -> None:
        self.count = 0
        self._kept: deque[_Numbered] = deque(maxlen=_KEPT)
        with place:
            self._quiet = text(i18n("memory.quiet"), "mb-meta mb-quiet-note", "p")
            made = attributes(box("mb-hits"), aria_live="polite")
        self._rows: Rows[_Numbered] = Rows(made, lambda one: _Row(i18n, one.change, choose))

    def add(self, changes: list[KemChange]) -> None:
        for change in changes:
            self.count += 1
            self._kept.appendleft(_Numbered(self.count, change))
        show_if(self._quiet, not self._kept)
        self._rows.show((one.number, one) for one in self._kept)


class _Row:
    def __init__(self, i18n: Localizer, change: KemChange, choose: Callable[[str], Any]) -> None:
        self.element = attributes(box("mb-hit mb-change mb-new"), data_change=change.event, data_kem=change.kem_id)
        with self.element:
            with box("mb-hit-foot"):
                tag(i18n(f"memory.event.{change.event}"), _COLOURS.get(change.event, "ok"), dot=True)
                identifier(i18n, change.kem_id)
                text(change.kem.owner if change.kem else "", "mb-meta mb-ell")
                box("mb-grow")
                moment(i18n, change.at, i18n.time(change.at))
            said = content_of(change.kem, i18n) if change.kem is not None else ""
            about = said or " ".join(f"{key}={written(value)}" for key, value in facets(change.metadata))
            if about:
                with attributes(box("mb-hit-text mb-t2", "button"), type="button", data_row=change.kem_id) as made:
                    show_text(excerpt(about, (), _LENGTH))
                made.on("click", lambda: choose(change.kem_id))

    def show(self, _one: _Numbered) -> None:
        """A change does not change."""
