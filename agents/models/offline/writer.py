"""The five roles' tasks done by quoting: a prompt's material goes in, a paper or an article comes out."""

from collections.abc import Callable, Mapping
from functools import cached_property

from agents.models.offline.article import (
    DEFAULT_LENGTH_WORDS,
    body_of,
    compose,
    extended,
    quoted_places,
    sections_of,
    select,
    statements,
    without_repeats,
)
from agents.models.offline.papers import (
    facts_of,
    missing_in,
    recommended_outline,
    review,
    write_critique,
    write_ideas,
    write_report,
)
from agents.models.offline.phrases import phrase
from agents.models.offline.source import Source, heaviest, read_source, statement_key
from agents.models.prompt import ATTEMPT, REMARKS, Prompt
from language.markdown import BlockKind, MarkdownBlock, parse, render
from language.words import first_words, words

_TEXTS = ("final", "edited", "draft")
_TEAM_PAPERS = frozenset({"research_report", "idea", "critique", *_TEXTS, REMARKS})
_MOST_REMARKS = 8


class Writer:
    """One prompt of the writing team, answered."""

    def __init__(self, request: Prompt) -> None:
        self._request = request
        self._is_article = request.task in _TEXTS

    def write(self) -> str:
        is_bare = self._material and not self._material.passages and self._request.task in (*_TEXTS, "critique")
        return self._draft() if is_bare else _TASKS[self._request.task](self)

    def revise(self) -> str:
        """The attempt of an article with its form put right; a paper is written afresh, which comes to the same."""
        attempt, source = self._request.attempt, self._yardstick
        if not (self._is_article and attempt and source and source.passages):
            return self.write()
        blocks = parse(attempt.text)
        places = quoted_places(blocks, source)
        if not places:
            return self.write()
        ranked = heaviest(source.passages)
        if asked := source.required_length:
            quotable = (passage for passage in ranked if passage.is_quotable)
            places = extended(places, source, quotable, least_words=asked[0], most_words=asked[1])
        return render(compose(source, sections_of(_headings(blocks), source), places))

    def remarks(self) -> list[str]:
        """Flaws of the attempt, as far as revising it would change it, so that the loop comes to an end."""
        attempt, source = self._request.attempt, self._yardstick
        if not attempt or self.revise() == attempt.text:
            return []
        is_measured = self._is_article and source and source.passages
        return self._form_remarks(parse(attempt.text), source)[:_MOST_REMARKS] if source and is_measured else []

    def _draft(self) -> str:
        source = self._source
        sections = sections_of(recommended_outline(self._newest("idea")), source)
        asked = source.required_length
        length = asked[1] if asked else DEFAULT_LENGTH_WORDS
        return render(compose(source, sections, select(source, sections, length)))

    def _edit(self) -> str:
        source, critique = self._material_beside_text, self._newest("critique")
        if source is None:
            return render(without_repeats(self._text))
        missing = (
            missing_in(critique)
            if critique
            else [finding.quote for finding in review(self._text, source) if finding.flaw == "missing"]
        )
        keys = set(map(statement_key, missing))
        return render(self._recomposed(source, {p.place for p in source.passages if statement_key(p.text) in keys}))

    def _finish(self) -> str:
        if source := self._material_beside_text:
            return render(self._recomposed(source, set()))
        return render(self._text) if self._newest(*_TEXTS) else self._draft()

    def _recomposed(self, source: Source, added: set[int]) -> list[MarkdownBlock]:
        """The text's quotes with these passages, in the order of the source; words of its own stay as they are."""
        places = quoted_places(self._text, source)
        if 2 * len(places) < len(list(statements(self._text))):
            return without_repeats(self._text)
        return compose(source, sections_of(_headings(self._text), source), places | added)

    def _newest(self, *types: str) -> str:
        """The last material of these types: a step's own input comes after what the run began with."""
        fitting = (each for each in reversed(self._request.materials) if each.type in types and each.id != ATTEMPT)
        return next((each.text for each in fitting), "")

    @cached_property
    def _given(self) -> list[str]:
        return [each.text for each in self._request.materials if each.type not in _TEAM_PAPERS and each.id != ATTEMPT]

    @cached_property
    def _material(self) -> Source | None:
        paper = self._newest("research_report") or self._newest("idea")
        texts = self._given or ([facts_of(paper)] if paper else [])
        return read_source(texts) if texts else None

    @property
    def _source(self) -> Source:
        return self._material or read_source([self._newest(*_TEXTS) or self._request.instructions])

    @cached_property
    def _text(self) -> list[MarkdownBlock]:
        """The team's text, or the material itself where there is none."""
        return parse(self._newest(*_TEXTS) or "\n\n".join(self._given))

    @property
    def _material_beside_text(self) -> Source | None:
        return self._material if self._newest(*_TEXTS) else None

    @property
    def _yardstick(self) -> Source | None:
        """The source that an article is measured by; an edited document has none beside it."""
        return self._material_beside_text if self._request.task == "edited" else self._material

    def _form_remarks(self, blocks: list[MarkdownBlock], source: Source) -> list[str]:
        language, stated = source.language, list(statements(blocks))
        keys = list(map(statement_key, stated))
        found: list[str] = []
        if not blocks or blocks[0].kind is not BlockKind.HEADING or blocks[0].level != 1:
            found.append(phrase(language, "no_title"))
        if len(body_of(blocks)) == len(blocks):
            found.append(phrase(language, "no_note"))
        found += [
            phrase(language, "said_twice", quote=first_words(each, 12))
            for at, each in enumerate(stated)
            if keys[at] in keys[:at]
        ]
        length, asked = sum(len(words(each)) for each in stated), source.required_length
        if asked and length < asked[0] and len(quoted_places(blocks, source)) < len(source.passages):
            found.append(phrase(language, "too_short", words=length, least=asked[0]))
        return found


def _headings(blocks: list[MarkdownBlock]) -> list[str]:
    return [block.text for block in blocks if block.kind is BlockKind.HEADING and block.level > 1]


_TASKS: Mapping[str, Callable[[Writer], str]] = {
    "research_report": lambda writer: write_report(writer._source),
    "idea": lambda writer: write_ideas(writer._source),
    "draft": Writer._draft,
    "critique": lambda writer: write_critique(writer._text, writer._material_beside_text),
    "edited": Writer._edit,
    "final": Writer._finish,
}
TASKS = frozenset(_TASKS)
