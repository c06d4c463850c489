"""A list on the screen that changes as little as its content does, so that focus and scrolling stay."""

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, Protocol, TypeVar

from nicegui.element import Element

ItemT = TypeVar("ItemT")
ContraT = TypeVar("ContraT", contravariant=True)


class Row(Protocol[ContraT]):
    """One thing of a list on the screen."""

    element: Element

    def show(self, item: ContraT) -> None:
        """Say what has changed."""
        ...


class Rows(Generic[ItemT]):
    """Builds what is new, updates what is there, moves, takes away; a row is known by its key."""

    def __init__(self, parent: Element, build: Callable[[ItemT], Row[ItemT]]) -> None:
        self.parent, self._build = parent, build
        self._rows: dict[Hashable, Row[ItemT]] = {}
        self._shown: dict[Hashable, ItemT] = {}

    def __getitem__(self, key: Hashable) -> Row[ItemT]:
        return self._rows[key]

    def __contains__(self, key: Hashable) -> bool:
        return key in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def show(self, items: Iterable[tuple[Hashable, ItemT]]) -> None:
        """Make the list be these, in this order."""
        wanted = dict(items)
        for key in [key for key in self._rows if key not in wanted]:
            self._rows.pop(key).element.delete()
            self._shown.pop(key)
        for place, (key, item) in enumerate(wanted.items()):
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
