"""Navigation between the views of memory, and the user whose memory is shown."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from nicegui import ui

from bus_schema.identities import is_user_id
from gateway.backend import LOCAL_USER
from gateway.ui.components import SegmentedControl, button
from gateway.ui.dialogs import prompt_user
from gateway.ui.page_session import PageSession

# Screen and query of each view.
_VIEWS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "search": ("memory", {}),
    "episodes": ("episodes", {}),
    "anchors": ("episodes", {"anchors": "1"}),
    "changes": ("memory", {"view": "changes"}),
}


def memory_tabs(session: PageSession, chosen: str, switch: Callable[[str], Any]) -> None:
    """Tabs: `switch` shows a view of this screen, the others open another screen for the same user."""
    user = session.query.get("user") or session.query.get("chat")

    def go(view: str) -> Any:
        screen, query = _VIEWS[view]
        if screen == session.name:
            return switch(view)
        of_user = {"chat" if screen == "episodes" else "user": user} if user else {}
        return ui.navigate.to(f"/{screen}?{urlencode({**query, **of_user})}".removesuffix("?"))

    SegmentedControl([(view, session.i18n(f"memory.view.{view}")) for view in _VIEWS], chosen, go)


def user_button(session: PageSession, user_id: str | None) -> None:
    """The user whose access rights apply; a click changes it."""

    def switch(user: str) -> None:
        session.remember(user=user if is_user_id(user) else None, kem=None)
        ui.run_javascript("location.reload()")

    label = session.i18n("memory.as", user=f"user.{user_id}" if user_id else LOCAL_USER)
    button(label, lambda: prompt_user(session.i18n, "memory.as_user", user_id or "", switch), "mb-not-phone", "user")


def chat_button(session: PageSession, chat_id: str | None) -> None:
    """The chat whose episodes are shown; a click changes it."""

    def switch(chat: str) -> None:
        ui.navigate.to("/episodes" + (f"?{urlencode({'chat': chat})}" if is_user_id(chat) else ""))

    label = session.i18n("episodes.of_all") if chat_id is None else chat_id
    button(label, lambda: prompt_user(session.i18n, "episodes.chat", chat_id or "", switch), "", "user")
