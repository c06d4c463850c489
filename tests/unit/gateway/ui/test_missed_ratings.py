"""Ratings that were given while the page heard nothing."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from nicegui import Client, core
from nicegui.page import page

from bus_schema.conversations import MessagePage
from bus_schema.dialogue import DialogueMessage
from bus_schema.message_parts import Rating
from gateway.ui.chat.dialogue_pane import ConversationView
from gateway.ui.chat.screen import ChatScreen
from gateway.ui.chat.user_profile import UserProfile
from gateway.ui.components import box
from gateway.ui.i18n import Localizer


def rated(rating: Rating | None) -> DialogueMessage:
    return DialogueMessage(
        message_id="msg_1", user_id="anna", role="assistant", content="Monday.", time=datetime.now(UTC), rating=rating
    )


class Storage:
    """Has one answer in the history, as it is rated now."""

    rating: Rating | None = None

    async def request(self, _query: object, *, trace: str) -> MessagePage:
        return MessagePage(items=(rated(self.rating),), next_cursor=None)


async def test_a_rating_that_was_missed_is_shown_once_the_page_catches_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "loop", asyncio.get_running_loop())  # a gateway of an earlier test leaves its own
    storage = Storage()
    backend: Any = SimpleNamespace(is_self=lambda _user: True, acting_as=lambda _user: storage)
    session: Any = SimpleNamespace(i18n=Localizer("en", UTC), backend=backend)
    client = Client(page("/chat"))
    try:
        with client:
            talk = box()
            pane: Any = SimpleNamespace(user_id="anna")
            pane.conversation = ConversationView(session, "anna", UserProfile("anna"), talk, talk)
            pane.conversation.receive(rated(None))
            screen: Any = SimpleNamespace(session=session)
            for storage.rating, pressed in (("helpful", ["true", "false"]), (None, ["false", "false"])):
                await ChatScreen._catch_up(screen, pane)

                thumbs = [each for each in client.elements.values() if "mb-thumb" in each.classes]
                assert [str(each.props["aria-pressed"]).lower() for each in thumbs] == pressed
    finally:
        client.delete()
