"""Errors in the face and the language of the app: an address that leads nowhere, a screen that has failed."""

from collections.abc import Callable
from typing import Any

from gateway.ui.components import anchor, box, button, text
from gateway.ui.i18n import Localizer
from gateway.ui.svg import icon


def draw_not_found(i18n: Localizer, open_palette: Callable[[], Any]) -> None:
    """What an address that is none of ours shows, with ways on."""
    with box("mb-empty"):
        icon("alert")
        text(i18n("error.not_found_title"), "mb-title", "h2")
        text(i18n("error.not_found"), "", "p")
        with box("mb-line-x"):
            anchor("/timeline", i18n("error.to_timeline"), "mb-btn mb-primary")
            button(i18n("find"), open_palette, "", "search")


def draw_failure(i18n: Localizer) -> None:
    """What a screen shows that met an error which nobody had foreseen."""
    with box("mb-empty"):
        icon("alert")
        text(i18n("error.failed_title"), "mb-title", "h2")
        text(i18n("error.failed"), "", "p")
        with box("mb-line-x"):
            anchor("", i18n("error.reload"), "mb-btn mb-primary")
            anchor("/fleet", i18n("error.to_fleet"), "mb-btn")
