"""What the timeline says where it has nothing to show."""

from gateway.ui.components import anchor, box, copy_button, show_if, text
from gateway.ui.i18n import Localizer
from gateway.ui.svg import icon

_COMMAND = "mindbus sim start --speed 60"


class EmptyTimeline:
    """What this is, what to do, how to do the same at a shell."""

    def __init__(self, i18n: Localizer) -> None:
        self.i18n = i18n
        with box("mb-empty mb-hidden") as self._element:
            icon("timeline")
            self._title = text(i18n("timeline.empty_title"), "mb-title", "h2")
            self._text = text(i18n("timeline.empty"), "", "p")
            with box("mb-line-x"):
                anchor("/sim", i18n("sim.start"), "mb-btn mb-primary")
                anchor("/chat", i18n("timeline.open_chat"), "mb-btn")
            with box("mb-cli"):
                text("$", "mb-t3")
                text(_COMMAND, "mb-ell")
                copy_button(i18n, _COMMAND)

    def explain(self, *, has_earlier: bool) -> None:
        """A quiet stretch is not an empty bus."""
        key = "quiet" if has_earlier else "empty"
        self._title.set_text(self.i18n(f"timeline.{key}_title"))
        self._text.set_text(self.i18n(f"timeline.{key}"))

    def show(self, *, is_empty: bool) -> None:
        """In the place of the marks."""
        show_if(self._element, is_empty)
