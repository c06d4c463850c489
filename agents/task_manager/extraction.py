"""Extraction of tasks from sentences: the acts of their clauses, with owner and due date."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import ModuleType

from agents.fragments import MessageSentence
from agents.people import KnownPeople, Mention
from agents.sentence_kinds import LIKELY_TASK, sentence_kind
from agents.syntax import english, russian
from agents.syntax.clauses import (
    HABIT,
    Act,
    ClauseSpan,
    Doer,
    ImpliedOwner,
    Sentence,
    capitalised,
    dates_within,
    read_sentence,
    uncapitalised,
    with_shared_dates,
    without_spans,
)
from language.dates.expressions import SpokenDate, on_day, without_dates
from language.words import Language, terms

_LONGEST_CHARS = 200
_LONGEST_PLAN_WORDS = 15
_LETTERS = re.compile(r"[^\W\d]{2}")
# Heading of a line that is work, such as «Задача:».
_HEADING = re.compile(r"^\W*(?:(?:todo|to do|to-do|action item|task|задача|сделать|план)s?\s*:\s*)", re.IGNORECASE)
_REASONS = re.compile(
    r",?\s+(?:because|since|otherwise|so that|as soon as|once|unless|потому что|так как|поскольку|иначе|а то|"
    r"чтобы)\b.*$",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"\W*(?:if(?! (?:you|u)(?:'ve| have|'re| are| get| can| could)?\b)|suppose|imagine|если|представь|допустим)\b|"
    r".*\b(?:(?:would|could|should|might|must)(?:n't)?(?:'ve|ve| have| of) (?!an? |the |some |my |your )|if only\b|"
    r"if (?:i|we|he|she|they)(?:'d| had)\b)",
    re.IGNORECASE,
)
_SETTLED = re.compile(
    r"\b(?:(?:мы|и) решили|решено|постановил\w*|договорились,? что|we(?:'ve| have)? decided)\b", re.IGNORECASE
)
_JOKE = re.compile(
    r"\W*(?:oh |ha+ |aye |lol |ага |ну )?(?:yeah|sure|right|of course|as if|конечно|да-да|ну да|ага)\b.*"
    r"(?:[😂🤣😆😹🙄🙃]|\b(?:lol|lmao|haha\w*|ха-?ха\w*)\b)",
    re.IGNORECASE | re.DOTALL,
)
_OWN = re.compile(
    r"\b(?:remind me|note to self|remember to|i|i'm|im|i'll|i've|ive|i'd|my turn|mine|напомни\w*|мне|я|себе|"
    r"с меня|на мне|за мной|моя очередь|мой черёд)\b",
    re.IGNORECASE,
)
# "Ann wants the slides": of others.
_WANTS = re.compile(
    r"\W*\S+ (?:wants?|needs?|asked|(?:is|was) (?:expecting|waiting|after|asking)|would like|хочет|жд[её]т|"
    r"просит|требует)\b",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"\W*(?:(?:my|our|the|his|her) \w+|he|she|they)"
    r"(?:'ll|'s| (?:will|is|are|has|have|must|needs?|wants?|said|promised)\b)",
    re.IGNORECASE,
)
_FOR_US = re.compile(r"\b(?:me|us|our|my|нам|меня|нас)\b", re.IGNORECASE)
_POINTS_BACK = re.compile(r"\b(?:it|that|them|'?em|those|this|это|его|её|ее|их)\b", re.IGNORECASE)
_LEADS_TO_DATE = re.compile(
    r"\b(?:by|before|until|till|on|at|for|due|from|this|в|во|к|ко|до|на|с|со|не позднее)\s+\Z", re.IGNORECASE
)
_REQUEST = re.compile(
    r"\b(?:please|pls|can you|could you|would you|will you|can u|someone|somebody|anyone|let me know|"
    r"пожалуйста|плиз|кто-нибудь|можешь|можете|не мог(?:ла)? бы)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class TaskCandidate:
    """A task in the making: the doer is a mention of somebody, the speaker, or nobody in particular."""

    text: str
    doer: Doer
    due: SpokenDate | None
    said: str
    # Without an object of its own: it is of what was said before.
    leans: bool = False


@dataclass(frozen=True)
class PrecedingText:
    """The sentence before in the same message, the person it speaks to, and the one it speaks of last."""

    text: str = ""
    addressee: Mention | None = None
    named: Mention | None = None


NOTHING_BEFORE = PrecedingText()


def find_tasks(
    sentence: MessageSentence, said_at: datetime, people: KnownPeople, before: PrecedingText = NOTHING_BEFORE
) -> list[TaskCandidate]:
    """Every task that a sentence speaks of, in order."""
    if _JOKE.match(sentence.text):
        return []
    heading = _HEADING.match(sentence.text)
    rest = sentence.text[heading.end() :] if heading else ""
    told = replace(sentence, text=rest, is_item=True) if rest else sentence
    read = read_sentence(told, said_at, people)
    spans = _find_clauses(read, sentence.language, before)
    acts = _complete(with_shared_dates(spans, read.dates), read, before)
    candidates = [each for act in acts if (each := _candidate(act, read))]
    if not candidates and told.is_item:
        candidates = _whole(read, (0, len(read.text)), ImpliedOwner.SPEAKER)
    return candidates


def find_likely_tasks(
    sentence: MessageSentence, said_at: datetime, people: KnownPeople, before: PrecedingText = NOTHING_BEFORE
) -> list[TaskCandidate]:
    """Tasks of a sentence that fits none of the grammar, where the model takes it, or clauses of it, for work."""
    text = sentence.text
    is_habit = HABIT.search(text) and not _REQUEST.search(text)
    is_other = is_habit or _SETTLED.search(text)
    if is_other or _SUPPOSED.match(text) or _JOKE.match(text) or sentence_kind(text).task < LIKELY_TASK:
        return []
    read = read_sentence(sentence, said_at, people)
    if any(word.is_quoted for word in read.words):
        return []
    grammar = russian if sentence.language is Language.RUSSIAN else english
    spans = [(span.start, span.end) for span in grammar.find_clauses(read, before.addressee) if not span.is_subordinate]
    likely = [span for span in spans if len(spans) > 1 and sentence_kind(read.text[slice(*span)]).task >= LIKELY_TASK]
    whole = (min(spans)[0] if spans else 0, len(read.text))
    addressee = grammar.find_addressee(read) or before.addressee
    parts = likely or [whole]
    return [part for span in parts for part in _whole(read, span, _likely_doer(read, span, grammar, addressee))]


def find_plan(sentence: MessageSentence, said_at: datetime, people: KnownPeople) -> TaskCandidate | None:
    """A plan: talk of a day ahead, or a verb alone; no task, unless it changes."""
    if sentence.is_question:
        return None
    read = read_sentence(sentence, said_at, people)
    ahead = [date for date in read.dates if date.at > said_at]
    work = without_dates(read.text, read.dates)
    grammar = russian if sentence.language is Language.RUSSIAN else english
    if len(read.words) > _LONGEST_PLAN_WORDS or not terms(work) or not (ahead or grammar.names_act(read)):
        return None
    return TaskCandidate(capitalised(work)[:_LONGEST_CHARS], ImpliedOwner.SPEAKER, _deadline(ahead), sentence.text)


def preceding_text(sentence: MessageSentence, said_at: datetime, people: KnownPeople) -> PrecedingText:
    """A sentence as what follows it leans on it."""
    read = read_sentence(sentence, said_at, people)
    grammar = russian if sentence.language is Language.RUSSIAN else english
    return PrecedingText(sentence.text, grammar.find_addressee(read), grammar.last_named(read))


def _find_clauses(read: Sentence, language: Language, before: PrecedingText) -> list[ClauseSpan]:
    find = russian.find_clauses if language is Language.RUSSIAN else english.find_clauses
    return find(read, before.addressee, before.named)


def _complete(spans: Sequence[ClauseSpan], read: Sentence, before: PrecedingText) -> list[Act]:
    """Acts with what they leave out: «за мной отчёт, отдам в четверг» is one; "I'll pay it" says what before."""
    acts: list[Act] = []
    told = before.text
    for span in spans:
        act, last = span.act, acts[-1] if acts else None
        if act is None:
            told = read.text[span.start : span.end]
            continue
        if act.is_nominal and not act.has_object and last:
            # «…, это на Косте» names the doer of what was said just before.
            acts[-1] = replace(last, doer=act.doer, dates=last.dates or act.dates)
        elif not act.has_object and last and _leans(act, last):
            acts[-1] = replace(
                act,
                work=f"{act.work.split()[0]} {uncapitalised(last.work)}" if last.is_nominal else last.work,
                dates=act.dates or last.dates,
            )
        elif last and act.dates and not last.dates and act.doer == last.doer and _points_back(act, read):
            # "I keep meaning to call the vet, doing it on Monday".
            acts[-1] = replace(last, dates=act.dates)
        elif not act.has_object and last and last.doer is ImpliedOwner.NOBODY and act.doer is not ImpliedOwner.NOBODY:
            # "The order is due on Friday, Beth can do it".
            acts[-1] = replace(last, doer=act.doer, dates=last.dates or act.dates)
        elif not act.has_object and not last and told:
            acts.append(replace(act, work=" — ".join(filter(None, (act.work, _without_dates(told, read))))))
        else:
            acts.append(act)
        told = ""
    return acts


def _points_back(act: Act, read: Sentence) -> bool:
    return not act.has_object and bool(_POINTS_BACK.search(read.text, act.start, act.end))


def _leans(act: Act, last: Act) -> bool:
    return last.doer in (act.doer, ImpliedOwner.NOBODY) and last.is_nominal and not (act.dates and last.dates)


def _without_dates(text: str, read: Sentence) -> str:
    at = read.text.find(text)
    spans = [(date.start - at, date.end - at) for date in read.dates] if at >= 0 else []
    return without_spans(text, 0, len(text), spans)


def _candidate(act: Act, read: Sentence) -> TaskCandidate | None:
    work = _REASONS.sub("", act.work).strip()
    is_plain = act.dates or isinstance(act.doer, Mention) or act.is_nominal or (act.is_request and act.has_object)
    least = 1 if is_plain else 2
    if len(terms(work)) < least or not _LETTERS.search(work):
        return None
    said = read.text[act.start : act.end]
    doer = ImpliedOwner.SPEAKER if read.is_item and act.doer is ImpliedOwner.NOBODY else act.doer
    return TaskCandidate(capitalised(work)[:_LONGEST_CHARS], doer, _deadline(act.dates), said, leans=not act.has_object)


def _whole(read: Sentence, span: tuple[int, int], doer: Doer) -> list[TaskCandidate]:
    """A sentence, or a part of it, as one task, whatever its grammar."""
    start, end = span
    dates = dates_within(read.dates, start, end)
    leads = (_LEADS_TO_DATE.search(read.text, 0, date.start) for date in dates)
    gaps = [(lead.start() if lead else date.start, date.end) for lead, date in zip(leads, dates, strict=True)]
    work = without_spans(read.text, start, end, gaps)
    said = read.text[start:end]
    return [TaskCandidate(capitalised(work)[:_LONGEST_CHARS], doer, _deadline(dates), said)] if work else []


def _likely_doer(read: Sentence, span: tuple[int, int], grammar: ModuleType, addressee: Mention | None) -> Doer:
    """The person whose name the clause begins with, the speaker if it is of them, or the person who is asked."""
    said = read.text[slice(*span)]
    named: Mention | None = grammar.find_subject(read, span[0])
    if named and not _WANTS.match(said):
        return named
    if _OWN.search(said):
        return ImpliedOwner.SPEAKER
    if addressee:
        return addressee
    if _OTHERS.match(said):
        return ImpliedOwner.NOBODY
    is_asked = read.is_question or bool(_REQUEST.search(said)) or (grammar.names_act(read) and _FOR_US.search(said))
    return ImpliedOwner.NOBODY if is_asked else ImpliedOwner.SPEAKER


def _deadline(dates: Sequence[SpokenDate]) -> SpokenDate | None:
    """The last of several dates: "start on Monday, deliver by Friday"."""
    last = max((each for each in dates if each.has_day), key=lambda each: each.at, default=None)
    clock = next((each for each in dates if not each.has_day), None)
    if last is None or clock is None or last.has_time:
        return last or clock
    # «Виктор завтра встретится с ними в 14:00»: one appointment, said in two places.
    return replace(last, text=f"{last.text} {clock.text}", at=on_day(last, clock), has_time=True)
