"""The material of an article, taken apart into passages that may be quoted."""

import re
from dataclasses import dataclass
from functools import cached_property

from agents.models.extractive.themes import Theme
from language.markdown import Kind
from language.sentences import leans_back
from language.words import Language, terms, words

_FIGURE = re.compile(r"\d")
_NAME = re.compile(r"(?<=[\w,;–—-] )[A-ZА-ЯЁ][\w-]+")
# Whoever wants a listing of this size looks at the source.
_BULKY_LINES = 16
_BULKY_CHARS = 4000


@dataclass(frozen=True)
class Passage:
    """A sentence, a list item, a table or a code block, verbatim.

    `leans_on` is the place of a passage without which this one makes no sense: what "it" means, or the line
    that introduces a list.
    """

    place: int
    text: str
    kind: Kind
    theme: int
    paragraph: int
    level: int = 0
    marker: str = ""
    leans_on: int | None = None
    introduces: bool = False
    is_question: bool = False
    weight: float = 0.0

    @cached_property
    def length_words(self) -> int:
        return len(words(self.text))

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(terms(self.text))

    @property
    def is_bulky(self) -> bool:
        return self.text.count("\n") >= _BULKY_LINES or len(self.text) > _BULKY_CHARS

    @property
    def may_be_told(self) -> bool:
        """Whether the passage could be added to a text for its own sake."""
        return not self.introduces and not self.is_question and not self.is_bulky

    @property
    def has_figure(self) -> bool:
        return bool(_FIGURE.search(self.text))

    @property
    def has_name(self) -> bool:
        return bool(_NAME.search(self.text))


@dataclass(frozen=True)
class Source:
    language: Language
    title: str
    themes: tuple[Theme, ...]
    passages: tuple[Passage, ...]
    demands: tuple[str, ...]

    def of_theme(self, theme: int) -> list[Passage]:
        return [passage for passage in self.passages if passage.theme == theme]

    def with_support(self, passage: Passage) -> list[Passage]:
        """The passage after everything it leans on."""
        chain = [passage]
        while (below := chain[0].leans_on) is not None:
            chain.insert(0, self.passages[below])
        return chain

    @cached_property
    def free_standing(self) -> list[Passage]:
        """What can be moved elsewhere: it leans on nothing, nothing leans on it."""
        needed = {passage.leans_on for passage in self.passages}
        return [
            passage
            for passage in self.passages
            if (passage.kind is Kind.PROSE or (passage.kind is Kind.ITEM and not passage.level))
            and passage.leans_on is None
            and not leans_back(passage.text)
            and passage.place not in needed
            and not passage.introduces
            and not passage.is_question
        ]
