"""Facets of the search results, to be selected as conditions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from nicegui.element import Element

from gateway.api.memory import Facets, FacetValue
from gateway.ui.components import attributes, box, clickable, refill, text
from gateway.ui.i18n import Localizer
from gateway.ui.memory.search_form import MemorySearch
from mindbus.sdk.kem_filters import format_value

_MAX_KEYS, _MAX_VALUES = 12, 8
# Ids, times are longer.
_SHORT = 20


@dataclass(frozen=True)
class _Choice:
    value: str
    count: int
    is_on: bool


class FacetPanel:
    """A list of values for each key and for the content type."""

    def __init__(self, i18n: Localizer, place: Element, ask: Callable[[MemorySearch], Any]) -> None:
        self.i18n, self._place, self._ask = i18n, place, ask

    def show(self, facets: Facets, question: MemorySearch) -> None:
        i18n = self.i18n
        with refill(self._place):
            types = _choices(facets.content_types, {question.content_type} - {None})
            self._list(i18n("memory.content_type"), types, lambda value: self._ask(question.of_type(value)))
            picked = {key for key, _ in question.picks}
            keys = picked | {key for key in facets.metadata if _tells_apart(facets, key)}
            for key in sorted(keys, key=lambda key: (key not in picked, key))[:_MAX_KEYS]:
                on = {value for name, value in question.picks if name == key}
                choices = _choices(facets.metadata.get(key, []), on)
                self._list(key, choices, partial(self._toggle, question, key))
            if facets.counted:
                note = "memory.counted_all" if facets.is_all else "memory.counted"
                text(i18n.count(note, facets.counted), "mb-cap mb-t3 mb-facets-note", "p")

    def _toggle(self, question: MemorySearch, key: str, value: str) -> Any:
        return self._ask(question.toggled(key, value))

    def _list(self, title: str, choices: Sequence[_Choice], on_click: Callable[[str], Any]) -> None:
        if not choices:
            return
        with attributes(box("mb-facet", "section"), aria_label=title):
            text(title, "mb-label mb-ell", "h2")
            for choice in choices[:_MAX_VALUES]:
                with clickable("mb-facet-row", lambda choice=choice: on_click(choice.value), aria_pressed=choice.is_on):
                    box("mb-facet-box", "i")
                    attributes(text(choice.value or "«»", "mb-ell mb-grow"), title=choice.value)
                    text(self.i18n.number(choice.count), "mb-num mb-t3")
            if len(choices) > _MAX_VALUES:
                text(self.i18n.count("memory.more_values", len(choices) - _MAX_VALUES), "mb-cap mb-t3")


def _choices(values: Sequence[FacetValue], on: set[str] | set[str | None]) -> list[_Choice]:
    """Values with counts; selected ones are included even if none has them."""
    counts = {format_value(value.value): value.count for value in values}
    counts |= dict.fromkeys(sorted(set(map(str, on)) - counts.keys()), 0)
    choices = [_Choice(value, number, value in on) for value, number in counts.items()]
    return sorted(choices, key=lambda choice: not choice.is_on)


def _tells_apart(facets: Facets, key: str) -> bool:
    """True for a key that distinguishes units: not one value for all, nor a long value of each."""
    values = facets.metadata.get(key, [])
    if any(value.count > 1 for value in values):
        return [value.count for value in values] != [facets.counted]
    is_short = all(len(format_value(value.value)) <= _SHORT for value in values)
    return is_short and 1 < facets.counted <= _MAX_VALUES
