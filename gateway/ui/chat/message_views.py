"""Views of user messages, answers, notifications with their reasons, and streamed answers."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, get_args
from urllib.parse import quote, urlencode

from bus_schema.artifacts import ArtifactRef
from bus_schema.conversations import may_be_rated
from bus_schema.dialogue import HIDDEN_MARK, DialogueMessage
from bus_schema.message_parts import Rating, RecalledEpisode
from bus_schema.notification import NotificationGenerated
from bus_schema.replies import restarts
from gateway.ui.components import (
    anchor,
    attributes,
    box,
    button,
    clickable,
    fold,
    icon_button,
    moment,
    refill,
    text,
    update,
)
from gateway.ui.i18n import Localizer
from gateway.ui.rich_text import markdown
from gateway.ui.svg import icon


@dataclass(frozen=True)
class AnswerActions:
    """Actions on an answer: asking for another, showing the calls behind it, and rating it, where the reader may."""

    again: Callable[[], Any]
    show_calls: Callable[[str], Awaitable[None]]
    rate: Callable[[str, Rating | None], Awaitable[bool]] | None


def show_message(i18n: Localizer, message: DialogueMessage, actions: AnswerActions) -> "AnswerThumbs | None":
    """A message of the user with its files, or an answer; the thumbs of an answer that the reader may rate."""
    is_user = message.role == "user"
    with attributes(box("mb-said" if is_user else "mb-answer"), data_message=message.message_id):
        _content(i18n, message, is_markdown=not is_user)
        if is_user:
            moment(i18n, message.time, i18n.hour(message.time))
            _show_files(i18n, message)
        else:
            _show_memory(i18n, message)
            return _show_foot(i18n, message, actions)
    return None


def _show_files(i18n: Localizer, message: DialogueMessage) -> None:
    if not message.attachments:
        return
    with box("mb-files mb-line-x mb-wrap"):
        for file in message.attachments:
            target = f"/artifacts/{quote(file.ref.artifact_id)}?trace={quote(message.trace_id)}"
            with attributes(anchor(target, classes="mb-artifact-chip"), title=file.name):
                icon("file", "mb-i14")
                text(file.name, "mb-ell")
                text(i18n.bytes(file.ref.size_bytes), "mb-cap mb-t3 mb-num")


def _show_foot(i18n: Localizer, message: DialogueMessage, actions: AnswerActions) -> "AnswerThumbs | None":
    """The model that wrote an answer, its tokens, its calls, its rating; the last answer can be asked for again."""
    use, thumbs = message.model_use, None
    with box("mb-answer-foot mb-line-x mb-meta"):
        if use is not None:
            text(use.model_name, "mb-ell")
            if use.prompt_tokens or use.completion_tokens:
                tokens = i18n.count("chat.tokens", use.prompt_tokens + use.completion_tokens)
                about = i18n(
                    "chat.tokens_in_out", n=i18n.number(use.prompt_tokens), m=i18n.number(use.completion_tokens)
                )
                attributes(text(tokens, "mb-num"), title=about)
            icon_button("eye", i18n("calls.title"), lambda: actions.show_calls(message.message_id), "mb-answer-calls")
        if actions.rate is not None and may_be_rated(message):
            thumbs = AnswerThumbs(i18n, message.rating, partial(actions.rate, message.message_id))
        with clickable("mb-again mb-line-x", actions.again, title=i18n("chat.again_about")):
            icon("replay", "mb-i14")
            text(i18n("retry"))
    return thumbs


class AnswerThumbs:
    """The rating of an answer as two toggle buttons, at most one of them pressed; pressing that one withdraws it."""

    def __init__(
        self, i18n: Localizer, rating: Rating | None, on_rate: Callable[[Rating | None], Awaitable[bool]]
    ) -> None:
        self._on_rate = on_rate
        with attributes(box("mb-thumbs"), role="group", aria_label=i18n("chat.rating")):
            self._buttons = {
                each: icon_button(each, i18n(f"chat.{each}"), partial(self._press, each), "mb-thumb")
                for each in get_args(Rating)
            }
        self.show(rating)

    def show(self, rating: Rating | None) -> None:
        self._rating = rating
        for each, element in self._buttons.items():
            if not element.is_deleted:
                update(element, aria_pressed=each == rating)

    async def _press(self, pressed: Rating) -> None:
        """Show the new rating at once, the former one again if it could not be kept."""
        former = self._rating
        self.show(None if pressed == former else pressed)
        if not await self._on_rate(self._rating):
            self.show(former)


def _show_memory(i18n: Localizer, message: DialogueMessage) -> None:
    """The memory that an answer was made with: links to what it used, the rest folded."""
    used = [each for each in message.episodes if each.used]
    seen = [each for each in message.episodes if not each.used]
    if message.memory is not None:
        with box("mb-line-x mb-recalled"):
            icon("alert", "mb-i14")
            text(i18n(f"chat.memory_{message.memory}"))
    if not (message.episodes or message.kem_ids):
        return
    with box("mb-recalled"):
        with box("mb-line-x") as line:
            icon("memory", "mb-i14")
            text(i18n("chat.remembered" if used else "chat.memory_looked_at"))
            for episode in used:
                _episode_link(i18n, episode, message.time)
        rest = len(seen) + len(message.kem_ids)
        body = box("mb-line-x mb-recalled-body mb-hidden")
    if rest:
        with line, clickable("mb-link", lambda: fold(more, body), aria_expanded=False) as more:
            text(i18n.count("chat.memory_more", rest))
    with body:
        for episode in seen:
            _episode_link(i18n, episode, message.time)
        for place, kem_id in enumerate(message.kem_ids, 1):
            target = f"/memory?{urlencode({'kem': kem_id, 'user': message.user_id})}"
            attributes(anchor(target, i18n("chat.memory_unit", n=place)), title=kem_id)


def _episode_link(i18n: Localizer, episode: RecalledEpisode, answered_at: datetime) -> None:
    """A link to an episode by its day; an uncertain one has a question mark."""
    label = i18n.date(episode.time, answered_at) + (" ?" if episode.is_uncertain else "")
    link = anchor(f"/episodes?{urlencode({'episode': episode.episode_id})}", label)
    attributes(link, data_episode=episode.episode_id)
    if episode.is_uncertain:
        attributes(link, title=i18n("chat.memory_uncertain"))


class NotificationView:
    """A notification with the agents that requested it and the instruction to the assistant."""

    def __init__(self, i18n: Localizer, message: DialogueMessage, instruction: DialogueMessage | None) -> None:
        self.i18n, self._instruction = i18n, instruction
        label = i18n("chat.notification")
        with attributes(box("mb-notice", "section"), aria_label=label, data_message=message.message_id):
            with box("mb-line-x"):
                icon("bell")
                text(label, "mb-notice-title")
                self._route = text("", "mb-meta")
                box("mb-grow")
                moment(i18n, message.time, i18n.hour(message.time))
            _content(i18n, message, is_markdown=True)
            with box("mb-line-x mb-meta mb-notice-foot"):
                icon("eye", "mb-i14")
                text(i18n("chat.hidden_instruction"))
                self._note = text("", "mb-ell")
                box("mb-grow")
                self._ask = attributes(
                    text(i18n("chat.why"), "mb-link", "button"), type="button", aria_expanded="false"
                )
                self._ask.on("click", self._toggle)
            self._why = box("mb-why mb-hidden")

    def explain(self, reasons: Sequence[NotificationGenerated]) -> None:
        agents = ", ".join(dict.fromkeys(reason.agent for reason in reasons))
        self._route.set_text(f"{agents} → context" if agents else "context")
        self._note.set_text(reasons[0].context.splitlines()[0] if reasons and reasons[0].context else "")
        with refill(self._why):
            for reason in reasons:
                _fact(self.i18n("chat.wanted_by", agent=reason.agent), reason.message)
                if reason.context:
                    _fact(self.i18n("chat.context"), reason.context)
                _fact(self.i18n("chat.urgency"), self.i18n(f"urgency.{reason.urgency.value}"))
            if self._instruction and self._instruction.content:
                _fact(self.i18n("chat.was_told"), self._instruction.content.removeprefix(HIDDEN_MARK))

    def _toggle(self) -> None:
        fold(self._ask, self._why)


class StreamingAnswer:
    """An answer while it is streamed: finished paragraphs as Markdown, the last one as plain text; its speed below."""

    def __init__(self, i18n: Localizer, on_stop: Callable[[], None]) -> None:
        self.i18n = i18n
        self.content, self._began = "", time.monotonic()
        self._laid_out = 0
        with attributes(box("mb-answer"), aria_busy="true", data_growing=""):
            self._done = box("mb-growing-done")
            with box("mb-growing", "p"):
                self._last = text("", "mb-growing-text")
                box("mb-caret", "i")
        with box("mb-line-x mb-writing"):
            text(i18n("chat.writing"), "mb-acc")
            self._speed = text("", "mb-meta mb-num")
            with button(i18n("chat.stop"), on_stop, "mb-small", "stop"):
                text("Esc", "mb-kbd")

    def add(self, piece: str) -> None:
        if restarts(piece):
            self.content, self._laid_out = "", 0
            self._done.clear()
        self.content += piece
        finished, _, last = self.content.rpartition("\n\n")
        # A fence that is open yet would be laid out as something else.
        if len(finished) > self._laid_out and finished.count("```") % 2 == 0:
            with self._done:
                markdown(finished[self._laid_out :])
            self._laid_out = len(finished)
        self._last.set_text(
            self.content[self._laid_out :].lstrip("\n") if self._laid_out else last if finished else self.content
        )
        self._show_speed()

    def _show_speed(self) -> None:
        seconds = time.monotonic() - self._began
        per_second = self.i18n.number(len(self.content) / max(seconds, 0.1))
        if not self._speed.is_deleted:
            self._speed.set_text(self.i18n("chat.speed", n=per_second, s=self.i18n.seconds(seconds)))


def artifact_link(i18n: Localizer, ref: ArtifactRef, trace_id: str) -> None:
    """Link to the artifact that holds what is too long for a message."""
    target = f"/artifacts/{quote(ref.artifact_id)}?trace={quote(trace_id)}"
    anchor(target, i18n("chat.as_artifact", size=i18n.bytes(ref.size_bytes)))


def _content(i18n: Localizer, message: DialogueMessage, *, is_markdown: bool) -> None:
    if message.ref is not None:
        artifact_link(i18n, message.ref, message.trace_id)
    elif is_markdown:
        markdown(message.content or "")
    else:
        text(message.content or "", "mb-said-text")


def _fact(name: str, content: str) -> None:
    text(name, "mb-label")
    text(content, "mb-why-text", "p")
