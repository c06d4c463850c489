"""The command palette and the list of keyboard shortcuts."""

from collections.abc import Iterable, Sequence
from typing import Final

from nicegui import background_tasks, ui

from gateway.backend import Backend
from gateway.ui.components import VALUE, anchor, attributes, box, popup, refill, text
from gateway.ui.i18n import Localizer
from gateway.ui.palette_entries import EntrySources, PaletteEntry, best_of, by_id, fixed_entries, searches_for
from gateway.ui.svg import icon

_KEYS: Final = (
    ("Ctrl K", "keys.palette"),
    ("G T · C · A · R · F · M · E · S", "keys.go"),
    ("/", "keys.search"),
    ("J K ↑ ↓", "keys.move"),
    ("Enter", "keys.open"),
    ("Esc", "keys.close"),
    ("[ ]", "keys.chain"),
    ("F", "keys.filter"),
    ("L", "keys.live"),
    ("+ − 0", "keys.zoom"),
    ("T", "keys.table"),
    ("Space", "keys.select"),
    ("R", "keys.replay"),
    ("Shift Enter", "keys.break"),
    ("?", "keys.list"),
)
# Seconds after the last key until memory is searched, and the fewest letters it is searched for.
_PAUSE_S = 0.25
_FEWEST = 3


class CommandPalette:
    """The palette of one page: one search over everything there is."""

    def __init__(self, i18n: Localizer, backend: Backend) -> None:
        self.i18n, self._sources = i18n, EntrySources(i18n, backend)
        self._entries: list[PaletteEntry] = []
        self._remembered: list[PaletteEntry] = []
        self._typed = ""

    def open(self) -> None:
        i18n = self.i18n
        self._entries, self._remembered, self._typed = fixed_entries(i18n), [], ""
        with popup(i18n("find"), "mb-palette") as dialog:
            with box("mb-line-x"):
                icon("search")
                line = attributes(box("", "input"), placeholder=i18n("find"), aria_label=i18n("find"), autofocus=True)
                attributes(line, role="combobox", aria_expanded=True, aria_controls="mb-palette-list")
                line.on("input", lambda event: self._type(str(event.args)), js_handler=VALUE)
                line.on("keydown", js_handler="(event) => mbPaletteKey(event)")
                text("Esc", "mb-kbd")
            self._list = attributes(box("mb-scroll"), role="listbox", id="mb-palette-list", aria_label=i18n("find"))
            self._pause = ui.timer(_PAUSE_S, self._search_memory, active=False)
        self._show()
        reading = background_tasks.create(self._sources.listed(self._take), name="palette")
        dialog.on("hide", reading.cancel)
        ui.run_javascript(f"mbFocusPalette({line.id})")

    def show_keys(self) -> None:
        with popup(self.i18n("keys.title"), "mb-dialog mb-wide"):
            text(self.i18n("keys.title"), "", "h2")
            with box("mb-keys"):
                for key, what in _KEYS:
                    with box():
                        text(self.i18n(what))
                        text(key, "mb-kbd")

    def _take(self, entries: Iterable[PaletteEntry]) -> None:
        self._entries += entries
        if self._typed:
            self._show()

    def _type(self, typed: str) -> None:
        self._typed, self._remembered = typed.strip(), []
        self._pause.deactivate()
        if len(self._typed) >= _FEWEST:
            self._pause.activate()
        self._show()

    async def _search_memory(self) -> None:
        self._pause.deactivate()
        typed = self._typed
        found = await self._sources.remembered(typed)
        if typed == self._typed and found:
            known = {entry.target for entry in best_of(self._entries, typed)}
            self._remembered = [entry for entry in found if entry.target not in known]
            self._show()

    def _show(self) -> None:
        typed = self._typed
        found = [*by_id(typed), *best_of(self._entries, typed), *self._remembered]
        with refill(self._list):
            self._draw(found + (searches_for(self.i18n, typed) if typed else []))
        attributes(self._list, data_wanted=typed).update()

    def _draw(self, entries: Sequence[PaletteEntry]) -> None:
        first = entries[0] if entries else None
        for group in dict.fromkeys(entry.group for entry in entries):
            title = self.i18n(group)
            with attributes(box(""), role="group", aria_label=title):
                attributes(text(title, "mb-palette-group", "div"), aria_hidden="true")
                for entry in entries:
                    if entry.group == group:
                        self._entry(entry, is_chosen=entry is first)

    def _entry(self, entry: PaletteEntry, *, is_chosen: bool) -> None:
        with attributes(anchor(entry.target, classes=""), role="option", aria_selected=is_chosen):
            icon(entry.icon_name)
            text(entry.title, "mb-ell")
            if entry.note:
                text(entry.note, "mb-kbd mb-ell")
