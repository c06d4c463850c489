"""Whose memory is looked at."""

from nicegui import ui

from bus_schema.identities import is_user_id
from gateway.backend import LOCAL_USER
from gateway.ui.components import box, button, field, popup, text
from gateway.ui.page_session import PageSession


def whose_button(session: PageSession, user_id: str | None) -> None:
    """Says it; leads to another user's."""
    said = session.i18n("memory.as", user=f"user.{user_id}" if user_id else LOCAL_USER)
    button(said, lambda: _ask_user(session, user_id), "mb-not-phone", "user")


def _ask_user(session: PageSession, user_id: str | None) -> None:
    i18n, wanted = session.i18n, {"user": user_id or ""}

    def go() -> None:
        user = wanted["user"].strip()
        session.remember(user=user if is_user_id(user) else None, kem=None)
        ui.run_javascript("location.reload()")

    with popup(i18n("memory.as_whom")):
        text(i18n("memory.as_whom"), "", "h2")
        text(i18n("memory.as_hint"), "", "p")
        line = field(i18n("chat.user"), wanted["user"], lambda user: wanted.update(user=user))
        line.on("keydown.enter", go)
        with box("mb-actions"):
            button(i18n("timeline.show"), go, "mb-primary")
