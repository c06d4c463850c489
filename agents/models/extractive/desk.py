"""The five roles' work, done by quoting: each task reads a prompt's material, then writes."""

from collections.abc import Callable, Mapping
from functools import cached_property

from agents.models.extractive.article import compose, with_note
from agents.models.extractive.critique import findings_in, write_critique
from agents.models.extractive.demands import words_asked
from agents.models.extractive.editing import apply
from agents.models.extractive.form import mend, remarks_on
from agents.models.extractive.ideas import chosen_angle, write_ideas
from agents.models.extractive.phrases import phrases_in
from agents.models.extractive.polish import polish
from agents.models.extractive.reading import read_source
from agents.models.extractive.report import facts_of, write_report
from agents.models.extractive.review import review
from agents.models.extractive.selection import DEFAULT_LENGTH_WORDS
from agents.models.extractive.source import Source
from agents.models.extractive.statements import Wording
from agents.models.prompt import ATTEMPT, REMARKS, Prompt
from language.markdown import Block, Kind, parse, plain, render
from language.words import first_words, words

_MADE_BY_THE_TEAM = frozenset({"research_report", "idea", "draft", "critique", "edited", "final", REMARKS})
_TEXTS = ("final", "edited", "draft")
# With nothing to quote these come to the same: a text that says so.
_ABOUT_TEXTS = frozenset({*_TEXTS, "critique"})
_MOST_REMARKS = 8


class Desk:
    """One prompt, laid out."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt

    def write(self) -> str:
        is_bare = self._material and not self._material.passages and self._prompt.task in _ABOUT_TEXTS
        return self.draft() if is_bare else _WRITERS[self._prompt.task](self)

    def revise(self) -> str:
        """Put right what `remarks` names; a paper made of quotes is written afresh, which comes to the same."""
        material, attempt = self._yardstick, self._prompt.attempt
        if self._is_article and attempt and material and material.passages:
            mended = mend(parse(attempt.text), material)
            return render(polish(mended) if self._prompt.task == "final" else mended)
        return self.write()

    def remarks(self) -> list[str]:
        """What is wrong with the attempt, as far as revising it would change it: so the loop comes to an end."""
        attempt, material = self._prompt.attempt, self._yardstick
        if not attempt or self.revise() == attempt.text:
            return []
        if not self._is_article:
            return self._foreign_quotes(parse(attempt.text))[:_MOST_REMARKS]
        return remarks_on(parse(attempt.text), material)[:_MOST_REMARKS] if material and material.passages else []

    def research(self) -> str:
        return write_report(self._source)

    def ideas(self) -> str:
        return write_ideas(self._source)

    def draft(self) -> str:
        angle = chosen_angle(self._source, self._newest("idea"))
        asked = words_asked(list(self._source.demands))
        return render(compose(self._source, angle, asked[1] if asked else DEFAULT_LENGTH_WORDS))

    def critique(self) -> str:
        return write_critique(self._text, self._material_beside_text)

    def edit(self) -> str:
        critique = self._newest("critique")
        source = self._material_beside_text
        findings = findings_in(critique) if critique else review(self._text, source).findings
        edited = apply(findings, self._text, source)
        return render(with_note(edited, source) if source else edited)

    def finish(self) -> str:
        source = self._material_beside_text
        if source:
            return render(polish(mend(self._text, source)))
        return render(polish(self._text)) if self._newest(*_TEXTS) else self.draft()

    @property
    def _is_article(self) -> bool:
        return self._prompt.task in _TEXTS

    def _newest(self, *types: str) -> str:
        """The last material of these types: a step's own input comes after what the run began with."""
        fitting = (piece for piece in reversed(self._prompt.materials) if piece.type in types and piece.id != ATTEMPT)
        return next((piece.text for piece in fitting), "")

    @cached_property
    def _material(self) -> Source | None:
        given = [piece.text for piece in self._prompt.materials if piece.type not in _MADE_BY_THE_TEAM]
        paper = self._newest("research_report") or self._newest("idea")
        texts = given or ([facts_of(paper)] if paper else [])
        return read_source(texts) if texts else None

    @property
    def _source(self) -> Source:
        return self._material or read_source([self._newest(*_TEXTS) or self._prompt.instructions])

    @cached_property
    def _text(self) -> list[Block]:
        """What is criticised or edited: the team's text, or the material itself where there is none."""
        given = [piece.text for piece in self._prompt.materials if piece.type not in _MADE_BY_THE_TEAM]
        return parse(self._newest(*_TEXTS) or "\n\n".join(given))

    @property
    def _material_beside_text(self) -> Source | None:
        return self._material if self._newest(*_TEXTS) else None

    @property
    def _yardstick(self) -> Source | None:
        """What an article is measured by; who edits a document has nothing beside it."""
        return self._material_beside_text if self._prompt.task == "edited" else self._material

    def _foreign_quotes(self, attempt: list[Block]) -> list[str]:
        phrases = phrases_in(self._source.language)
        given = Wording(piece.text for piece in self._prompt.materials if piece.id != ATTEMPT)
        quotes = [block.text for block in attempt if block.kind is Kind.QUOTE]
        lines = [line.removeprefix("- ") for quote in quotes for line in quote.split("\n") if words(line)]
        return [
            phrases.foreign_quote.format(quote=first_words(plain(line), 12)) for line in lines if not given.has(line)
        ]


_WRITERS: Mapping[str, Callable[[Desk], str]] = {
    "research_report": Desk.research,
    "idea": Desk.ideas,
    "draft": Desk.draft,
    "critique": Desk.critique,
    "edited": Desk.edit,
    "final": Desk.finish,
}
TASKS = frozenset(_WRITERS)
