"""The chat screen: the list of dialogues, one to three of them side by side, the user profile."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from urllib.parse import quote

from nicegui import ui
from nicegui.element import Element

from bus_schema.conversations import MessageStored
from bus_schema.dialogue import MAX_PREVIEW_CHARS, DialogueMessage, MessageKind
from bus_schema.envelope import Envelope
from bus_schema.facts import ListFacts
from bus_schema.processing import ContextUpdated, TaskStatus
from bus_schema.tasks import ListTasks
from gateway.api.dialogues import history
from gateway.api.tasks import read_facts, read_tasks
from gateway.display_names import DisplayNames
from gateway.ui.chat.dialogue_pane import MESSAGES_PAGE, DialoguePane
from gateway.ui.chat.user_profile import MAX_ROWS, ProfilePanel
from gateway.ui.components import anchor, attributes, box, button, icon_button, person, search, show_if, text, toggle
from gateway.ui.dialogs import prompt_user
from gateway.ui.i18n import Localizer
from gateway.ui.page_session import PageSession
from gateway.ui.rows import Rows
from gateway.ui.sections import EXPECTED_ERRORS, EmptyState, ScreenSection
from gateway.ui.tasks.screen import TASK_EVENTS


@dataclass(frozen=True)
class DialogueItem:
    """One dialogue as the list shows it."""

    user_id: str
    name: str
    last_at: datetime | None = None
    last: str = ""
    unread: int = 0
    is_active: bool = False
    is_answering: bool = False
    is_open: bool = False


class DialogueList:
    """A list of dialogues, the latest first, grouped by active and earlier."""

    def __init__(
        self,
        i18n: Localizer,
        names: DisplayNames,
        place: Element,
        on_beside: Callable[[str], None],
        on_new: Callable[[], object],
    ) -> None:
        self._names = names
        self._items: dict[str, DialogueItem] = {}
        self._filter = ""
        with place:
            with box("mb-people-head"):
                search(i18n("chat.find"), self._find)
                self.add = icon_button("plus", i18n("chat.new"))
            with attributes(box("mb-scroll mb-people-list", "nav"), aria_label=i18n("chat.dialogues")):
                self._groups = [_Group(i18n, key, on_beside) for key in ("chat.active", "chat.earlier")]
                # On a phone there is no pane beside the list to say so.
                with box("mb-phone-only"):
                    self.nothing = EmptyState(i18n, "chat", _COMMAND, on_new, "chat.none")

    @property
    def active(self) -> int:
        return sum(item.is_active for item in self._items.values())

    def names(self) -> list[str]:
        return list(self._items)

    def meet(self, user_id: str, **facts: object) -> None:
        item = self._items.get(user_id, DialogueItem(user_id, self._names.of(user_id)))
        self._items[user_id] = replace(item, **facts)  # type: ignore[arg-type]  # its own fields, by name

    def receive(self, message: DialogueMessage) -> None:
        if message.kind is MessageKind.HIDDEN:
            return
        item = self._items.get(message.user_id, DialogueItem(message.user_id, self._names.of(message.user_id)))
        unread = 0 if item.is_open else item.unread + (message.role == "assistant")
        last = (message.content or "…")[:MAX_PREVIEW_CHARS]
        is_answering = message.role == "user"
        self.meet(
            item.user_id, last=last, last_at=message.time, unread=unread, is_active=True, is_answering=is_answering
        )

    def show(self) -> None:
        shown = [item for item in self._items.values() if self._names.matches(item.user_id, self._filter)]
        shown.sort(key=lambda item: item.last_at or datetime.min.replace(tzinfo=UTC), reverse=True)
        active, earlier = self._groups
        active.show([item for item in shown if item.is_active])
        earlier.show([item for item in shown if not item.is_active])
        self.nothing.show(is_empty=not self._items)

    def _find(self, name: str) -> None:
        self._filter = name.strip()
        self.show()


class _Group:
    def __init__(self, i18n: Localizer, key: str, on_beside: Callable[[str], None]) -> None:
        with box("mb-people-title") as self._head:
            text(i18n(key), "mb-medium")
            self._count = text("", "mb-num")
        self._rows: Rows[DialogueItem] = Rows(box("mb-people-rows"), lambda item: _Row(i18n, item, on_beside))

    def show(self, people: list[DialogueItem]) -> None:
        show_if(self._head, people)
        self._count.set_text(str(len(people)))
        self._rows.show((item.user_id, item) for item in people)


class _Row:
    def __init__(self, i18n: Localizer, item: DialogueItem, on_beside: Callable[[str], None]) -> None:
        self._i18n = i18n
        self.element = box("mb-person-row")
        with self.element:
            self._link = attributes(
                anchor(f"/chat?with={quote(item.user_id)}", classes="mb-person-link"), data_row=item.user_id
            )
            with self._link:
                person(item.user_id, item.name, "mb-big")
                with box("mb-stack mb-grow"):
                    with box("mb-line-x"):
                        attributes(text(item.name, "mb-person-name mb-ell mb-grow"), title=item.user_id)
                        self._at = text("", "mb-cap mb-t3 mb-num")
                    with box("mb-line-x"):
                        self._last = text("", "mb-ell mb-grow mb-person-last")
                        self._unread = text("", "mb-unread")
            icon_button("columns", i18n("chat.beside"), lambda: on_beside(item.user_id), "mb-beside")

    def show(self, item: DialogueItem) -> None:
        if item.is_open:
            attributes(self._link, aria_current="true").update()
        self._at.set_text(self._i18n.when(item.last_at, datetime.now(UTC)) if item.last_at else "")
        self._last.set_text(self._i18n("chat.writing_dots") if item.is_answering else item.last)
        toggle(self._last, "mb-acc", is_on=item.is_answering)
        self._unread.set_text(str(item.unread or ""))
        show_if(self._unread, item.unread)


_PROFILE_EVENTS = TASK_EVENTS | {ContextUpdated.wire.type}
_COMMAND = 'mindbus chat --user alice --message "Hello"'
_MAX_PANES = 3
_WITH_ASIDE = 1100
_LISTED = 100
_READ_ENDS = 20


class ChatScreen:
    """The open dialogues are kept in the address: `?with=anna,boris`."""

    def __init__(self, session: PageSession) -> None:
        self.session = session
        names = session.backend.names
        asked = [user for name in session.query.get("with", "").split(",") if (user := names.resolve(name))]
        chosen = list(dict.fromkeys(asked))[:_MAX_PANES]
        with box("mb-chat" + (" mb-chat-open" if chosen else "")):
            people = box("mb-people", "aside")
            new = partial(button, session.i18n("chat.new"), self._prompt_user, "mb-primary", "plus")
            self.people = DialogueList(session.i18n, names, people, self._beside, new)
            self.people.add.on("click", self._prompt_user)
            self._part = ScreenSection(session.i18n, people)
            with box("mb-panes"):
                on_close = self._close if len(chosen) > 1 else None
                self.panes = [DialoguePane(session, user, on_close) for user in chosen]
                if not chosen:
                    EmptyState(session.i18n, "chat", _COMMAND, new, "chat.empty").show(is_empty=True)
            self._is_profile_stale = False
            self.aside = None
            if len(chosen) == 1 and session.client.width >= _WITH_ASIDE:
                self.aside = ProfilePanel(session.i18n, box("mb-aside", "aside"))

    @classmethod
    async def draw(cls, session: PageSession) -> None:
        screen = cls(session)
        session.receive(1 / 15, screen.receive)
        for pane in screen.panes:
            await pane.open()
            screen.people.meet(pane.user_id, is_open=True, unread=0)
        await screen.refresh()
        await session.attempt(screen.refresh_profile())
        await screen._part.attempt(screen._read_ends)
        session.every(5.0, screen.refresh)
        session.every(1.0, screen.tick)
        session.on_keys({"Escape": screen.stop})
        if session.query.get("new"):
            screen._prompt_user()
        if message_id := session.query.get("message"):
            ui.run_javascript(f"mbReveal({json.dumps(message_id)})")

    async def receive(self, envelopes: list[Envelope], has_missed: bool) -> None:
        if has_missed:
            # Not by a reload: somebody may be writing.
            for pane in self.panes:
                await pane.part.attempt(partial(self._catch_up, pane))
            self._is_profile_stale = True
            await self.refresh()
        is_listed = is_told = False
        for envelope in envelopes:
            is_told |= sum(pane.receive(envelope) for pane in self.panes) > 0
            # Also of others: who give the user a task, or say what holds instead.
            self._is_profile_stale |= envelope.type in _PROFILE_EVENTS
            if envelope.type == MessageStored.wire.type:
                self.people.receive(MessageStored.model_validate(envelope.data or {}))
                is_listed = True
        if is_listed:
            self.people.show()
        if is_told and self.aside is not None:
            self.aside.show(self.panes[0].profile)

    async def _catch_up(self, pane: DialoguePane) -> None:
        page = await history(pane.user_id, self.session.backend, limit=MESSAGES_PAGE)
        for message in reversed(page.items):
            pane.conversation.receive(message)
            # It may have been shown already, and rated since.
            pane.conversation.show_rating(message)

    async def refresh(self) -> None:
        await self._part.attempt(self._refresh)

    async def tick(self) -> None:
        if self._is_profile_stale:
            await self.refresh_profile()

    async def refresh_profile(self) -> None:
        """Show the open tasks that the user owns or asked for and the user's facts, as many as there is room for."""
        self._is_profile_stale = False
        if self.aside is None:
            return
        profile = self.panes[0].profile
        query = ListTasks(user_id=profile.user_id, status=TaskStatus.OPEN, limit=MAX_ROWS)
        try:
            page = await read_tasks(self.session.backend, query, profile.user_id)
            profile.open_tasks, profile.has_more_tasks = page.items, page.next_cursor is not None
            with suppress(*EXPECTED_ERRORS):  # those of the events are shown then
                known = ListFacts(user_id=profile.user_id, limit=MAX_ROWS)
                facts = await read_facts(self.session.backend, known, profile.user_id)
                profile.listed_facts, profile.has_more_facts = facts.items, facts.next_cursor is not None
        finally:
            self.aside.show(profile)

    def stop(self) -> None:
        for pane in self.panes:
            pane.conversation.stop()

    async def _refresh(self) -> None:
        i18n = self.session.i18n
        page = await self.session.backend.dialogues(_LISTED)
        for dialogue in page.items:
            self.people.meet(dialogue.user_id, is_active=dialogue.is_active, last_at=dialogue.last_activity)
        for pane in self.panes:
            pane.show_state(next((item for item in page.items if item.user_id == pane.user_id), None))
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
        other_users = [pane.user_id for pane in self.panes if pane.user_id != user]
        self._open([*other_users, user][-_MAX_PANES:])

    def _close(self, user: str) -> None:
        self._open([pane.user_id for pane in self.panes if pane.user_id != user])

    def _prompt_user(self) -> None:
        prompt_user(self.session, "chat.new", "", lambda user: self._open([user]), action="chat.open", may_be_new=True)
