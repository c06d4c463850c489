"""One dialogue with its header and the message composer."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from bus_schema.conversations import Dialogue, MessageStored
from bus_schema.dialogue import MAX_MESSAGE_CHARS
from bus_schema.envelope import Envelope
from bus_schema.timeline import GetTimeline
from gateway.api.dialogues import end_dialogue
from gateway.ui.chat.conversation import ConversationView
from gateway.ui.chat.user_profile import TOPICS, UserProfile
from gateway.ui.components import anchor, attributes, box, button, icon_button, person, text
from gateway.ui.errors import ScreenSection
from gateway.ui.page_session import PageSession
from gateway.ui.svg import icon

_KNOWN_SINCE = timedelta(days=14)
_PAGE = 500
_MAX_PAGES = 10


class DialoguePane:
    """Opens a dialogue, keeps it up to date, sends what is written."""

    def __init__(self, session: PageSession, user_id: str, on_close: Callable[[str], None] | None) -> None:
        self.session, self.user_id = session, user_id
        self.profile = UserProfile()
        with attributes(box("mb-pane", "section"), aria_label=user_id) as self.element:
            self._head(on_close)
            self._scroll = attributes(box("mb-scroll mb-talk"), role="log", aria_live="polite")
            with self._scroll:
                column = box("mb-column")
            self.part = ScreenSection(session.i18n, column)
            self.conversation = ConversationView(session, user_id, self.profile, column)
            self.conversation.scroller = self._scroll
            self._composer()

    async def open(self) -> None:
        await self.part.attempt(self.conversation.open)
        await self.part.attempt(self._learn)
        self.conversation.explain()

    def hear(self, envelope: Envelope) -> bool:
        """Process an event of this user; True if agents have reported something new."""
        data = envelope.data or {}
        if data.get("chat_id") == self.user_id:
            self.conversation.delegations.hear([envelope])
            return False
        if self.user_id not in (data.get("user_id"), data.get("to_user")):
            return False
        if envelope.type == MessageStored.wire.type:
            self.conversation.hear(MessageStored.model_validate(data))
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
        query = GetTimeline(since=datetime.now(UTC) - _KNOWN_SINCE, user_id=self.user_id, topics=TOPICS, limit=_PAGE)
        events, _ = await self.session.read_timeline(query, _MAX_PAGES)
        self.profile.learn(event.envelope for event in events)

    def _head(self, on_close: Callable[[str], None] | None) -> None:
        i18n, user = self.session.i18n, self.user_id
        with box("mb-pane-head"):
            with attributes(anchor("/chat", classes="mb-ib mb-back"), aria_label=i18n("back")):
                icon("left")
            person(user, user)
            with box("mb-stack mb-grow"):
                text(user, "mb-pane-name mb-ell", "h2")
                self._state = text("", "mb-meta mb-ell")
            with attributes(
                anchor(f"/timeline?user={quote(user)}", classes="mb-ib"), title=i18n("chat.on_timeline")
            ) as to:
                attributes(to, aria_label=i18n("chat.on_timeline"))
                icon("timeline")
            button(i18n("chat.end"), self._end, "mb-end")
            if on_close is not None:
                icon_button("close", i18n("close"), lambda: on_close(user))

    async def _end(self) -> None:
        i18n = self.session.i18n
        await self.session.attempt(
            end_dialogue(self.session.backend, self.user_id), i18n("chat.ended", user=self.user_id)
        )

    def _composer(self) -> None:
        i18n = self.session.i18n
        with box("mb-composer-place"), box("mb-composer"):
            area = attributes(
                box("", "textarea"),
                rows=1,
                placeholder=i18n("chat.message_for", user=self.user_id),
                aria_label=i18n("chat.message_for", user=self.user_id),
                maxlength=MAX_MESSAGE_CHARS,
                data_composer=self.user_id,
            )
            area.on("input", js_handler="(event) => mbGrow(event.target)")
            area.on("keydown", self._send, js_handler="(event) => mbComposerKey(event, emit)")
            text(i18n("chat.shift_enter"), "mb-meta mb-hint")
            send = icon_button("send", i18n("chat.send"), classes="mb-send")
            take = f"() => mbTake(document.querySelector('textarea[data-composer={json.dumps(self.user_id)}]'), emit)"
            send.on("click", self._send, js_handler=take)

    def _send(self, event: object) -> None:
        self.conversation.say(str(getattr(event, "args", "")))
