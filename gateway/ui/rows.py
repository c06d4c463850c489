"""Tables and keyed rows that are updated in place."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from gateway.ui.components import attributes, box, refill, text
from gateway.ui.i18n import Localizer

ItemT = TypeVar("ItemT")
ContraT = TypeVar("ContraT", contravariant=True)


class Row(Protocol[ContraT]):
    """A row of Rows."""

    element: Element

    def show(self, item: ContraT) -> None:
        """Update the row."""


class Rows(Generic[ItemT]):
    """Keyed rows that are built, updated, moved and removed in place, so that focus and scrolling stay."""

    def __init__(self, parent: Element, build: Callable[[ItemT], Row[ItemT]]) -> None:
        self.parent, self._build = parent, build
        self._rows: dict[Hashable, Row[ItemT]] = {}
        self._shown: dict[Hashable, ItemT] = {}

    def show(self, items: Iterable[tuple[Hashable, ItemT]]) -> None:
        by_key = dict(items)
        for key in [key for key in self._rows if key not in by_key]:
            self._rows.pop(key).element.delete()
            self._shown.pop(key)
        for place, (key, item) in enumerate(by_key.items()):
            self._place(key, item, place)

    def _place(self, key: Hashable, item: ItemT, place: int) -> None:
        if key not in self._rows:
            with self.parent:
                self._rows[key] = self._build(item)
        if self._shown.get(key) != item:
            self._rows[key].show(item)
            self._shown[key] = item
        element = self._rows[key].element
        children = self.parent.default_slot.children
        if place >= len(children) or children[place] is not element:
            element.move(self.parent, target_index=place)


class RedrawnRow(Generic[ItemT]):
    """A row whose content is drawn anew whenever its item changes."""

    def __init__(self, element: Element, draw: Callable[[Element, ItemT], Any]) -> None:
        self.element, self._draw = element, draw

    def show(self, item: ItemT) -> None:
        with refill(self.element):
            self._draw(self.element, item)


def table(i18n: Localizer, columns: Sequence[tuple[str, str]], classes: str = "mb-cards") -> Element:
    """A table with (message, classes) as the heads of its columns; returns its body."""
    with box(f"mb-table {classes}", "table"):
        with box("", "thead"), box("", "tr"):
            for key, look in columns:
                text(i18n(key), look, "th")
        return box("", "tbody")


def cell(i18n: Localizer, key: str, classes: str = "mb-right mb-num", content: str = "") -> TextElement:
    """A narrow cell with the head of its column, which a phone shows beside it."""
    element = text(content, f"mb-fit {classes}", "td")
    attributes(element, data_label=i18n(key))
    return element
