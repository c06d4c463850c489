"""What the episodes screen says where it has nothing to show."""

from gateway.ui.icons import icon
from gateway.ui.parts import box, copy_button, show_if, text
from gateway.ui.words import Words

_COMMAND = "mindbus episodes import chats.jsonl"


class Nothing:
    """An empty memory is another thing than a list without what is looked for."""

    def __init__(self, words: Words) -> None:
        self.words = words
        with box("mb-empty mb-hidden") as self._element:
            icon("memory")
            self._title = text("", "mb-title", "h2")
            self._text = text("", "", "p")
            with box("mb-cli") as self._cli:
                text("$", "mb-t3")
                text(_COMMAND, "mb-ell")
                copy_button(words, _COMMAND)

    def show(self, *, is_empty: bool, is_narrowed: bool) -> None:
        """In the place of the list."""
        key = "none_fits" if is_narrowed else "empty"
        self._title.set_text(self.words(f"episodes.{key}_title"))
        self._text.set_text(self.words(f"episodes.{key}"))
        show_if(self._cli, not is_narrowed)
        show_if(self._element, is_empty)
