"""The researcher's report: facts by theme, key terms, what the brief asks for, what stays open."""

from collections.abc import Iterator

from agents.keywords import key_terms
from agents.models.extractive.angles import theme_name
from agents.models.extractive.doubts import Doubt, Guess, doubts
from agents.models.extractive.phrases import Phrases, phrases_in
from agents.models.extractive.selection import weightiest_themes, without_repeats
from agents.models.extractive.source import Passage, Source
from language.markdown import Kind, parse, plain, quoted

_MOST_THEMES = 12
_MOST_FACTS_PER_THEME = 8
_MOST_QUESTIONS = 10
_KEY_TERMS = 10


def write_report(source: Source) -> str:
    phrases = phrases_in(source.language)
    title = source.title or phrases.untitled
    parts = [f"# {phrases.report}: {title}", f"*{phrases.report_note}*"]
    if source.passages:
        parts += _facts(source, phrases)
        parts += [f"## {phrases.key_terms}", _terms(source, phrases)]
    else:
        parts += [phrases.no_facts]
    if source.demands:
        parts += [f"## {phrases.asked}", _bullets(source.demands)]
    if source.passages:
        parts += [f"## {phrases.open_questions}", *_open(source, phrases)]
    return "\n\n".join(parts) + "\n"


def facts_of(report: str) -> str:
    """The quoted facts of such a report as a text again, for a writer who was not given the brief."""
    lines: list[str] = []
    for block in parse(report):
        if block.kind is Kind.HEADING and block.level == 1:
            lines.append(f"# {block.text.partition(': ')[2] or block.text}")
        elif block.kind is Kind.HEADING and block.level == 3:
            lines.append(f"## {block.text}")
        elif block.kind is Kind.QUOTE:
            lines.append(" ".join(line.removeprefix("- ") for line in block.text.split("\n") if line))
    return "\n\n".join(lines)


def _facts(source: Source, phrases: Phrases) -> Iterator[str]:
    best = _in_short(source)
    yield f"## {phrases.in_short}"
    yield _quotes(best)
    told = {passage.place for passage in best}
    if any(passage.place not in told and not passage.is_question for passage in source.passages):
        yield f"## {phrases.key_facts}"
    for theme in weightiest_themes(source, _MOST_THEMES):
        facts = [each for each in source.of_theme(theme) if not each.is_question and each.place not in told]
        strongest = sorted(facts, key=lambda passage: (-passage.weight, passage.place))[:_MOST_FACTS_PER_THEME]
        supported = {each.place: each for fact in strongest for each in source.with_support(fact)}
        kept = [supported[place] for place in sorted(supported) if place not in told]
        if kept:
            yield f"### {theme_name(source, theme)}"
            yield _quotes(kept)


def _in_short(source: Source) -> list[Passage]:
    free = sorted(source.free_standing, key=lambda passage: (-passage.weight, passage.place))
    return sorted(without_repeats(free)[:3], key=lambda passage: passage.place) or list(source.passages[:1])


def _quotes(passages: list[Passage]) -> str:
    lines: list[str] = []
    for passage in passages:
        if passage.kind in (Kind.TABLE, Kind.CODE):
            lines += ["", passage.text, ""]
        else:
            lines.append(f"- {passage.text}")
    return quoted("\n".join(lines).strip("\n"))


def _terms(source: Source, phrases: Phrases) -> str:
    text = "\n".join(plain(passage.text) for passage in source.passages if passage.kind is not Kind.CODE)
    return "\n".join(f"- {term.text} ({phrases.mentions}: {term.mentions})" for term in key_terms(text, _KEY_TERMS))


def _open(source: Source, phrases: Phrases) -> Iterator[str]:
    asked = [passage.text for passage in source.passages if passage.is_question]
    if asked:
        yield f"{phrases.asked_by_source}:"
        yield "\n".join(quoted(f"- {question}") for question in asked[:_MOST_QUESTIONS])
    guessed = [_question(doubt, phrases) for doubt in doubts(source)][:_MOST_QUESTIONS]
    if guessed:
        yield _bullets(guessed)
    if not asked and not guessed:
        yield phrases.nothing_open


def _question(doubt: Doubt, phrases: Phrases) -> str:
    left, right = phrases.quote_marks
    if doubt.guess is Guess.QUANTITY:
        return f"{phrases.vague.format(word=doubt.word)} {left}{plain(doubt.text)}{right}"
    if doubt.guess is Guess.ABBREVIATION:
        return f"{phrases.unexplained.format(word=doubt.word)}."
    return phrases.thin.format(heading=doubt.word)


def _bullets(lines: list[str] | tuple[str, ...]) -> str:
    return "\n".join(f"- {line}" for line in lines)
