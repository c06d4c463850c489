"""One dead letter: why it died, its envelope, replay as it is or with other data."""

import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from gateway.api.fleet import EditedDeadLetter, body_of, replay_edited
from gateway.ui.components import (
    VALUE,
    anchor,
    attributes,
    box,
    button,
    copy_button,
    popup,
    refill,
    scroller,
    show_if,
    text,
)
from gateway.ui.page_session import PageSession
from gateway.ui.rich_text import json_view
from mindbus.bus.deadletters import DeadLetter

_WIRE = {"fleet.id", "fleet.origin", "fleet.trace"}
_ROWS = 14


class LetterDialog:
    """Opens at once; `replay` sends the letter back, `on_change` looks at the queue again."""

    def __init__(
        self,
        session: PageSession,
        letter: DeadLetter,
        replay: Callable[[], Awaitable[None]],
        on_change: Callable[[], Awaitable[None]],
    ) -> None:
        self._session, self._letter, self._on_change = session, letter, on_change
        self._replay = replay
        self._body = body_of(letter)
        self._written = ""
        with popup(letter.type, "mb-dialog mb-wide") as self._dialog:
            self._draw()

    def _draw(self) -> None:
        i18n, letter = self._session.i18n, self._letter
        with box("mb-line-x"):
            text(letter.type, "mb-mono mb-strong mb-ell mb-grow", "h2")
            copy_button(i18n, letter.body.decode("utf-8", errors="replace"))
        text(i18n.named("dead", letter.code), "", "p")
        with box("mb-facts"):
            for name, value in _facts(letter):
                text(i18n(name))
                text(value, "mb-mono" if name in _WIRE else "")
        with box() as self._place:
            self._show_body()
        self._problem = attributes(text("", "mb-err mb-meta"), role="alert")
        with box("mb-actions"):
            if letter.trace_id:
                anchor(f"/timeline?trace={quote(letter.trace_id)}", i18n("fleet.on_timeline"), "mb-btn mb-quiet")
            self._edit = button(i18n("fleet.edit"), self._begin, "", "columns")
            show_if(self._edit, isinstance(self._body, dict))
            self._go = button(i18n("fleet.replay"), self._send, "mb-primary", "replay")

    def _show_body(self) -> None:
        with scroller("mb-letter-body"):
            if isinstance(self._body, str):
                text(self._body, "mb-json", "pre")
            else:
                json_view(self._body)

    def _begin(self) -> None:
        i18n, data = self._session.i18n, self._body.get("data") if isinstance(self._body, dict) else {}
        self._written = json.dumps(data, ensure_ascii=False, indent=2)
        show_if(self._edit, is_shown=False)
        with refill(self._place):
            text(i18n("fleet.data"), "mb-label")
            area = text(self._written, "mb-input mb-area mb-mono", "textarea")
            attributes(area, rows=_ROWS, spellcheck="false", aria_label=i18n("fleet.data"))
            area.on("input", lambda event: setattr(self, "_written", str(event.args)), js_handler=VALUE)

    async def _send(self) -> None:
        if not self._written:
            self._dialog.close()
            await self._replay()
            return
        i18n = self._session.i18n
        try:
            edited = EditedDeadLetter(data=json.loads(self._written))
        except ValueError as error:
            # Of pydantic, too: the data are an object.
            place = f" ({error.lineno}:{error.colno})" if isinstance(error, json.JSONDecodeError) else ""
            self._set_problem(i18n("fleet.bad_data") + place)
            return
        letter, backend = self._letter, self._session.backend
        work = replay_edited(letter.service, letter.message_id, edited, backend)
        if await self._session.attempt(work, i18n.count("fleet.replayed", 1)):
            self._dialog.close()
            await self._on_change()

    def _set_problem(self, problem: str) -> None:
        with refill(self._problem):
            text(problem)


def _facts(letter: DeadLetter) -> list[tuple[str, Any]]:
    return [
        ("fleet.reason", f"{letter.code}: {letter.reason}"),
        ("fleet.id", letter.message_id),
        ("fleet.origin", letter.origin),
        ("fleet.requester", letter.requester or "–"),
        ("fleet.trace", letter.trace_id or "–"),
        ("fleet.attempt", str(letter.attempt)),
    ]
