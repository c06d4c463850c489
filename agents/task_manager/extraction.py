"""Extraction of tasks from sentences by the patterns of each language."""

import importlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache

from agents.fragments import MessageSentence
from agents.people import KnownPeople, Mention
from agents.task_manager.patterns import (
    ImpliedOwner,
    PatternMatch,
    TaskPattern,
    find_patterns,
    mask_names,
    task_pattern,
)
from agents.task_manager.russian_verbs import infinitive_of
from language.dates.expressions import SpokenDate, dates_in, shifted, without_dates
from language.words import Language, terms

_LONGEST_CHARS = 200
_SEPARATOR = re.compile(r",?\s+(?:and|but|then|while|и|а|но|потом|затем)\s+|[,;]\s*|\s[—–]\s", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;:—]")
_EDGES = " \t,;:.!?—–-…\"'«»()"
_NEGATED = re.compile(r"(?:\bне|n't|\bnot)\s+$", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d]{2}")
_WHOLE_LINE = task_pattern(r"^", ImpliedOwner.SPEAKER)


@dataclass(frozen=True)
class LanguagePatterns:
    """Patterns of one language."""

    cues: Sequence[TaskPattern]
    afterthought: TaskPattern
    hedges: re.Pattern[str]
    distant_hedges: re.Pattern[str]
    openings: re.Pattern[str]
    asides: re.Pattern[str]
    reasons: re.Pattern[str]
    and_also: re.Pattern[str]


@cache
def task_patterns(language: Language) -> LanguagePatterns:
    """Compiled patterns of a language; those of Russian take 0.3 s, so they are made when a text needs them."""
    name = "russian" if language is Language.RUSSIAN else "english"
    module = importlib.import_module(f"agents.task_manager.{name}")
    texts = (
        module.HEDGES,
        module.DISTANT_HEDGES,
        module.EMPTY_OPENINGS,
        module.ASIDES,
        module.REASONS,
        module.AND_ALSO,
    )
    compiled = (re.compile(pattern, re.IGNORECASE) for pattern in texts)
    return LanguagePatterns(module.CUES, module.AFTERTHOUGHT, *compiled)


@dataclass(frozen=True)
class TaskCandidate:
    """A task in the making: the doer is a mention of somebody, the speaker, or nobody in particular."""

    text: str
    doer: Mention | ImpliedOwner
    due: SpokenDate | None
    said: str


def find_tasks(sentence: MessageSentence, said_at: datetime, people: KnownPeople) -> list[TaskCandidate]:
    """Every task that a sentence speaks of, in order."""
    return list(_Sentence(sentence, said_at, people).drafts())


