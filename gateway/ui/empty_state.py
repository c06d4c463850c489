"""The empty state of a screen."""

from collections.abc import Callable

from gateway.ui.components import box, copy_button, show_if, text
from gateway.ui.i18n import Localizer
from gateway.ui.svg import icon


class EmptyState:
    """Shown in the place of an empty list: title, text, buttons and the command that would fill it."""

    def __init__(
        self, i18n: Localizer, icon_name: str, command: str, buttons: Callable[[], object] | None = None
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

    def explain(self, key: str, *, has_command: bool = True) -> None:
        """Set the messages `key_title` and `key`."""
        self._title.set_text(self.i18n(f"{key}_title"))
        self._text.set_text(self.i18n(key))
        show_if(self._cli, has_command)

    def show(self, *, is_empty: bool) -> None:
        """Show or hide it; it stays hidden until it has been explained."""
        show_if(self._element, is_empty and self._title.text)
