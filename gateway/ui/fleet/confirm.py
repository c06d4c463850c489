"""Asks before what cannot be undone."""

from gateway.ui.components import box, button, field, popup, text
from gateway.ui.i18n import Localizer


async def confirm(i18n: Localizer, title: str, explained: str, do: str, number: int) -> bool:
    """Whether to go on; for several things their number is to be typed."""
    typed = {"number": ""}
    with popup(title, role="alertdialog") as dialog:
        text(title, "", "h2")
        text(explained, "", "p")

        def write(value: str) -> None:
            typed["number"] = value.strip()

        if number > 1:
            text(i18n("confirm.type", n=number), "mb-meta", "p")
            field(i18n("confirm.number"), "", write, inputmode="numeric", autofocus=True)
        with box("mb-actions"):
            with button(i18n("cancel"), lambda: dialog.submit(False), "mb-quiet"):
                text("Esc", "mb-kbd")

            def go() -> None:
                if number == 1 or typed["number"] == str(number):
                    dialog.submit(True)

            button(do, go, "mb-danger")
    return bool(await dialog)
