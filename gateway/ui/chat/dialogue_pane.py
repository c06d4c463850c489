"""One dialogue: its header, its messages with the answer being streamed, the message composer."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Literal
from urllib.parse import quote

from nicegui import background_tasks, ui
from nicegui.element import Element

from bus_schema.conversations import AnswerRated, Dialogue, MessageStored
from bus_schema.dialogue import Answered, DialogueMessage, MessageKind, answer_id_of
from bus_schema.envelope import Envelope
from bus_schema.ids import mint
from bus_schema.message_parts import Attachment, Rating
from bus_schema.timeline import GetTimeline
from gateway.api.dialogues import AnswerRating, cancel_answer, history, rate, send_message
from gateway.api.dialogues import end as end_dialogue
from gateway.api.model_calls import calls_of_message
from gateway.ui.chat.composer import MessageComposer
from gateway.ui.chat.delegations import DelegationList
from gateway.ui.chat.message_views import AnswerActions, AnswerThumbs, NotificationView, StreamingAnswer, show_message
from gateway.ui.chat.user_profile import TOPICS, UserProfile
from gateway.ui.components import anchor, attributes, box, button, icon_button, icon_link, person, scroller, text
from gateway.ui.model_calls import show_calls
from gateway.ui.page_session import PageSession
from gateway.ui.sections import EXPECTED_ERRORS, ScreenSection, error_text
from gateway.ui.svg import icon

MESSAGES_PAGE = 50


class ConversationView:
    """Messages of one user; it scrolls with new ones."""

    def __init__(
        self, session: PageSession, user_id: str, profile: UserProfile, place: Element, scroller: Element
    ) -> None:
        self.session, self.user_id, self.profile, self._scroller = session, user_id, profile, scroller
        self._messages: dict[str, DialogueMessage] = {}
        self._notices: dict[str, NotificationView] = {}
        self._thumbs: dict[str, AnswerThumbs] = {}
        on_rate = self._rate if session.backend.is_self(user_id) else None
        self._actions = AnswerActions(self._again, self._show_calls, on_rate)
        self._instruction: DialogueMessage | None = None
        self._last_day = self._asked = ""
        self._older: str | None = None
        self._asking: asyncio.Task[None] | None = None
        self._growing: StreamingAnswer | None = None
        with place:
            self._more = box("mb-older")
            self._entries = box("mb-entries")
            self.delegations = DelegationList(session, user_id, self._entries)
            self._tail = box("mb-tail")

    async def open(self) -> None:
        await self._load()
        last = next(reversed(self._messages.values()), None)
        if last is not None and last.role == "user" and last.kind is not MessageKind.HIDDEN:
            self._asked = last.message_id
            self._offer_retry(last, self.session.i18n("chat.no_answer"))
        ui.run_javascript(f"mbWatch({self._scroller.id})")

    def receive(self, message: DialogueMessage) -> None:
        """Show a stored message, unless it is shown already; it may be an earlier answer than the one that grows."""
        if message.message_id in self._messages:
            return
        self._messages[message.message_id] = message
        self._show(message)
        if message.message_id == answer_id_of(self._asked):
            self._end_growing()

    def show_rating(self, rated: AnswerRated | DialogueMessage) -> None:
        """Show the rating of an answer, wherever it was given."""
        if rated.message_id in self._messages:
            known = self._messages[rated.message_id]
            self._messages[rated.message_id] = known.model_copy(update={"rating": rated.rating})
        if rated.message_id in self._thumbs:
            self._thumbs[rated.message_id].show(rated.rating)

    def explain(self) -> None:
        """Update the reasons of notifications."""
        for message_id, notice in self._notices.items():
            notice.explain(self.profile.reasons(message_id))

    def say(self, content: str, files: Sequence[Attachment] = ()) -> None:
        self._end_asking()
        said = self._message(mint("msg"), "user", content, tuple(files))
        self.receive(said)
        self._begin(said)

    def _again(self) -> None:
        """Say the user's last words once more, with their files."""
        own = (MessageKind.NATIVE, MessageKind.RESPONSE)
        mine = (each for each in reversed(self._messages.values()) if each.role == "user" and each.kind in own)
        if (last := next(mine, None)) is not None and last.content is not None:
            self.say(last.content, last.attachments)

    def _begin(self, said: DialogueMessage) -> None:
        self._asked = said.message_id
        self._asking = background_tasks.create(self._ask(said), name="ask")

    def stop(self) -> None:
        """Cancel the answer; what has come of it is kept."""
        if self._asking is not None and not self._asking.done():
            cancel_answer(self.session.backend, self.user_id, self._asked)
        self._end_asking()

    def _end_asking(self) -> None:
        """Stop streaming the answer; it is stored all the same."""
        if self._asking is not None and not self._asking.done():
            self._asking.cancel()
        self._end_growing()

    async def _ask(self, said: DialogueMessage) -> None:
        session = self.session
        with self._tail:
            self._growing = growing = StreamingAnswer(session.i18n, self.stop)
        pieces = send_message(session.backend, self.user_id, said.content or "", said.message_id, said.attachments)
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    if isinstance(piece, Answered):
                        self._settle(piece)
                    else:
                        growing.add(piece)
        except EXPECTED_ERRORS as error:
            self._end_growing()
            self._offer_retry(said, session.i18n("chat.unanswered"), error_text(session.i18n, error))

    def _settle(self, answer: Answered) -> None:
        message = self._message(answer.response_id, "assistant", answer.response)
        made_with = answer.model_dump(include={"kem_ids", "episodes", "memory", "model_use"})
        self.receive(DialogueMessage.model_validate(message.model_dump() | made_with))
        self._end_growing()

    def _message(
        self,
        message_id: str,
        role: Literal["user", "assistant"],
        content: str,
        files: tuple[Attachment, ...] = (),
    ) -> DialogueMessage:
        # What cannot be said is refused by the assistant, which says why.
        return DialogueMessage.model_construct(
            message_id=message_id,
            user_id=self.user_id,
            role=role,
            content=content,
            time=datetime.now(UTC),
            attachments=files,
        )

    def _offer_retry(self, said: DialogueMessage, what: str, why: str = "") -> None:
        with self._tail, box("mb-trouble") as failed:

            def retry() -> None:
                failed.delete()
                self._begin(said)

            with box("mb-stack mb-grow"):
                text(what)
                text(why, "mb-meta")
            button(self.session.i18n("retry"), retry, "mb-small", "replay")

    def _end_growing(self) -> None:
        self._growing = None
        self._tail.clear()

    async def _load(self) -> None:
        """The next older page; at first the newest."""
        page = await history(self.user_id, self.session.backend, self._older, MESSAGES_PAGE)
        self._older = page.next_cursor
        # Somebody may have written already.
        self._messages = {message.message_id: message for message in reversed(page.items)} | self._messages
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
                button(self.session.i18n("chat.older"), self._load, "mb-quiet mb-small", "up")
        for message in self._messages.values():
            self.delegations.draw_until(message.time)
            self._show(message)
        self.delegations.draw_until()

    def _show(self, message: DialogueMessage) -> None:
        if message.kind is MessageKind.HIDDEN:
            self._instruction = message
            return
        i18n = self.session.i18n
        with self._entries:
            day = i18n.day(message.time, datetime.now(UTC))
            if day != self._last_day:
                self._last_day = day
                text(day, "mb-day", "h3")
            if message.kind is MessageKind.NOTIFICATION:
                notice = self._notices[message.message_id] = NotificationView(i18n, message, self._instruction)
                notice.explain(self.profile.reasons(message.message_id))
            else:
                thumbs = show_message(i18n, message, self._actions)
                if thumbs is not None:
                    self._thumbs[message.message_id] = thumbs
                if message.role == "assistant":
                    self.delegations.pass_answer(message.time)

    async def _rate(self, message_id: str, rating: Rating | None) -> bool:
        given = AnswerRating(rating=rating)
        return await self.session.attempt(rate(self.user_id, message_id, given, self.session.backend))

    async def _show_calls(self, message_id: str) -> None:
        user_id, backend = self.profile.user_id, self.session.backend
        await show_calls(self.session.i18n, lambda cursor: calls_of_message(user_id, message_id, backend, cursor))


