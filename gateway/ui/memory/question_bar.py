"""Where a question to memory is written."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nicegui.element import Element
from pydantic import ValidationError

from bus_schema.envelope import explain
from bus_schema.kem_query import KemQuery
from gateway.ui.memory.question import Question
from gateway.ui.parts import attributes, box, button, field, search, show_if, text
from gateway.ui.words import Words
from memory.errors import MalformedFilter
from memory.questions import CannotBeAsked

_EXAMPLE = "metadata.kind=fact AND (metadata.lang=ru OR metadata.lang=en)"


class QuestionBar:
    """Words above, a filter below; what is wrong with the filter is shown where it is."""

    def __init__(self, words: Words, place: Element, question: Question, ask: Callable[[Question], Any]) -> None:
        self.words, self.question, self._ask = words, question, ask
        with place, box("mb-question"):
            with box("mb-line-x mb-question-line"):
                asked = search(words("memory.search"), self._write, question.text).classes("mb-grow mb-question-text")
                asked.on("keydown.enter", self.go)
                button(words("memory.find"), self.go, "mb-primary")
            narrowed = field(
                words("memory.filter"), question.filter, self._narrow, placeholder=_EXAMPLE, spellcheck="false"
            ).classes("mb-mono mb-question-filter")
            self._filter = narrowed.on("keydown.enter", self.go)
            with attributes(box("mb-wrong mb-hidden"), role="alert") as self._wrong:
                self._said = text("", "mb-err")
                self._where = text("", "mb-mono mb-where", "pre")

    def query(self) -> KemQuery | None:
        """As memory is asked; none where the filter makes no sense, which is told."""
        try:
            query = self.question.query()
        except MalformedFilter as malformed:
            said = self.words("memory.bad_filter", position=malformed.position, expected=malformed.expected)
            self._tell(said, f"{malformed.text}\n{' ' * (malformed.position - 1)}^")
            return None
        except CannotBeAsked as no:
            self._tell(str(no), "")
            return None
        except ValidationError as invalid:
            self._tell(explain(invalid), "")
            return None
        self._tell("", "")
        return query

    def go(self) -> Any:
        """Ask what is written."""
        return self._ask(self.question)

    def _write(self, said: str) -> None:
        self.question = replace(self.question, text=said)

    def _narrow(self, said: str) -> None:
        self.question = replace(self.question, filter=said)

    def _tell(self, said: str, where: str) -> None:
        show_if(self._wrong, said)
        self._said.set_text(said)
        self._where.set_text(where)
        show_if(self._where, where)
        attributes(self._filter, aria_invalid=str(bool(said)).lower()).update()
