"""Whose episodes are looked at."""

from urllib.parse import urlencode

from nicegui import ui

from bus_schema.identities import is_user_id
from gateway.ui.components import box, button, field, popup, text
from gateway.ui.page_session import PageSession


def chat_button(session: PageSession, chat_id: str | None) -> None:
    """Says it; leads to another chat's."""
    said = session.i18n("episodes.of_all") if chat_id is None else chat_id
    button(said, lambda: _ask_chat(session, chat_id), "", "user")


def _ask_chat(session: PageSession, chat_id: str | None) -> None:
    i18n, wanted = session.i18n, {"chat": chat_id or ""}

    def go() -> None:
        chat = wanted["chat"].strip()
        ui.navigate.to("/episodes" + (f"?{urlencode({'chat': chat})}" if is_user_id(chat) else ""))

    with popup(i18n("episodes.whose")):
        text(i18n("episodes.whose"), "", "h2")
        text(i18n("episodes.whose_hint"), "", "p")
        line = field(i18n("chat.user"), wanted["chat"], lambda chat: wanted.update(chat=chat))
        line.on("keydown.enter", go)
        with box("mb-actions"):
            button(i18n("timeline.show"), go, "mb-primary")
