"""Views of user messages, answers, notifications with their reasons, and streamed answers."""

from collections.abc import Sequence
from urllib.parse import quote

from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from bus_schema.dialogue import HIDDEN_MARK, DialogueMessage, MessageKind
from bus_schema.notification import NotificationGenerated
from gateway.ui.components import anchor, attributes, box, moment, show_if, text
from gateway.ui.i18n import Localizer
from gateway.ui.markdown import markdown
from gateway.ui.svg import icon


def show_user_message(i18n: Localizer, message: DialogueMessage) -> Element:
    with box("mb-said") as made:
        attributes(made, data_message=message.message_id)
        _content(i18n, message, is_markdown=False)
        moment(i18n, message.time, i18n.hour(message.time))
    return made


def show_answer(i18n: Localizer, message: DialogueMessage) -> Element:
    with box("mb-answer") as made:
        attributes(made, data_message=message.message_id)
        _content(i18n, message, is_markdown=True)
    return made


class NotificationView:
    """A notification with the agents that requested it and the instruction to the assistant."""

    def __init__(self, i18n: Localizer, message: DialogueMessage, instruction: DialogueMessage | None) -> None:
        self.i18n, self._instruction = i18n, instruction
        with box("mb-notice", "section") as self.element:
            attributes(self.element, aria_label=i18n("chat.notification"), data_message=message.message_id)
            with box("mb-line-x"):
                icon("bell")
                text(i18n("chat.notification"), "mb-notice-title")
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
        self._why.clear()
        with self._why:
            for reason in reasons:
                _fact(self.i18n("chat.wanted_by", agent=reason.agent), reason.message)
                if reason.context:
                    _fact(self.i18n("chat.context"), reason.context)
                _fact(self.i18n("chat.urgency"), self.i18n(f"urgency.{reason.urgency.value}"))
            told = (self._instruction.content or "") if self._instruction else ""
            if told:
                _fact(self.i18n("chat.was_told"), told.removeprefix(HIDDEN_MARK))

    def _toggle(self) -> None:
        is_open = "mb-hidden" in self._why.classes
        show_if(self._why, is_open)
        attributes(self._ask, aria_expanded=str(is_open).lower()).update()


class StreamingAnswer:
    """An answer while it is streamed: finished paragraphs as Markdown, the last one as plain text."""

    def __init__(self, i18n: Localizer) -> None:
        self.i18n = i18n
        self.said = ""
        self._laid_out = 0
        with box("mb-answer") as self.element:
            attributes(self.element, aria_busy="true", data_growing="")
            self._done = box("mb-growing-done")
            with box("mb-growing", "p"):
                self._last: TextElement = text("", "mb-growing-text")
                box("mb-caret", "i")

    def add(self, piece: str) -> None:
        self.said += piece
        finished, _, last = self.said.rpartition("\n\n")
        # A fence that is open yet would be laid out as something else.
        if len(finished) > self._laid_out and finished.count("```") % 2 == 0:
            with self._done:
                markdown(finished[self._laid_out :])
            self._laid_out = len(finished)
        self._last.set_text(
            self.said[self._laid_out :].lstrip("\n") if self._laid_out else last if finished else self.said
        )


def is_shown(message: DialogueMessage) -> bool:
    """True unless the message is a hidden instruction."""
    return message.kind is not MessageKind.HIDDEN


def _content(i18n: Localizer, message: DialogueMessage, *, is_markdown: bool) -> None:
    if message.ref is not None:
        anchor(
            f"/artifacts/{quote(message.ref.artifact_id)}?trace={quote(message.trace_id)}",
            i18n("chat.as_artifact", size=i18n.bytes(message.ref.size_bytes)),
        )
    elif is_markdown:
        markdown(message.content or "")
    else:
        text(message.content or "", "mb-said-text")


def _fact(name: str, content: str) -> None:
    text(name, "mb-label")
    text(content, "mb-why-text", "p")