class _Sentence:
    def __init__(self, sentence: MessageSentence, said_at: datetime, people: KnownPeople) -> None:
        self._sentence, self._text, self._is_item = sentence, sentence.text, sentence.is_item
        self._speech = task_patterns(sentence.language)
        self._mentions = people.mentions(self._text)
        self._dates = dates_in(self._text, said_at)

    def drafts(self) -> Iterator[TaskCandidate]:
        found = find_patterns(mask_names(self._text, self._mentions), (self._speech.afterthought, *self._speech.cues))
        if not found and self._is_item:
            found = find_patterns(self._text, (_WHOLE_LINE,))[:1]
        begin = 0
        told: list[TaskCandidate] = []
        for number, hit in enumerate(found):
            end, following = self._border(hit, found[number + 1] if number + 1 < len(found) else None)
            who = hit.named(self._mentions)
            if hit.pattern is self._speech.afterthought and told and who:
                told[-1] = replace(told[-1], doer=who)
            elif not self._is_no_task(hit, begin):
                told.extend(self._clause(hit, begin, end))
            begin = following
        yield from told

    def _clause(self, hit: PatternMatch, begin: int, end: int) -> Iterator[TaskCandidate]:
        """Tasks of one match: the announced one, then others of the same person ("… and send it by Friday")."""
        has_work = "work" in hit.match.re.groupindex
        cuts = [] if has_work else list(self._speech.and_also.finditer(self._text, hit.match.end(), end))
        starts, ends = [begin, *(cut.end() for cut in cuts)], [*(cut.start() for cut in cuts), end]
        for number, (start, stop) in enumerate(zip(starts, ends, strict=True)):
            dates = [each for each in self._dates if start <= each.start and each.end <= stop]
            if hit.pattern.weak and not dates and not self._is_item:
                continue
            who = hit.named(self._mentions)
            work = self._also(start, stop, dates) if number else self._work(hit, start, stop, dates, who)
            least = 1 if dates or who or has_work else 2
            if len(terms(work)) >= least and _LETTERS.search(work):
                said = self._text[start:stop].strip(_EDGES)
                yield TaskCandidate(_capitalised(work), who or self._unnamed(hit), _deadline(dates), said)

    def _unnamed(self, hit: PatternMatch) -> ImpliedOwner:
        return ImpliedOwner.SPEAKER if self._is_item else hit.pattern.doer

    def _border(self, hit: PatternMatch, following: PatternMatch | None) -> tuple[int, int]:
        """End of this match's clause, start of the next one's."""
        if following is None:
            return len(self._text), len(self._text)
        separators = list(_SEPARATOR.finditer(self._text, hit.match.end(), following.start))
        last = separators[-1] if separators else None
        return (last.start(), last.end()) if last else (following.start, following.start)

    def _is_no_task(self, hit: PatternMatch, begin: int) -> bool:
        if self._sentence.is_question and not hit.pattern.asks:
            return True
        before = self._text[begin : hit.start]
        clause = _CLAUSE.split(before)[-1]
        is_hedged = self._speech.hedges.search(clause) or self._speech.distant_hedges.search(before)
        return bool(is_hedged) or bool(_NEGATED.search(before))

    def _work(self, hit: PatternMatch, begin: int, end: int, dates: Sequence[SpokenDate], who: Mention | None) -> str:
        groups = hit.match.re.groupindex
        if "work" in groups and hit.group("work"):
            return self._cleaned(self._between(hit.match.start("work"), hit.match.end("work"), dates, who))
        after = self._between(hit.match.end(), end, dates, who)
        if "verb" not in groups:
            return self._cleaned(after)
        verb = hit.group("verb")
        before = self._between(begin, hit.start, dates, who)
        few = self._between(*hit.match.span("few"), dates, who) if "few" in groups else ""
        infinitive = infinitive_of(verb) or verb.lower()
        parts = (infinitive, _uncapitalised(self._cleaned(_CLAUSE.split(before)[-1])), few, after)
        return self._cleaned(" ".join(part for part in parts if part.strip(_EDGES)))

    def _also(self, start: int, end: int, dates: Sequence[SpokenDate]) -> str:
        verb, _, rest = self._between(start, end, dates, None).partition(" ")
        return self._cleaned(f"{infinitive_of(verb) or verb} {rest}")

    def _between(self, start: int, end: int, dates: Sequence[SpokenDate], who: Mention | None) -> str:
        """A part of the sentence without its dates, without the doer's name."""
        inside = [shifted(each, -start) for each in dates if start <= each.start and each.end <= end]
        text = self._text[start:end]
        if who and start <= who.start and who.end <= end:
            text = text[: who.start - start] + " " * (who.end - who.start) + text[who.end - start :]
        return without_dates(text, inside)

    def _cleaned(self, work: str) -> str:
        text = " ".join(work.split()).strip(_EDGES)
        text = self._speech.reasons.sub("", text)
        for _ in range(3):
            text = self._speech.openings.sub("", self._speech.asides.sub("", text)).strip(_EDGES)
        return text


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:_LONGEST_CHARS]


def _uncapitalised(text: str) -> str:
    """The text with a small first letter, except of an abbreviation."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def _deadline(dates: Sequence[SpokenDate]) -> SpokenDate | None:
    """The last of several dates: "start on Monday, deliver by Friday"."""
    last = max((each for each in dates if each.has_day), key=lambda each: each.at, default=None)
    clock = next((each for each in dates if not each.has_day), None)
    if last is None or clock is None or last.has_time:
        return last or clock
    # «Виктор завтра встретится с ними в 14:00»: one appointment, said in two places.
    at = last.at.replace(hour=clock.at.hour, minute=clock.at.minute, second=0)
    return replace(last, text=f"{last.text} {clock.text}", at=at, has_time=True)
