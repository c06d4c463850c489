"""The conversation of one dialogue: messages, the answer being streamed, retries."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from contextlib import aclosing
from datetime import UTC, datetime

from nicegui import background_tasks, ui
from nicegui.element import Element

from bus_schema.dialogue import Answered, DialogueMessage, MessageKind
from bus_schema.ids import mint
from gateway.api.dialogues import read_messages, send_message
from gateway.ui.chat.delegations import DelegationList
from gateway.ui.chat.message_views import (
    NotificationView,
    StreamingAnswer,
    is_shown,
    show_answer,
    show_user_message,
)
from gateway.ui.chat.user_profile import UserProfile
from gateway.ui.components import box, button, text
from gateway.ui.errors import EXPECTED_ERRORS, error_text
from gateway.ui.page_session import PageSession

_PAGE = 50


class ConversationView:
    """Messages of one user; it scrolls with new ones."""

    def __init__(self, session: PageSession, user_id: str, profile: UserProfile, place: Element) -> None:
        self.session, self.user_id, self.profile, self.place = session, user_id, profile, place
        self._messages: dict[str, DialogueMessage] = {}
        self._notices: dict[str, NotificationView] = {}
        self._instruction: DialogueMessage | None = None
        self._last_day = ""
        self._older: str | None = None
        self._asking: asyncio.Task[None] | None = None
        self._growing: StreamingAnswer | None = None
        self._status: Element | None = None
        self.scroller = place
        with place:
            self._more = box("mb-older")
            self._entries = box("mb-entries")
            self.delegations = DelegationList(session, user_id, self._entries)
            self._tail = box("mb-tail")

    @property
    def count(self) -> int:
        return len(self._messages)

    async def open(self) -> None:
        page = await read_messages(self.session.backend, self.user_id, limit=_PAGE)
        self._older = page.next_cursor
        await self._show_with(page.items)
        ui.run_javascript(f"mbWatch({self.scroller.id})")

    def hear(self, message: DialogueMessage) -> None:
        """Show a stored message, unless it is shown already."""
        if message.message_id in self._messages:
            return
        self._messages[message.message_id] = message
        self._show(message)
        if self._growing is not None and message.role == "assistant" and message.kind is not MessageKind.NOTIFICATION:
            self._end_growing()

    def explain(self) -> None:
        """Update the reasons of notifications."""
        for message_id, notice in self._notices.items():
            notice.explain(self.profile.reasons(message_id))

    def say(self, said: str) -> None:
        self.stop()
        message_id = mint("msg")
        now = datetime.now(UTC)
        with contextlib.suppress(ValueError):
            self.hear(DialogueMessage(message_id=message_id, user_id=self.user_id, role="user", content=said, time=now))
        self._asking = background_tasks.create(self._ask(said, message_id), name="ask")

    def stop(self) -> None:
        """Stop streaming the answer; it is stored all the same."""
        if self._asking is not None and not self._asking.done():
            self._asking.cancel()
        self._end_growing()

    async def _ask(self, said: str, message_id: str) -> None:
        session = self.session
        began = time.monotonic()
        with self._tail:
            self._growing = StreamingAnswer(session.i18n)
            self._status = self._status_line()
        growing = self._growing
        pieces = send_message(session.backend, self.user_id, said, message_id)
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    if isinstance(piece, Answered):
                        self._settle(piece)
                    else:
                        growing.add(piece)
                        self._show_speed(growing, time.monotonic() - began)
        except EXPECTED_ERRORS as trouble:
            self._end_growing()
            self._fail(trouble, said, message_id)

    def _settle(self, answer: Answered) -> None:
        self.hear(
            DialogueMessage(
                message_id=answer.response_id,
                user_id=self.user_id,
                role="assistant",
                content=answer.response,
                time=datetime.now(UTC),
            )
        )
        self._end_growing()

    def _fail(self, trouble: Exception, said: str, message_id: str) -> None:
        i18n = self.session.i18n
        with self._tail, box("mb-trouble") as failed:

            def again() -> None:
                failed.delete()
                self._asking = background_tasks.create(self._ask(said, message_id), name="ask")

            with box("mb-stack mb-grow"):
                text(i18n("chat.unanswered"))
                text(error_text(i18n, trouble), "mb-meta")
            button(i18n("retry"), again, "mb-small", "replay")

    def _status_line(self) -> Element:
        i18n = self.session.i18n
        with box("mb-line-x mb-writing") as line:
            text(i18n("chat.writing"), "mb-acc")
            self._speed = text("", "mb-meta mb-num")
            with button(i18n("chat.stop"), self.stop, "mb-small", "stop"):
                text("Esc", "mb-kbd")
        return line

    def _show_speed(self, growing: StreamingAnswer, seconds: float) -> None:
        i18n = self.session.i18n
        rate = i18n("chat.speed", n=i18n.number(len(growing.said) / max(seconds, 0.1)), s=i18n.seconds(seconds))
        if self._status is not None and not self._status.is_deleted:
            self._speed.set_text(rate)

    def _end_growing(self) -> None:
        self._growing = self._status = None
        self._tail.clear()

    async def _load_more(self) -> None:
        page = await read_messages(self.session.backend, self.user_id, cursor=self._older, limit=_PAGE)
        self._older = page.next_cursor
        await self._show_with(page.items)

    async def _show_with(self, newest: Sequence[DialogueMessage]) -> None:
        # Somebody may have written already.
        self._messages = {message.message_id: message for message in reversed(newest)} | self._messages
        if self._messages:
            await self.delegations.read(since=min(message.time for message in self._messages.values()))
        self._show_all()

    def _show_all(self) -> None:
        self._entries.clear()
        self.delegations.begin_anew()
        self._more.clear()
        self._last_day, self._instruction = "", None
        if self._older is not None:
            with self._more:
                button(self.session.i18n("chat.older"), self._load_more, "mb-quiet mb-small", "up")
        for message in self._messages.values():
            self.delegations.draw_until(message.time)
            self._show(message)
        self.delegations.draw_until()

    def _show(self, message: DialogueMessage) -> None:
        if message.kind is MessageKind.HIDDEN:
            self._instruction = message
        if is_shown(message):
            with self._entries:
                self._mark_day(message.time)
                self._draw(message)

    def _draw(self, message: DialogueMessage) -> None:
        i18n = self.session.i18n
        if message.kind is MessageKind.NOTIFICATION:
            notice = NotificationView(i18n, message, self._instruction)
            notice.explain(self.profile.reasons(message.message_id))
            self._notices[message.message_id] = notice
        elif message.role == "user":
            show_user_message(i18n, message)
        else:
            show_answer(i18n, message)

    def _mark_day(self, at: datetime) -> None:
        day = self.session.i18n.day(at, datetime.now(UTC))
        if day != self._last_day:
            self._last_day = day
            text(day, "mb-day", "h3")
