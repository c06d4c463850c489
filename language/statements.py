"""Subjects of statements and the values that they state; statements that repeat or contradict each other."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache

from language.dates.expressions import SpokenDate, dates_in, lead_of, without_dates
from language.russian import word_forms
from language.word_lists import MEASURES
from language.words import bases, has_cyrillic, is_meaningful, stem, with_signs_as_words, words

NEGATION = re.compile(
    r"(?<!\w)(?:not|no|never|nobody|nothing|none|cannot|without|\w+n['’]t|не|нет|ни|никогда|никто|ничего|нельзя|без)(?!\w)",
    re.IGNORECASE,
)
FIRST_PERSON = re.compile(
    r"\b(?:I|my|me|myself|я|меня|мн(?:е|ой|ою)|мо(?:й|я|ё|е|и|его|ей|ему|ю|их|им|ими|ём|ем))\b", re.IGNORECASE
)
_CHANGE = re.compile(
    r"\b(?:теперь|больше не|уже не|вместо|передумали|перенесли|переносится|изменили\w*|поменял\w*|увеличил\w*)\b"
    r"|\b(?:снизил\w*|сократил\w*|вырос\w*|на самом деле|отказались|отказываемся)\b"
    r"|\b(?:now|no longer|not any ?more|instead|changed|moved|increased|raised|cut|reduced|grew|actually)\b"
    r"|\b(?:switch\w*|won't)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NAME = re.compile(r"(?<=[\w,:—–-] )[A-ZА-ЯЁ][\w-]+|\b[A-Z][A-Za-z]*[A-Z]\w*\b|\b[A-Z][a-z]+\b(?=[^.]*[а-яё])")
_GENERIC_WORDS = """
    решить решили решено договориться договорились согласовали утвердили выбрали остановились использовать будем
    переходим перешли отказались передумали проект проекта теперь больше вместо новый новая новое планируем
    запланирован назначен назначена вырос выросла увеличили снизили составляет составит итог сейчас пока decide
    decided agree agreed choose chose chosen approve approved settle settled go going use using switch switching
    project new now longer instead plan planned set increase increased raise raised grow grew currently напомню
    напоминаю кстати итак reminder fyi btw way remind
    """
# Words that say no more than that something is so; «не», "to", "before" do not.
_NEUTRAL_WORDS = """
    a an the is are was were be been will of planned scheduled due date takes take place held это будет состоится
    пройдёт пройдет запланирован запланирована запланировано назначен назначена назначено намечен намечена дата
    составляет составит
    """
_NEUTRAL = frozenset(_NEUTRAL_WORDS.split())
# Before a date these say no more than that it is then; "until", «до», "from" do.
_AT = frozenset({"at", "on", "в", "во", "на"})
# Least share of words that subjects of one thing have in common.
_ALIKE = 0.6
# A year tells one thing from another after these: "sales in 2024 were".
_IN = frozenset({"during", "for", "in", "of", "since", "в", "во", "за", "на", "с"})
_OF_YEAR = frozenset({"год", "года", "году"})
_YEAR = re.compile(r"(?:19|20)\d\d")
_LEAST_WORDS = 3
# A name at the end, as all that is said of a subject.
_IS_NAME = re.compile(r"(?:\b(?:is|are|was|were)|[:—–])\s+(?:the\s+)?(?:[A-ZА-ЯЁ][\w-]+\s*)+[.!]?$")
_HAS_YEAR = re.compile(r"\d{4}|\d[./]\d+[./]\d")
_GENERIC = frozenset(map(stem, [*_GENERIC_WORDS.split(), *MEASURES]))


@dataclass(frozen=True)
class StatementContent:
    """Stems of a statement's subject, the first of them, and the values that it states."""

    subject: frozenset[str]
    head: str | None
    numbers: frozenset[str]
    dates: frozenset[str]
    names: frozenset[str]


def numbers_in(text: str) -> frozenset[str]:
    """Numbers of a text as they are written."""
    return frozenset(_NUMBER.findall(text))


def states_change(text: str) -> bool:
    """Whether a text tells that something has changed: "now", «вместо»."""
    return bool(_CHANGE.search(text))


@lru_cache(maxsize=4096)
def statement_content(text: str, said_at: datetime) -> StatementContent:
    dates = dates_in(text, said_at)
    return _content(without_dates(text, dates), dates)


def _content(rest: str, dates: Sequence[SpokenDate]) -> StatementContent:
    names = {stem(name) for name in _NAME.findall(rest)}
    roots = [
        root
        for word in words(rest)
        if is_meaningful(word) and not word[0].isdigit() and not _is_verb(word) and (root := stem(word)) not in _GENERIC
    ]
    subject = [root for root in roots if root not in names]
    return StatementContent(
        subject=frozenset(subject),
        head=next(iter(subject), None),
        numbers=numbers_in(rest),
        dates=frozenset(each.at.isoformat() for each in dates),
        names=frozenset(names),
    )


