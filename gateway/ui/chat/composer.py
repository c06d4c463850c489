"""The composer: what is written to the assistant, with the files that go with it."""

import json
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from bus_schema.dialogue import MAX_MESSAGE_CHARS
from bus_schema.message_parts import Attachment
from gateway.ui.components import attributes, box, icon_button, refill, show_if, text
from gateway.ui.page_session import PageSession
from gateway.ui.svg import icon

Say = Callable[[str, Sequence[Attachment]], Any]


class MessageComposer:
    """Files are stored as artifacts when they are chosen, and go with the next message."""

    def __init__(self, session: PageSession, user_id: str, name: str, say: Say) -> None:
        self._session, self._say = session, say
        self._files: list[Attachment] = []
        i18n = session.i18n
        with box("mb-composer-place"), box("mb-composer"):
            self._chips = box("mb-composer-files mb-line-x mb-wrap mb-hidden")
            with box("mb-composer-line"):
                choosing = attributes(box("mb-hidden", "input"), type="file", multiple=True)
                attributes(choosing, aria_label=i18n("chat.attach"), data_attach=user_id)
                store = json.dumps(f"/api/dialogues/{quote(user_id, safe='')}/attachments")
                choosing.on("change", self._attached, js_handler=f"(event) => mbAttach(event.target, {store}, emit)")
                attach = icon_button("attach", i18n("chat.attach"), classes="mb-attach")
                attach.on("click", js_handler=f"() => getHtmlElement({choosing.id}).click()")
                label = i18n("chat.message_for", user=name)
                area = attributes(box("", "textarea"), rows=1, placeholder=label, aria_label=label)
                attributes(area, maxlength=MAX_MESSAGE_CHARS, data_composer=user_id)
                area.on("input", js_handler="(event) => mbGrow(event.target)")
                area.on("keydown", self._send, js_handler="(event) => mbComposerKey(event, emit)")
                text(i18n("chat.shift_enter"), "mb-meta mb-hint")
                send = icon_button("send", i18n("chat.send"), classes="mb-send")
                send.on("click", self._send, js_handler=f"() => mbTake(getHtmlElement({area.id}), emit)")

    def _attached(self, event: Any) -> None:
        """A file that has been stored, or why it has not."""
        if error := event.args.get("error"):
            self._session.say(error, is_error=True)
            return
        self._files.append(Attachment.model_validate(event.args))
        self._show()

    def _remove(self, file: Attachment) -> None:
        self._files.remove(file)
        self._show()

    def _send(self, event: Any) -> None:
        files, self._files = tuple(self._files), []
        self._show()
        if words := str(event.args) if str(event.args).strip() else ", ".join(file.name for file in files):
            self._say(words, files)

    def _show(self) -> None:
        i18n = self._session.i18n
        show_if(self._chips, self._files)
        with refill(self._chips):
            for file in self._files:
                with box("mb-artifact-chip mb-attached"):
                    icon("file", "mb-i14")
                    text(file.name, "mb-ell")
                    text(i18n.bytes(file.ref.size_bytes), "mb-cap mb-t3 mb-num")
                    icon_button("close", i18n("chat.detach", name=file.name), lambda file=file: self._remove(file))
