"""What is said of an answer as a whole."""

from collections.abc import Callable, Sequence
from typing import Any

from gateway.ui.memory.found import Found
from gateway.ui.memory.results import Hit
from gateway.ui.parts import attributes, box, show_if, text
from gateway.ui.words import Words


class AnswerLine:
    """How many units, how soon, what the colours mean, what has changed since."""

    def __init__(self, words: Words, refresh: Callable[[], Any]) -> None:
        self.words = words
        with box("mb-found-line"):
            self._count = text("", "mb-medium")
            attributes(self._count, aria_live="polite")
            self._took = text("", "mb-meta mb-num mb-grow")
            self._degraded = text(words("memory.degraded"), "mb-meta mb-warn mb-hidden")
            with box("mb-line-x mb-not-phone mb-hidden") as self._legend:
                for key, colour in (("memory.lexical", "processed"), ("memory.dense", "process")):
                    with box("mb-line-x mb-cap"):
                        box("mb-legend-box", "i").style(f"--c: var(--{colour})")
                        text(words(key), "mb-t2")
            with attributes(box("mb-btn mb-small mb-hidden", "button"), type="button") as self._fresh:
                self._fresh_said = text("")
            self._fresh.on("click", refresh)

    def took(self, seconds: float) -> None:
        """How soon it came."""
        self._took.set_text(self.words("memory.took", time=self.words.seconds(seconds)))

    def show(self, found: Found, hits: Sequence[Hit]) -> None:
        """As it stands."""
        words = self.words
        first = "memory.first" if found.next_cursor else "memory.found"
        self._count.set_text(words.count(first, len(hits)))
        show_if(self._degraded, found.is_degraded)
        show_if(self._legend, any(hit.found.explain for hit in hits))
        show_if(self._fresh, found.fresh)
        self._fresh_said.set_text(words.count("memory.fresh", len(found.fresh)))
