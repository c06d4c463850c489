"""Ways into the material, each with the quotes that support it."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agents.models.extractive.phrases import Phrases, phrases_in
from agents.models.extractive.selection import weightiest_themes, without_repeats
from agents.models.extractive.source import Passage, Source
from language.markdown import Kind
from language.words import stem

_SPEECH = re.compile(r"[«“\"][^«“»”\"]{15,}[»”\"]")
_TROUBLE = re.compile(
    r"\b(?:however|despite|cannot|lack(?:s|ed)?|fail\w*|broke\w*|problem\w*|difficult\w*|risk\w*|complain\w*|"
    r"shortage\w*|delay\w*|oppos\w*|refus\w*|turned down|doubt\w*|too \w+|not enough|wrong|"
    r"однако|несмотря|нельзя|проблем\w*|трудн\w*|сложн\w*|риск\w*|слома\w*|жалоб\w*|жалу\w*|не хват\w*|"
    r"недостат\w*|задерж\w*|отказ\w*|авари\w*|сбо[йяюе]\w*|спор\w*|потеря\w*|никто|слишком)\b",
    re.IGNORECASE,
)
_YEAR_ALONE = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_FIGURE = re.compile(r"(?<![\w.])\d[\d.,  ]*")
_CAPITAL = re.compile(r"\b[A-ZА-ЯЁ][\w-]+")
_FULL_NAME = re.compile(r"\b[A-ZА-ЯЁ][\w-]+ (?=([A-ZА-ЯЁ][\w-]+))")
_MOST_QUOTES = 4
_FEWEST_QUOTES = 2
_LONGEST_QUOTE_WORDS = 45
_ANGLES = 3


@dataclass(frozen=True)
class Angle:
    """A way to open the article; `opening` stands in front of the themes, which keep the order of the outline."""

    name: str
    why: str
    themes: tuple[int, ...]
    opening: tuple[Passage, ...] = ()
    quotes: tuple[Passage, ...] = ()


def angles(source: Source) -> list[Angle]:
    """Up to three, the one with the strongest quotes first."""
    phrases = phrases_in(source.language)
    special = sorted(_special(source, phrases), key=lambda angle: -sum(passage.weight for passage in angle.opening))
    return [*special, *_by_theme(source, phrases)][:_ANGLES]


def theme_name(source: Source, theme: int) -> str:
    return source.themes[theme].heading or phrases_in(source.language).introduction


def lead(source: Source) -> list[Passage]:
    """What opens the article: the material's own introduction, or its weightiest free-standing sentence."""
    if not source.themes or len(source.themes) == 1:
        return []
    if not source.themes[0].heading:
        return [passage for passage in source.of_theme(0) if not passage.is_question]
    if source.themes[0].is_made:
        return _beginning(source)
    return _free(source, lambda passage: True, without=())[:1]


def _beginning(source: Source) -> list[Passage]:
    """The first sentence with those that lean on it."""
    taken = [source.passages[0]]
    for passage in source.of_theme(0)[1:]:
        if passage.kind is not Kind.PROSE or passage.leans_on != taken[-1].place:
            break
        taken.append(passage)
    return taken if taken[0].kind is Kind.PROSE and not taken[-1].introduces else []


def _special(source: Source, phrases: Phrases) -> Iterator[Angle]:
    opening = lead(source)
    themes = tuple(weightiest_themes(source))
    for name, why, holds in (
        (phrases.figures, phrases.figures_why, _counts),
        (phrases.tension, phrases.tension_why, _troubles),
        (phrases.voices, phrases.voices_why, _speaks),
    ):
        quotes = _free(source, holds, without=opening)[:_MOST_QUOTES]
        count = sum(1 for passage in source.passages if holds(passage))
        if len(quotes) >= _FEWEST_QUOTES:
            placed = tuple(sorted(quotes, key=lambda passage: passage.place))
            yield Angle(name, why.format(count=count, total=len(source.passages)), themes, placed, placed)


def _by_theme(source: Source, phrases: Phrases) -> Iterator[Angle]:
    themes = weightiest_themes(source)
    named = [theme for theme in themes if source.themes[theme].heading] or themes
    if not named:
        return
    by_mass = sorted(named, key=lambda theme: -sum(passage.weight for passage in source.of_theme(theme)))
    yield Angle(
        name=phrases.story,
        why=phrases.story_why.format(heading=theme_name(source, by_mass[0])),
        themes=tuple(themes),
        quotes=_best(source, by_mass[0]),
    )
    for theme in [*by_mass[1:], by_mass[0]][: _ANGLES * (len(by_mass) > 1)]:
        heading, count = theme_name(source, theme), len(source.of_theme(theme))
        yield Angle(
            name=phrases.theme_first.format(heading=heading),
            why=phrases.theme_first_why.format(count=count, total=len(source.passages)),
            themes=(theme, *(other for other in themes if other != theme)),
            quotes=_best(source, theme),
        )


def _best(source: Source, theme: int) -> tuple[Passage, ...]:
    said = [each for each in source.of_theme(theme) if each.leans_on is None and _is_said(each)]
    best = sorted(said, key=lambda passage: (-passage.weight, passage.place))[:_FEWEST_QUOTES]
    return tuple(sorted(best, key=lambda passage: passage.place))


def _free(source: Source, holds: Callable[[Passage], float], without: Sequence[Passage]) -> list[Passage]:
    """Passages that may move to the front without hurting the theme they leave: at most a third of it."""
    kept_words = {passage.place for passage in without}
    taken = dict.fromkeys(range(len(source.themes)), 0)
    found: list[Passage] = []
    surnames = _surnames(source.passages)
    for passage in sorted(
        source.free_standing, key=lambda passage: (-min(holds(passage), 2), -passage.weight, passage.place)
    ):
        fits = holds(passage) and passage.place not in kept_words and passage.length_words <= _LONGEST_QUOTE_WORDS
        fits = fits and not (_names(passage) & surnames) - _surnames([passage])
        is_spared = (taken[passage.theme] + 1) * 3 > len(source.of_theme(passage.theme))
        if fits and source.themes[passage.theme].heading and not is_spared:
            taken[passage.theme] += 1
            found.append(passage)
    return without_repeats(found)


def _names(passage: Passage) -> set[str]:
    return {stem(name) for name in _CAPITAL.findall(passage.text)}


def _surnames(passages: Sequence[Passage]) -> set[str]:
    """What is somewhere the second part of a name: alone, it means somebody who was introduced before."""
    return {stem(second) for passage in passages for second in _FULL_NAME.findall(passage.text)}


def _is_said(passage: Passage) -> bool:
    return passage.kind in (Kind.PROSE, Kind.ITEM) and not passage.introduces


def _counts(passage: Passage) -> float:
    return len(_FIGURE.findall(_YEAR_ALONE.sub("", passage.text)))


def _troubles(passage: Passage) -> bool:
    return bool(_TROUBLE.search(passage.text))


def _speaks(passage: Passage) -> bool:
    return bool(_SPEECH.search(passage.text))
