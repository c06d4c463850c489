"""What a screen of memory says where it has nothing to show."""

from typing import Literal

from gateway.ui.components import box, copy_button, show_if, text
from gateway.ui.i18n import Localizer
from gateway.ui.svg import icon


class EmptyState:
    """An empty memory is another thing than a question without an answer; what fills it is a command."""

    def __init__(self, i18n: Localizer, screen: str, command: str) -> None:
        self.i18n, self.screen = i18n, screen
        with box("mb-empty mb-hidden") as self._element:
            icon("memory")
            self._title = text("", "mb-title", "h2")
            self._text = text("", "", "p")
            with box("mb-cli") as self._cli:
                text("$", "mb-t3")
                text(command, "mb-ell")
                copy_button(i18n, command)

    def explain(self, why: Literal["empty", "no_answer", "none_fits"]) -> None:
        """Which of them it is."""
        self._title.set_text(self.i18n(f"{self.screen}.{why}_title"))
        self._text.set_text(self.i18n(f"{self.screen}.{why}"))
        show_if(self._cli, why == "empty")

    def show(self, *, is_empty: bool) -> None:
        """In the place of the list; not before memory has answered."""
        show_if(self._element, is_empty and self._title.text)
