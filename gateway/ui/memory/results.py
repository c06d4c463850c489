"""The units that were found, with what each score is made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nicegui.element import Element

from bus_schema.glm import Explanation, FoundKem
from bus_schema.kem import Kem
from bus_schema.kem_matching import facets
from gateway.ui.icons import icon
from gateway.ui.memory.pieces import asked, changed, excerpt, show
from gateway.ui.parts import attributes, box, moment, tag, text
from gateway.ui.rows import Rows
from gateway.ui.words import Words

_LENGTH = 240
_MOST_TAGS = 4


@dataclass(frozen=True)
class Hit:
    """A unit in the list; `before` is what it said when it was found, if that has changed since."""

    found: FoundKem
    before: str | None = None
    is_gone: bool = False
    is_chosen: bool = False

    @property
    def kem(self) -> Kem:
        """As it is now, as far as is known."""
        return self.found.kem


class Results:
    """Changes as little as the answer does; a live change marks its row, never moves it."""

    def __init__(self, words: Words, place: Element, choose: Callable[[str], Any]) -> None:
        with place:
            made = box("mb-hits")
        self._rows: Rows[Hit] = Rows(made, lambda hit: _Row(words, hit, choose))

    def show(self, hits: Sequence[Hit]) -> None:
        """These, in this order."""
        self._rows.show((hit.kem.id, hit) for hit in hits)


class _Row:
    def __init__(self, words: Words, hit: Hit, choose: Callable[[str], Any]) -> None:
        self._words, kem_id = words, hit.kem.id
        self.element = attributes(box("mb-hit", "button"), type="button", data_row=kem_id, data_kem=kem_id)
        self.element.on("click", lambda: choose(kem_id))

    def show(self, hit: Hit) -> None:
        self.element.clear()
        self.element.classes(replace=f"mb-hit {'mb-gone' if hit.is_gone else ''}")
        attributes(self.element, aria_pressed=str(hit.is_chosen).lower()).update()
        with self.element:
            with box("mb-hit-top"):
                with box("mb-hit-text mb-grow"):
                    show(_pieces(hit, self._words))
                if hit.found.score is not None:
                    text(self._words.number(hit.found.score, 2), "mb-num mb-strong")
            if hit.found.score is not None:
                score_bar(self._words, hit.found.score, hit.found.explain)
            self._foot(hit)

    def _foot(self, hit: Hit) -> None:
        words, kem = self._words, hit.kem
        with box("mb-hit-foot"):
            if hit.is_gone:
                tag(words("memory.deleted"), "err")
            elif hit.before is not None:
                tag(words("memory.changed"), "kem", dot=True)
            if kem.visibility != "public":
                with box("mb-tag", "span"):
                    icon("hidden", "mb-i14")
                    text(words(f"memory.visibility.{kem.visibility}"))
            # A number says nothing without its key.
            told = [(key, value) for key, value in facets(kem.metadata) if isinstance(value, str)]
            for key, value in told[:_MOST_TAGS]:
                attributes(tag(value, "", "mb-hit-tag"), title=f"{key}={value}")
            box("mb-grow")
            moment(words, kem.updated_at, words.when(kem.updated_at, datetime.now(UTC)))


def score_bar(words: Words, score: float, explain: Explanation | None) -> Element:
    """As long as the score; its colours are the shares of words and of meaning."""
    lexical, dense = (max(explain.lexical or 0, 0), max(explain.dense or 0, 0)) if explain else (0.0, 1.0)
    total = lexical + dense or 1.0
    with attributes(
        box("mb-score"), aria_hidden="true", title=words("memory.score", score=words.number(score, 2))
    ) as made:
        for share, colour in ((lexical, "processed"), (dense, "process")):
            if share:
                box("", "i").style(f"width: {100 * score * share / total:.1f}%; --c: var(--{colour})")
    return made


def said_by(kem: Kem, words: Words) -> str:
    """What it says, or where it says it."""
    if kem.content is not None:
        return kem.content
    ref = kem.ref
    return "" if ref is None else words("memory.in_artifact", id=ref.artifact_id, size=words.bytes(ref.size_bytes))


def _pieces(hit: Hit, words: Words) -> Sequence[Any]:
    said, found_by = said_by(hit.kem, words), hit.found.explain.words if hit.found.explain else ()
    if hit.before is not None and hit.before != said and len(said) <= _LENGTH:
        return changed(hit.before, said)
    return excerpt(said, found_by, _LENGTH) or asked("–", ())
