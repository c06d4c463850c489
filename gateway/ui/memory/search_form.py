"""The search of the memory screen, kept in the address, with its form and the facets of its results as conditions."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from nicegui.element import Element
from pydantic import ValidationError

from bus_schema.envelope import explain
from bus_schema.identities import is_user_id
from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery
from gateway.api.memory import Facets, FacetValue
from gateway.ui.components import attributes, box, button, clickable, field, refill, search, show_if, text, update
from gateway.ui.i18n import Localizer
from mindbus.sdk.kem_filters import (
    Both,
    Either,
    FieldEquals,
    Filter,
    MalformedFilter,
    UnsupportedQuery,
    condition,
    format_value,
    parse_filter,
    query_from,
)

Picks = frozenset[tuple[str, str]]
_METADATA = "metadata."


@dataclass(frozen=True)
class MemorySearch:
    """Text, filter and selected facets; `user` is whose access rights apply."""

    text: str = ""
    filter: str = ""
    picks: Picks = frozenset()
    content_type: str | None = None
    user: str | None = None

    @classmethod
    def of_address(cls, query: Mapping[str, str]) -> Self:
        """The search of a link; errors of its filter are reported by the form."""
        filter_text, picked = query.get("filter", ""), query.get("pick", "")
        try:
            picks = frozenset(_picks(parse_filter(picked)))
        except MalformedFilter:
            filter_text, picks = picked, frozenset()
        user = query.get("user", "")
        return cls(query.get("q", ""), filter_text, picks, query.get("type"), user if is_user_id(user) else None)

    def in_address(self) -> dict[str, str | None]:
        return {
            "q": self.text or None,
            "filter": self.filter or None,
            "pick": " AND ".join(self._conditions()) or None,
            "type": self.content_type,
            "user": self.user,
        }

    @property
    def is_open(self) -> bool:
        return not (self.text.strip() or self.filter.strip() or self.picks or self.content_type)

    def query(self) -> KemQuery:
        """Raises MalformedFilter with the position in the typed filter, UnsupportedQuery, ValidationError."""
        text = self.text.strip()
        typed = query_from(self.filter, text_query=text or None)
        if not self.picks:
            return typed
        parts = ([f"({self.filter})"] if self.filter.strip() else []) + list(self._conditions())
        return query_from(" AND ".join(parts), text_query=text or None)

    def toggled(self, key: str, value: str) -> "MemorySearch":
        return replace(self, picks=self.picks ^ {(key, value)})

    def of_type(self, content_type: str) -> "MemorySearch":
        """With the content type selected or deselected; it is filtered on the screen, not by memory."""
        return replace(self, content_type=None if content_type == self.content_type else content_type)

    def shows(self, kem: Kem) -> bool:
        return self.content_type in (None, kem.content_type)

    def _conditions(self) -> Iterator[str]:
        """A condition for each key, its values joined by OR."""
        for key in sorted({key for key, _ in self.picks}):
            conditions = [condition(key, value) for name, value in sorted(self.picks) if name == key]
            yield conditions[0] if len(conditions) == 1 else f"({' OR '.join(conditions)})"


def _picks(tree: Filter) -> Iterator[tuple[str, str]]:
    match tree:
        case FieldEquals(name=name, value=value) if name.startswith(_METADATA):
            yield name.removeprefix(_METADATA), value
        case Both(parts=parts) | Either(parts=parts):
            for part in parts:
                yield from _picks(part)
        case _:
            pass


_EXAMPLE = "metadata.kind=fact AND (metadata.lang=ru OR metadata.lang=en)"


class SearchForm:
    """The search text above the filter; errors of the filter are shown at their position."""

    def __init__(
        self, i18n: Localizer, place: Element, question: MemorySearch, ask: Callable[[MemorySearch], Any]
    ) -> None:
        self.i18n, self.question, self._ask = i18n, question, ask
        with place, box("mb-question"):
            with box("mb-line-x mb-question-line"):
                line = search(i18n("memory.search"), lambda text: self._change(text=text), question.text)
                line.classes("mb-grow mb-question-text").on("keydown.enter", self.go)
                button(i18n("memory.find"), self.go, "mb-primary")
            label = i18n("memory.filter")
            self._filter = field(
                label, question.filter, lambda text: self._change(filter=text), placeholder=f"{label}: {_EXAMPLE}"
            )
            attributes(self._filter, spellcheck="false").classes("mb-mono mb-question-filter")
            self._filter.on("keydown.enter", self.go)
            with attributes(box("mb-wrong mb-hidden"), role="alert") as self._wrong:
                self._error = text("", "mb-err")
                self._where = text("", "mb-mono mb-where", "pre")

    def query(self) -> KemQuery | None:
        """The query; None if the filter is invalid, which is shown."""
        try:
            query = self.question.query()
        except MalformedFilter as error:
            message = self.i18n("memory.bad_filter", position=error.position, expected=error.expected)
            self._show_error(message, f"{error.text}\n{' ' * (error.position - 1)}^")
        except (UnsupportedQuery, ValidationError) as error:
            self._show_error(explain(error) if isinstance(error, ValidationError) else str(error))
        else:
            self._show_error("")
            return query
        return None

    def go(self) -> Any:
        return self._ask(self.question)

    def _change(self, **fields: str) -> None:
        self.question = replace(self.question, **fields)  # type: ignore[arg-type]  # its text and its filter

    def _show_error(self, message: str, where: str = "") -> None:
        show_if(self._wrong, message)
        self._error.set_text(message)
        self._where.set_text(where)
        show_if(self._where, where)
        update(self._filter, aria_invalid=bool(message))


_MAX_KEYS, _MAX_VALUES = 12, 8
# Ids, times are longer.
_SHORT = 20
# Of no use to narrow a search: the number of a piece of a document.
_PLACES = {"part", "parts"}
_ID = re.compile(r"[a-z]{2,5}_[0-9a-f-]{8,}$")


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
                self._list(i18n.named("facet", key), choices, partial(self._toggle, question, key))
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


def is_id(value: str) -> bool:
    """Whether a value of metadata is an id, which says nothing to a reader."""
    return _ID.match(value) is not None


def _choices(values: Sequence[FacetValue], on: set[str] | set[str | None]) -> list[_Choice]:
    """Values with counts; selected ones are included even if none has them."""
    counts = {format_value(value.value): value.count for value in values}
    counts |= dict.fromkeys(sorted(set(map(str, on)) - counts.keys()), 0)
    choices = [_Choice(value, number, value in on) for value, number in counts.items()]
    return sorted(choices, key=lambda choice: not choice.is_on)


def _tells_apart(facets: Facets, key: str) -> bool:
    """True for a key that distinguishes units: not one value for all, nor a long value of each."""
    values = facets.metadata.get(key, [])
    if key in _PLACES or all(is_id(format_value(value.value)) for value in values):
        # An id says nothing to a reader; what has one has a name under another key.
        return False
    if any(value.count > 1 for value in values):
        return [value.count for value in values] != [facets.counted]
    is_short = all(len(format_value(value.value)) <= _SHORT for value in values)
    return is_short and 1 < facets.counted <= _MAX_VALUES