def contradicts(new: StatementContent, old: StatementContent, *, is_change: bool) -> bool:
    """Check whether both statements cannot hold: other numbers or dates of the same; other names in a stated change."""
    is_of_others = bool(new.names and old.names) and not new.names & old.names
    values = ((new.numbers, old.numbers), (new.dates, old.dates))
    if any(ours and theirs and ours != theirs for ours, theirs in values):
        return not is_of_others
    return is_change and is_of_others


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Share of the larger set that both have, from 0 to 1; 0 where one is empty."""
    return len(one & other) / max(len(one), len(other)) if one and other else 0.0


class Statement:
    """A sentence as it is compared with others; `said_at` is when, for "on Tuesday" and days without a year."""

    def __init__(self, text: str, said_at: datetime) -> None:
        # Of units of memory, nothing outlives their search.
        self.text, self.dates = text, dates_in(text, said_at, is_read_once=True)
        self.leads = [
            [word for word in _telling(lead_of(text, each).lower()) if word not in _AT] for each in self.dates
        ]
        rest = without_dates(text, self.dates)
        self.content = _content(rest, self.dates)
        rest = with_signs_as_words(rest)
        self.words = _telling(rest)
        self.stems = tuple(map(stem, self.words))
        self.is_negated = bool(NEGATION.search(rest))
        self.is_change = states_change(text)
        self.designations = frozenset(_designations(words(rest)))

    @cached_property
    def named(self) -> tuple[str, ...]:
        """Stems of the subject of which a name is all that is said; empty if something else is."""
        said = _IS_NAME.search(self.text)
        return () if said is None else _stems_of(self.text[: said.start()])

    @property
    def says_enough(self) -> bool:
        return len(self.words) >= _LEAST_WORDS or bool(self.words and (self.dates or self.content.numbers))

    def has_values_of(self, other: "Statement") -> bool:
        """Whether both state the same numbers, names and dates, and both deny it or neither."""
        one, two = self.content, other.content
        return (
            (one.numbers, one.names, self.is_negated) == (two.numbers, two.names, other.is_negated)
            and self.leads == other.leads
            and all(map(_agree, self.dates, other.dates))
        )

    def repeats(self, other: "Statement") -> bool:
        """Whether both state the same in the same words, in whatever form the dates are."""
        return self.says_enough and self.stems == other.stems and self.has_values_of(other)

    def contradicts(self, other: "Statement") -> bool:
        """Whether two statements of one subject cannot both hold, as far as rules tell."""
        one, two = self.content, other.content
        if self.is_negated != other.is_negated:
            return len(self.words) > 1 and _without_negation(self.words) == _without_negation(other.words)
        if self.named and self.named == other.named:
            return self.stems != other.stems
        if not _is_of_one(one.subject, two.subject) or self.designations != other.designations:
            return False
        has_other_date = bool(self.dates and other.dates) and not any(
            _agree(ours, theirs) for ours in self.dates for theirs in other.dates
        )
        has_other_number = bool(one.numbers and two.numbers) and one.numbers != two.numbers
        # Where both differ, they are two of a series.
        if has_other_date != has_other_number:
            return _is_of_one(one.subject | one.names, two.subject | two.names) and contradicts(
                one, two, is_change=False
            )
        is_change = self.is_change or other.is_change
        return not (one.dates or one.numbers) and contradicts(one, two, is_change=is_change)


def _is_of_one(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether one of two subjects says no more than the other, and not much less."""
    return overlap(one, other) >= _ALIKE and (one <= other or other <= one)


def _telling(text: str) -> list[str]:
    return [word for word in words(text) if word.lower() not in _NEUTRAL]


def _stems_of(text: str) -> tuple[str, ...]:
    return tuple(map(stem, _telling(text)))


def _without_negation(said: Sequence[str]) -> list[str]:
    return [stem(word) for word in said if not NEGATION.fullmatch(word)]


def _designations(said: Sequence[str]) -> Iterator[str]:
    """Numbers that tell one thing from others of its kind: "room 5 is", "version 2.1 of", "in 2024"."""
    for before, number, after in zip(["", *said], said, [*said[1:], ""], strict=False):
        is_of_kind = is_meaningful(before) and not before[0].isdigit() and not _is_verb(before)
        is_told = bool(after) and (not is_meaningful(after) or _is_predicate(after))
        is_year = before.lower() in _IN and _YEAR.fullmatch(number) and (not is_meaningful(after) or after in _OF_YEAR)
        if _NUMBER.fullmatch(number) and ((is_of_kind and is_told) or is_year):
            yield number


def _is_predicate(word: str) -> bool:
    return _is_verb(word) or (has_cyrillic(word) and word_forms(word.lower())[0].has("ADJS"))


def _agree(one: SpokenDate, other: SpokenDate) -> bool:
    """Whether two dates may be the same; to a day without a year, any year fits."""
    if (one.has_time, one.has_day) != (other.has_time, other.has_day):
        return False
    has_same_clock = (one.clock or one.at.time()) == (other.clock or other.at.time())
    if not one.has_day:
        return has_same_clock
    is_yearless = any(any(map(str.isdigit, each.text)) and not _HAS_YEAR.search(each.text) for each in (one, other))
    is_same_day = (one.at.month, one.at.day) == (other.at.month, other.at.day)
    return has_same_clock and is_same_day and (is_yearless or one.at.year == other.at.year)


def _is_verb(word: str) -> bool:
    """Check whether a word can only be a verb: in English "the release" and "to release" are one word."""
    if has_cyrillic(word):
        first = word_forms(word.lower())[0]
        return any(first.has(kind) for kind in ("VERB", "PRTS", "GRND"))
    return bases().get(word.lower(), word.lower()) != word.lower()
