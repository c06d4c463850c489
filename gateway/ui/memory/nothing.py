"""What the memory screen says where it has nothing to show."""

from gateway.ui.icons import icon
from gateway.ui.parts import box, copy_button, show_if, text
from gateway.ui.words import Words

_COMMAND = 'mindbus memory add --text "The release was moved to Friday." --meta project_id=apollo'


class Nothing:
    """An empty memory is another thing than a question without an answer."""

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

    def explain(self, *, is_memory_empty: bool) -> None:
        """Which of the two it is."""
        key = "empty" if is_memory_empty else "no_answer"
        self._title.set_text(self.words(f"memory.{key}_title"))
        self._text.set_text(self.words(f"memory.{key}"))
        show_if(self._cli, is_memory_empty)

    def show(self, *, is_empty: bool) -> None:
        """In the place of the units; not before memory has answered."""
        show_if(self._element, is_empty and self._title.text)
