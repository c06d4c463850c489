"""The parts of memory: what agents know together, what was said long ago."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from nicegui import ui

from gateway.ui.components import SegmentedControl
from gateway.ui.page_session import PageSession

# The screen that each is on, with what its address says.
_PLACES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "search": ("memory", {}),
    "episodes": ("episodes", {}),
    "anchors": ("episodes", {"anchors": "1"}),
    "changes": ("memory", {"view": "changes"}),
}


def memory_tabs(session: PageSession, chosen: str, turn: Callable[[str], Any]) -> None:
    """Those of this screen turn it; the others lead away, for the same user."""
    whose = {"user": session.query.get("user") or session.query.get("chat") or ""}

    def go(tab: str) -> Any:
        screen, query = _PLACES[tab]
        if screen == session.name:
            return turn(tab)
        user = {("chat" if screen == "episodes" else "user"): value for value in whose.values() if value}
        return ui.navigate.to(f"/{screen}?{urlencode({**query, **user})}".removesuffix("?"))

    SegmentedControl([(tab, session.i18n(f"memory.view.{tab}")) for tab in _PLACES], chosen, go)
