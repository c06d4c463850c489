"""The command palette and the list of keyboard shortcuts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from nicegui import background_tasks, ui

from bus_schema.process import ListProcesses
from gateway.backend import Backend
from gateway.ui.components import VALUE, anchor, attributes, box, popup, refill, text
from gateway.ui.i18n import Localizer
from gateway.ui.sections import EXPECTED_ERRORS
from gateway.ui.svg import icon
from mindbus.logs import logger

_SCREENS: Final = {
    "timeline": "T",
    "chat": "C",
    "tasks": "A",
    "runs": "R",
    "fleet": "F",
    "memory": "M",
    "episodes": "E",
    "sim": "S",
}
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
_MAX_ENTRIES: Final = 16
_MAX_DIALOGUES: Final = 50


@dataclass(frozen=True)
class PaletteEntry:
    group: str
    icon_name: str
    title: str
    target: str
    note: str = ""


class CommandPalette:
    """The palette of one page, filled with the current dialogues, runs and workers."""

    def __init__(self, i18n: Localizer, backend: Backend) -> None:
        self.i18n, self._backend = i18n, backend
        self._entries: list[PaletteEntry] = []

    def open(self) -> None:
        i18n = self.i18n
        with popup(i18n("find"), "mb-palette"):
            with box("mb-line-x"):
                icon("search")
                line = attributes(box("", "input"), placeholder=i18n("find"), aria_label=i18n("find"), autofocus=True)
                line.on("input", lambda event: self._show(str(event.args)), js_handler=VALUE)
                line.on("keydown", js_handler="(event) => mbPaletteKey(event)")
                text("Esc", "mb-kbd")
            self._list = attributes(box("mb-scroll"), role="listbox")
        self._entries = [
            PaletteEntry("palette.go", name, i18n(f"nav.{name}"), f"/{name}", f"G {key}")
            for name, key in _SCREENS.items()
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
            self._entries += [
                PaletteEntry("palette.people", "user", dialogue.user_id, f"/chat?with={quote(dialogue.user_id)}")
                for dialogue in (await self._backend.dialogues(_MAX_DIALOGUES)).items
            ]
            self._entries += [
                PaletteEntry("palette.runs", "runs", run.card_name, f"/runs/{run.run_id}", run.run_id)
                for run in (await bus.request(ListProcesses())).items
            ]
        except EXPECTED_ERRORS as error:
            logger().info("palette incomplete", reason=str(error))
        services = {worker.service for worker in self._backend.feed.workers}
        self._entries += [PaletteEntry("palette.workers", "fleet", name, f"/fleet?find={name}") for name in services]

    def _show(self, typed: str) -> None:
        typed = typed.strip().lower()
        entries = [entry for entry in self._entries if typed in f"{entry.title} {entry.note}".lower()][:_MAX_ENTRIES]
        if typed:
            entries += self._searches(typed)
        with refill(self._list):
            self._draw(entries)
        attributes(self._list, data_wanted=typed).update()

    def _searches(self, typed: str) -> list[PaletteEntry]:
        targets = (
            ("filter", "palette.by_trace", "/timeline?trace="),
            ("memory", "palette.in_memory", "/memory?q="),
            ("chat", "palette.talk_to", "/chat?with="),
        )
        return [
            PaletteEntry("palette.search", icon_name, self.i18n(title, name=typed), target + quote(typed))
            for icon_name, title, target in targets
        ]

    def _draw(self, entries: Sequence[PaletteEntry]) -> None:
        groups = list(dict.fromkeys(entry.group for entry in entries))
        ordered = sorted(entries, key=lambda entry: groups.index(entry.group))
        for place, entry in enumerate(ordered):
            if not place or entry.group != ordered[place - 1].group:
                text(self.i18n(entry.group), "", "h3")
            with attributes(anchor(entry.target, classes=""), role="option", aria_selected=place == 0):
                icon(entry.icon_name)
                text(entry.title, "mb-ell")
                if entry.note:
                    text(entry.note, "mb-kbd")
