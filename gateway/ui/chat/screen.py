"""The chat screen: one to three dialogues side by side, the dialogue list, the user profile."""

import asyncio
import json
from functools import partial
from urllib.parse import quote

from nicegui import ui

from bus_schema.conversations import ListDialogues, MessageStored
from bus_schema.dialogue import MessageKind
from bus_schema.envelope import Envelope
from bus_schema.identities import is_user_id
from gateway.api.dialogues import history
from gateway.ui.chat.dialogue_list import DialogueList
from gateway.ui.chat.dialogue_pane import DialoguePane
from gateway.ui.chat.user_profile import ProfilePanel
from gateway.ui.components import box, button
from gateway.ui.dialogs import prompt_user
from gateway.ui.page_session import PageSession
from gateway.ui.sections import EmptyState, ScreenSection

_COMMAND = 'mindbus chat --user alice --message "Hello"'
_MOST_PANES = 3
_WITH_ASIDE = 1100
_LISTED = 100
_READ_ENDS = 20


class ChatScreen:
    """The open dialogues are kept in the address: `?with=anna,boris`."""

    def __init__(self, session: PageSession) -> None:
        self.session = session
        chosen = [user for user in session.query.get("with", "").split(",") if is_user_id(user)][:_MOST_PANES]
        with box("mb-chat" + (" mb-chat-open" if chosen else "")):
            people = box("mb-people", "aside")
            self.people = DialogueList(session.i18n, people, self._beside)
            self.people.add.on("click", self._prompt_user)
            self._part = ScreenSection(session.i18n, people)
            with box("mb-panes"):
                on_close = self._close if len(chosen) > 1 else None
                self.panes = [DialoguePane(session, user, on_close) for user in chosen]
                if not chosen:
                    new = partial(button, session.i18n("chat.new"), self._prompt_user, "mb-primary", "plus")
                    empty = EmptyState(session.i18n, "chat", _COMMAND, new)
                    empty.explain("chat.empty")
                    empty.show(is_empty=True)
            self.aside = None
            if len(chosen) == 1 and session.client.width >= _WITH_ASIDE:
                self.aside = ProfilePanel(session.i18n, box("mb-aside", "aside"))

    @classmethod
    async def draw(cls, session: PageSession) -> None:
        screen = cls(session)
        session.hear(1 / 15, screen.hear)
        for pane in screen.panes:
            await pane.open()
            screen.people.meet(pane.user_id, is_open=True, unread=0)
        if screen.aside is not None:
            screen.aside.show(screen.panes[0].profile)
        await screen.refresh()
        await screen._part.attempt(screen._read_ends)
        session.every(5.0, screen.refresh)
        session.on_keys({"Escape": screen.stop})
        if session.query.get("new"):
            screen._prompt_user()
        if message_id := session.query.get("message"):
            ui.run_javascript(f"mbReveal({json.dumps(message_id)})")

    def hear(self, envelopes: list[Envelope], has_missed: bool) -> None:
        if has_missed:
            ui.navigate.reload()
            return
        is_listed = is_told = False
        for envelope in envelopes:
            is_told |= sum(pane.hear(envelope) for pane in self.panes) > 0
            if envelope.type == MessageStored.wire.type:
                self.people.hear(MessageStored.model_validate(envelope.data or {}))
                is_listed = True
        if is_listed:
            self.people.show()
        if is_told and self.aside is not None:
            self.aside.show(self.panes[0].profile)

    async def refresh(self) -> None:
        await self._part.attempt(self._refresh)

    def stop(self) -> None:
        for pane in self.panes:
            pane.conversation.stop()

    async def _refresh(self) -> None:
        i18n = self.session.i18n
        page = await self.session.backend.bus.request(ListDialogues(limit=_LISTED))
        for dialogue in page.items:
            self.people.meet(dialogue.user_id, is_active=dialogue.is_active, last_at=dialogue.last_activity)
        for pane in self.panes:
            pane.show_state(next((each for each in page.items if each.user_id == pane.user_id), None))
        self.people.show()
        self.session.subtitle(i18n.count("chat.active_dialogues", self.people.active))

    async def _read_ends(self) -> None:
        # Later messages come as events; dialogues far down the list are left without a preview.
        users = self.people.names()[:_READ_ENDS]
        pages = await asyncio.gather(*(history(user, self.session.backend, limit=2) for user in users))
        for user, page in zip(users, pages, strict=True):
            last = next((message for message in page.items if message.kind is not MessageKind.HIDDEN), None)
            if last is not None:
                self.people.meet(user, last=last.content or "…", is_answering=False)
        self.people.show()

    def _open(self, users: list[str]) -> None:
        ui.navigate.to(f"/chat?with={quote(','.join(users), safe=',@')}" if users else "/chat")

    def _beside(self, user: str) -> None:
        others = [pane.user_id for pane in self.panes if pane.user_id != user]
        self._open([*others, user][-_MOST_PANES:])

    def _close(self, user: str) -> None:
        self._open([pane.user_id for pane in self.panes if pane.user_id != user])

    def _prompt_user(self) -> None:
        i18n = self.session.i18n

        def open_dialogue(user: str) -> str | None:
            if not is_user_id(user):
                return i18n("chat.bad_user")
            self._open([user])
            return None

        prompt_user(i18n, "chat.new", "", open_dialogue, "chat.open")
