"""Calls of models in a dialog: prompt, tools, answer, tokens, seconds, retries."""

from collections.abc import Awaitable, Callable

from bus_schema.model_calls import SaidToModel
from gateway.api.model_calls import CallPage, KeptCall
from gateway.ui.components import attributes, box, button, clickable, fold, popup, refill, text
from gateway.ui.i18n import Localizer
from gateway.ui.sections import EXPECTED_ERRORS, error_text

FindCalls = Callable[[str | None], Awaitable[CallPage]]


async def show_calls(i18n: Localizer, find: FindCalls) -> None:
    """Open a dialog with the calls that `find` returns after a cursor."""
    with popup(i18n("calls.title"), "mb-dialog mb-wide") as dialog:
        text(i18n("calls.title"), "", "h2")
        calls = attributes(box("mb-scroll mb-calls"), tabindex="0")
        more = box("mb-actions")
        with box("mb-actions"):
            button(i18n("close"), dialog.close, "mb-quiet")

    async def fill(cursor: str | None = None) -> None:
        more.clear()
        with calls:
            try:
                page = await find(cursor)
            except EXPECTED_ERRORS as error:
                attributes(text(error_text(i18n, error), "mb-err mb-meta"), role="alert")
                return
            for kept in page.items:
                _show_call(i18n, kept)
            if cursor is None and not page.items:
                text(i18n("calls.none"), "", "p")
        if page.next_cursor is not None and page.items:
            with refill(more):
                button(i18n("calls.more"), lambda: fill(page.next_cursor), "mb-quiet")

    await fill()


def _show_call(i18n: Localizer, kept: KeptCall) -> None:
    call = kept.call
    with attributes(box("mb-call", "section"), aria_label=call.caller, data_call=kept.call_id):
        with clickable("mb-line-x mb-link", lambda: fold(line, body), aria_expanded=False) as line:
            text(" · ".join(filter(None, (call.caller, kept.step_id, call.model_name))), "mb-ell mb-grow")
            text(i18n.number(call.tokens), "mb-num")
            text(i18n.seconds(call.took_ms / 1000), "mb-num")
            if call.failure:
                text(i18n("calls.failed"), "mb-err")
        with box("mb-hidden") as body:
            _fact(i18n("calls.tokens"), i18n("calls.in_out", sent=call.prompt_tokens, got=call.completion_tokens))
            if call.retries:
                _fact(i18n("calls.retries"), i18n.number(call.retries))
            if call.tools:
                _fact(i18n("calls.tools"), ", ".join(call.tools))
            for said in call.prompt:
                _show_said(said)
            if call.answer is not None:
                _show_said(call.answer, i18n("calls.answer"))
            if call.failure:
                _fact(i18n("calls.failed"), call.failure)


def _show_said(said: SaidToModel, label: str = "") -> None:
    calls = (f"{name} {arguments}" for name, arguments in said.tool_calls)
    _fact(label or said.role, "\n".join(filter(None, (said.content, *calls))))


def _fact(name: str, content: str) -> None:
    text(name, "mb-label")
    text(content, "mb-call-text", "pre")