_KNOWN_SINCE = timedelta(days=14)
_EVENTS_PAGE = 500
_MAX_PAGES = 10


class DialoguePane:
    """Opens a dialogue, keeps it up to date, sends what is written."""

    def __init__(self, session: PageSession, user_id: str, on_close: Callable[[str], None] | None) -> None:
        self.session, self.user_id = session, user_id
        self._name, self.profile = session.backend.names.of(user_id), UserProfile(user_id)
        with attributes(box("mb-pane", "section"), aria_label=self._name):
            self._head(on_close)
            with attributes(scroller("mb-talk"), role="log", aria_live="polite") as talk:
                column = box("mb-column")
            self.part = ScreenSection(session.i18n, column)
            self.conversation = ConversationView(session, user_id, self.profile, column, talk)
            MessageComposer(session, user_id, self._name, self.conversation.say)

    async def open(self) -> None:
        await self.part.attempt(self.conversation.open)
        await self.part.attempt(self._learn)
        self.conversation.explain()

    def receive(self, envelope: Envelope) -> bool:
        """Process an event of this user; True if agents have reported something new."""
        data = envelope.data or {}
        if data.get("chat_id") == self.user_id:
            self.conversation.delegations.receive([envelope])
            return False
        if self.user_id not in (data.get("user_id"), data.get("to_user")):
            return False
        if envelope.type == MessageStored.wire.type:
            self.conversation.receive(MessageStored.model_validate(data))
            return False
        if envelope.type == AnswerRated.wire.type:
            self.conversation.show_rating(AnswerRated.model_validate(data))
            return False
        if not self.profile.learn([envelope]):
            return False
        self.conversation.explain()
        return True

    def show_state(self, dialogue: Dialogue | None) -> None:
        i18n = self.session.i18n
        if dialogue is None:
            self._state.set_text("")
            return
        ends_at = dialogue.last_activity + timedelta(minutes=self.session.backend.settings.dialogue_timeout_minutes)
        left_s = max((ends_at - datetime.now(UTC)).total_seconds(), 0)
        stands = i18n("chat.fragment_in", time=i18n.clock(left_s)) if dialogue.is_active else i18n("chat.rests")
        self._state.set_text(f"{i18n.count('chat.messages', dialogue.messages)} · {stands}")

    async def _learn(self) -> None:
        query = GetTimeline(
            since=datetime.now(UTC) - _KNOWN_SINCE, user_id=self.user_id, topics=TOPICS, limit=_EVENTS_PAGE
        )
        events, _ = await self.session.read_timeline(query, _MAX_PAGES)
        self.profile.learn(event.envelope for event in events)

    def _head(self, on_close: Callable[[str], None] | None) -> None:
        i18n, user = self.session.i18n, self.user_id
        with box("mb-pane-head"):
            with attributes(anchor("/chat", classes="mb-ib mb-back"), aria_label=i18n("back")):
                icon("left")
            person(user, self._name)
            with box("mb-stack mb-grow"):
                attributes(text(self._name, "mb-pane-name mb-ell", "h2"), title=user)
                self._state = text("", "mb-meta mb-ell")
            icon_link("timeline", i18n("chat.on_timeline"), f"/timeline?user={quote(user)}")
            button(i18n("chat.end"), self._end, "mb-end")
            if on_close is not None:
                icon_button("close", i18n("close"), lambda: on_close(user))

    async def _end(self) -> None:
        done = self.session.i18n("chat.ended", user=self._name)
        await self.session.attempt(end_dialogue(self.user_id, self.session.backend), done)
