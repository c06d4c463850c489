"""Whose memory is looked at."""

from nicegui import ui

from bus_schema.identities import is_user_id
from gateway.backend import LOCAL_USER
from gateway.ui.components import box, button, field, popup, text
from gateway.ui.page_session import PageSession


def whose_button(frame: PageSession, user_id: str | None) -> None:
    """Says it; leads to another user's."""
    said = frame.words("memory.as", user=f"user.{user_id}" if user_id else LOCAL_USER)
    button(said, lambda: _ask_user(frame, user_id), "mb-not-phone", "user")


def _ask_user(frame: PageSession, user_id: str | None) -> None:
    words, wanted = frame.words, {"user": user_id or ""}

    def go() -> None:
        user = wanted["user"].strip()
        frame.remember(user=user if is_user_id(user) else None, kem=None)
        ui.run_javascript("location.reload()")

    with popup(words("memory.as_whom")):
        text(words("memory.as_whom"), "", "h2")
        text(words("memory.as_hint"), "", "p")
        line = field(words("chat.user"), wanted["user"], lambda user: wanted.update(user=user))
        line.on("keydown.enter", go)
        with box("mb-actions"):
            button(words("timeline.show"), go, "mb-primary")
