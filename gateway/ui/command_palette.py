"""The command palette and the list of keyboard shortcuts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from nicegui import background_tasks, ui

from bus_schema.conversations import ListDialogues
from bus_schema.process import ListProcesses
from gateway.backend import Backend
from gateway.ui.components import attributes, box, popup, text
from gateway.ui.i18n import Localizer
from gateway.ui.sections import EXPECTED_ERRORS
from gateway.ui.svg import icon
from mindbus.logs import logger

_SCREENS: Final = (
    ("timeline", "T"),
    ("chat", "C"),
    ("runs", "R"),
    ("fleet", "F"),
    ("memory", "M"),
    ("episodes", "E"),
    ("sim", "S"),
)
_KEYS: Final = (
    ("Ctrl K", "keys.palette"),
    ("G T · C · R · F · M · E · S", "keys.go"),
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
_MOST: Final = 8
# Moves the choice and takes it without asking the server.
_MOVE: Final = """(event) => {
  const rows = [...document.querySelectorAll('.mb-palette a')];
  const at = rows.findIndex((row) => row.ariaSelected === 'true');
  const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
  if (step) {
    event.preventDefault();
    const next = Math.min(rows.length - 1, Math.max(0, at + step));
    rows.forEach((row, place) => row.setAttribute('aria-selected', place === next));
    rows[next]?.scrollIntoView({block: 'nearest'});
  } else if (event.key === 'Enter') {
    // A quick typist is ahead of the list.
    const list = document.querySelector('.mb-palette [role=listbox]');
    const take = (tries) => {
      const wanted = event.target.value.trim().toLowerCase();
      if (tries && list.dataset.wanted !== wanted) setTimeout(() => take(tries - 1), 30);
      else list.querySelector('a[aria-selected=true]')?.click();
    };
    take(100);
  }
}"""


@dataclass(frozen=True)
class PaletteEntry:
    """A target of the palette."""

    group: str
    picture: str
    title: str
    target: str
    note: str = ""


class CommandPalette:
    """The palette of one page, filled with the current dialogues, runs and workers."""

    def __init__(self, i18n: Localizer, backend: Backend, screen: str) -> None:
        self.i18n, self._backend, self._screen = i18n, backend, screen
        self._known: list[PaletteEntry] = []

    def open(self) -> None:
        i18n = self.i18n
        with popup(i18n("find"), "mb-palette"):
            with box("mb-line-x"):
                icon("search")
                line = attributes(box("", "input"), placeholder=i18n("find"), aria_label=i18n("find"), autofocus=True)
                line.on("input", lambda event: self._show(str(event.args)), js_handler="(e) => emit(e.target.value)")
                line.on("keydown", js_handler=_MOVE)
                text("Esc", "mb-kbd")
            self._list = attributes(box("mb-scroll"), role="listbox")
        self._known = [
            PaletteEntry("palette.go", name, i18n(f"nav.{name}"), f"/{name}", f"G {key}") for name, key in _SCREENS
        ] + [
            PaletteEntry("palette.do", "plus", i18n("palette.new_dialogue"), "/chat?new=1"),
            PaletteEntry("palette.do", "play", i18n("palette.start_sim"), "/sim"),
            PaletteEntry("palette.do", "runs", i18n("palette.start_run"), "/runs?new=1"),
            PaletteEntry("palette.do", "alert", i18n("palette.dead"), "/fleet#dead"),
        ]
        self._show("")
        ui.run_javascript(f"setTimeout(() => getHtmlElement({line.id})?.focus(), 60)")
        background_tasks.create(self._learn(), name="palette")

    def show_keys(self) -> None:
        with popup(self.i18n("keys.title"), "mb-dialog mb-wide"):
            text(self.i18n("keys.title"), "", "h2")
            with box("mb-keys"):
                for key, what in _KEYS:
                    with box():
                        text(self.i18n(what))
                        text(key, "mb-kbd")

    async def _learn(self) -> None:
        bus = self._backend.bus
        try:
            for dialogue in (await bus.request(ListDialogues())).items:
                user = dialogue.user_id
                self._known.append(PaletteEntry("palette.people", "user", user, f"/chat?with={quote(user)}"))
            for run in (await bus.request(ListProcesses())).items:
                self._known.append(
                    PaletteEntry("palette.runs", "runs", run.card_name, f"/runs/{run.run_id}", run.run_id)
                )
        except EXPECTED_ERRORS as trouble:
            logger().info("palette incomplete", reason=str(trouble))
        for worker in {worker.service for worker in self._backend.feed.workers}:
            self._known.append(PaletteEntry("palette.workers", "fleet", worker, f"/fleet?find={worker}"))

    def _show(self, wanted: str) -> None:
        wanted = wanted.strip().lower()
        found = [one for one in self._known if wanted in f"{one.title} {one.note}".lower()][: _MOST * 2]
        if wanted:
            found += self._searches(wanted)
        self._list.clear()
        with self._list:
            self._draw(found)
        attributes(self._list, data_wanted=wanted).update()

    def _searches(self, wanted: str) -> list[PaletteEntry]:
        i18n = self.i18n
        return [
            PaletteEntry(
                "palette.search", "filter", i18n("palette.by_trace", name=wanted), f"/timeline?trace={quote(wanted)}"
            ),
            PaletteEntry(
                "palette.search", "memory", i18n("palette.in_memory", name=wanted), f"/memory?q={quote(wanted)}"
            ),
            PaletteEntry("palette.search", "chat", i18n("palette.talk_to", name=wanted), f"/chat?with={quote(wanted)}"),
        ]

    def _draw(self, found: Sequence[PaletteEntry]) -> None:
        group = ""
        for place, one in enumerate(sorted(found, key=lambda one: [f.group for f in found].index(one.group))):
            if one.group != group:
                group = one.group
                text(self.i18n(group), "", "h3")
            made = attributes(box("", "a"), href=one.target, role="option", aria_selected=str(place == 0).lower())
            with made:
                icon(one.picture)
                text(one.title, "mb-ell")
                if one.note:
                    text(one.note, "mb-kbd")
