"""Sections of screens: errors, of which each has its own, empty states, and which of several readings counts."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from nicegui.element import Element

from gateway.problems import EXPECTED, Problem
from gateway.ui.components import anchor, attributes, box, button, copy_button, show_if, text, toggle
from gateway.ui.i18n import Localizer
from gateway.ui.svg import icon
from mindbus.errors import BusUnavailable

EXPECTED_ERRORS: Final = EXPECTED


def error_text(i18n: Localizer, error: Exception) -> str:
    if isinstance(error, BusUnavailable):
        return i18n("trouble.bus")
    problem = Problem.of(error)
    return f"{problem.code.value}: {problem.detail}"


def show_error(i18n: Localizer, error: Exception, retry: Callable[[], Any], trace: str = "") -> None:
    with attributes(box("mb-trouble"), role="alert"):
        icon("alert")
        with box("mb-stack mb-grow"):
            text(i18n("trouble.part"), "mb-medium")
            text(error_text(i18n, error) + (f" · {trace}" if trace else ""), "mb-meta")
        button(i18n("retry"), retry, "mb-small", "replay")


class ScreenSection:
    """A section that fails by itself: its last content stays, dimmed, below the error."""

    def __init__(self, i18n: Localizer, place: Element) -> None:
        self.i18n, self.place = i18n, place
        # Shown until the first attempt has ended.
        self.placeholder: Element | None = None
        self._failed: Callable[[], Coroutine[Any, Any, None]] | None = None
        with place:
            self._notice = box("mb-part-notice mb-hidden")
        self._notice.move(place, target_index=0)

    async def attempt(self, work: Callable[[], Coroutine[Any, Any, None]], trace: str = "") -> bool:
        """Run the work and show its error, if any; True if it succeeded."""
        try:
            await work()
        except EXPECTED_ERRORS as error:
            self._failed = work
            self._show_notice(is_shown=True)
            with self._notice:
                show_error(self.i18n, error, partial(self.attempt, work, trace), trace)
        else:
            self._failed = None
            self._show_notice(is_shown=False)
        self.settle()
        return self._failed is None

    def settle(self) -> None:
        """Remove the placeholder."""
        if self.placeholder is not None:
            self.placeholder.delete()
            self.placeholder = None

    async def retry_if_failed(self) -> None:
        if self._failed is not None:
            await self.attempt(self._failed)

    def _show_notice(self, *, is_shown: bool) -> None:
        self._notice.clear()
        show_if(self._notice, is_shown)
        toggle(self.place, "mb-failed", is_on=is_shown)


class LatestReading:
    """Of readings that overlap, the one that was begun last counts, whichever ends first."""

    def __init__(self) -> None:
        self._begun = 0

    def begin(self) -> Callable[[], bool]:
        """Begin a reading; what is returned tells whether it is still the latest."""
        self._begun += 1
        own = self._begun
        return lambda: self._begun == own


class EmptyState:
    """Shown in the place of an empty list: title, text, buttons and the command that would fill it."""

    def __init__(
        self,
        i18n: Localizer,
        icon_name: str,
        command: str,
        buttons: Callable[[], object] | None = None,
        key: str | None = None,
    ) -> None:
        self.i18n = i18n
        with box("mb-empty mb-hidden") as self._element:
            icon(icon_name)
            self._title = text("", "mb-title", "h2")
            self._text = text("", "", "p")
            if buttons is not None:
                with box("mb-line-x"):
                    buttons()
            with box("mb-cli") as self._cli:
                text("$", "mb-t3")
                text(command, "mb-ell")
                copy_button(i18n, command)
        if key is not None:
            self.explain(key)

    def explain(self, key: str, *, has_command: bool = True) -> None:
        """Set the messages `key_title` and `key`."""
        self._title.set_text(self.i18n(f"{key}_title"))
        self._text.set_text(self.i18n(key))
        show_if(self._cli, has_command)

    def show(self, *, is_empty: bool) -> None:
        """Show or hide it; it stays hidden until it has been explained."""
        show_if(self._element, is_empty and self._title.text)


def draw_not_found(i18n: Localizer, open_palette: Callable[[], Any]) -> None:
    """Content of an address that leads nowhere, with ways on."""
    with box("mb-empty"):
        icon("alert")
        text(i18n("error.not_found_title"), "mb-title", "h2")
        text(i18n("error.not_found"), "", "p")
        with box("mb-line-x"):
            anchor("/timeline", i18n("error.to_timeline"), "mb-btn mb-primary")
            button(i18n("find"), open_palette, "", "search")


def draw_failure(i18n: Localizer) -> None:
    """Content of a screen that met an error which nobody had foreseen."""
    with box("mb-empty"):
        icon("alert")
        text(i18n("error.failed_title"), "mb-title", "h2")
        text(i18n("error.failed"), "", "p")
        with box("mb-line-x"):
            anchor("", i18n("error.reload"), "mb-btn mb-primary")
            anchor("/fleet", i18n("error.to_fleet"), "mb-btn")
