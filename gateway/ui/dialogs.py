"""Dialogs: confirmation of what cannot be undone, a prompt for a user."""

from collections.abc import Callable

from gateway.ui.components import attributes, box, button, field, popup, text
from gateway.ui.i18n import Localizer


async def confirm(i18n: Localizer, title: str, explanation: str, action: str, number: int) -> bool:
    """True if confirmed; for several items their number must be typed."""
    typed = {"number": ""}
    with popup(title, role="alertdialog") as dialog:
        text(title, "", "h2")
        text(explanation, "", "p")
        if number > 1:
            text(i18n("confirm.type", n=number), "mb-meta", "p")
            line = field(i18n("confirm.number"), "", lambda value: typed.update(number=value), inputmode="numeric")
            attributes(line, autofocus=True)
        with box("mb-actions"):
            with button(i18n("cancel"), lambda: dialog.submit(False), "mb-quiet"):
                text("Esc", "mb-kbd")

            def go() -> None:
                if number == 1 or typed["number"].strip() == str(number):
                    dialog.submit(True)

            button(action, go, "mb-danger")
    return bool(await dialog)


def prompt_user(
    i18n: Localizer,
    key: str,
    user_id: str,
    on_submit: Callable[[str], str | None] | Callable[[str], None],
    action: str = "timeline.show",
) -> None:
    """Ask for a user id; `on_submit` acts on it or returns what is wrong with it. Messages: `key`, `key_hint`."""
    typed = {"user": user_id}

    def go() -> None:
        problem.set_text(on_submit(typed["user"].strip()) or "")

    with popup(i18n(key)):
        text(i18n(key), "", "h2")
        text(i18n(f"{key}_hint"), "", "p")
        line = field(i18n("chat.user"), user_id, lambda value: typed.update(user=value), placeholder="alice")
        attributes(line, autofocus=True).on("keydown.enter", go)
        problem = text("", "mb-err mb-meta")
        with box("mb-actions"):
            button(i18n(action), go, "mb-primary")
