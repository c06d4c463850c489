"""Sentences as words with their dates and names, and the acts that their clauses speak of."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

from agents.fragments import MessageSentence
from agents.people import KnownPeople, Mention
from language.dates.expressions import SpokenDate, dates_in

_WORD = re.compile(r"[^\W_]+(?:(?:[-'’./]|(?<=\d)[,:](?=\d))[^\W_]+)*['’]?")
_QUOTED = re.compile(r"[«“„][^«»“”„]*[»”]|(?<!\w)\"[^\"]+\"|(?<![\w'])'[^']+'(?!\w)")
# Longer quotations, and those with a stop in them, are what somebody says; others are titles.
_SPEECH_WORDS = 3
_STRETCHED = re.compile(r"([^\W\d])\1{2,}")
HABIT = re.compile(
    r"\b(?:always|usually|never|often|normally|every|each|used to|(?:mon|tues|wednes|thurs|fri|satur|sun)days|"
    r"всегда|обычно|часто|никогда|вечно|кажд(?:ый|ую|ое|ые)|по (?:понедельникам|вторникам|средам|четвергам|пятницам|"
    r"субботам|воскресеньям|выходным|утрам|вечерам))\b",
    re.IGNORECASE,
)
_EDGES = " \t,;:.!?—–-…\"'»)"


class ImpliedOwner(Enum):
    """The owner of a task where nobody is named."""

    SPEAKER = "speaker"
    NOBODY = "nobody"


Doer = Mention | ImpliedOwner


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a sentence; `lower` is in small letters, without «ё» and without stretched letters."""

    start: int
    end: int
    text: str
    lower: str
    mention: Mention | None = None
    is_date: bool = False
    is_quoted: bool = False


@dataclass(frozen=True)
class Sentence:
    """A sentence with its words, dates and names."""

    text: str
    words: tuple[Word, ...]
    dates: tuple[SpokenDate, ...]
    is_question: bool
    is_item: bool


@dataclass(frozen=True)
class Act:
    """Work that a clause says somebody is to do; one that `needs_date` is such only with a date.

    `has_object` tells whether the clause itself says to what it is done; a nominal act has no verb ("the report is on
    me").
    """

    start: int
    end: int
    doer: Doer
    work: str
    dates: tuple[SpokenDate, ...] = ()
    needs_date: bool = False
    has_object: bool = True
    is_nominal: bool = False
    is_request: bool = False


@dataclass(frozen=True)
class ClauseSpan:
    """A clause of a sentence; `act` is None where it states, asks or tells something else."""

    start: int
    end: int
    act: Act | None = None
    is_subordinate: bool = False


def read_sentence(sentence: MessageSentence, said_at: datetime, people: KnownPeople) -> Sentence:
    text = sentence.text
    dates = tuple(dates_in(text, said_at))
    quoted = [match.span() for match in _QUOTED.finditer(text) if _is_speech(match[0])]
    mentions = {mention.start + (text[mention.start] == "@"): mention for mention in people.mentions(text)}
    words = []
    for match in _WORD.finditer(text):
        start, end = match.span()
        if any(begin < start < mention.end for begin, mention in mentions.items()):
            continue  # the second word of a name
        mention = mentions.get(start)
        words.append(
            Word(
                start,
                max(end, mention.end if mention else 0),
                text[start:end],
                _STRETCHED.sub(r"\1", match[0].lower().replace("ё", "е").replace("’", "'")),
                mention,
                any(date.start < end and start < date.end for date in dates),
                any(begin <= start and end <= stop for begin, stop in quoted),
            )
        )
    return Sentence(text, tuple(words), dates, sentence.is_question, sentence.is_item)


def dates_within(dates: Iterable[SpokenDate], start: int, end: int) -> tuple[SpokenDate, ...]:
    return tuple(date for date in dates if date.start < end and date.end > start)


def without_spans(text: str, start: int, end: int, spans: Iterable[tuple[int, int]]) -> str:
    """The part of a text between two places without these spans."""
    kept = list(text[start:end])
    for begin, stop in spans:
        for at in range(max(begin, start), min(stop, end)):
            kept[at - start] = "\0"
    joined = re.sub(r"\0+", "\0", "".join(kept)).replace("\0", " ")
    return re.sub(r"\s+([,.;:!?])", r"\1", " ".join(joined.split())).strip(_EDGES)


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def uncapitalised(text: str) -> str:
    """The text with a small first letter, except of an abbreviation."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def with_shared_dates(clauses: Sequence[ClauseSpan], dates: Sequence[SpokenDate]) -> list[ClauseSpan]:
    """The clauses, where an act without a date has that of a neighbour that tells of no other work.

    "The deposit is due on Monday, I'll pay it": one thing said in two clauses.
    """
    shared = list(clauses)
    for at, clause in enumerate(clauses):
        if clause.act is None or clause.act.dates:
            continue
        for near in (at - 1, at + 1):
            if 0 <= near < len(clauses) and clauses[near].act is None and not clauses[near].is_subordinate:
                found = dates_within(dates, clauses[near].start, clauses[near].end)
                if found:
                    shared[at] = replace(clause, act=replace(clause.act, dates=found))
                    break
    return shared


def without_vague(clauses: Sequence[ClauseSpan], sentence: Sentence) -> list[ClauseSpan]:
    """The clauses without acts that need a date and have none.

    Beside dated work of others they need none: "you bring the tent, I'll come on Friday".
    """
    shared = with_shared_dates(clauses, sentence.dates)
    dated = [clause.act.doer for clause in shared if clause.act and clause.act.dates]
    kept = []
    for clause in shared:
        act = clause.act
        is_vague = act and act.needs_date and not (act.dates or sentence.is_item)
        is_dropped = act and is_vague and all(each == act.doer for each in dated)
        kept.append(replace(clause, act=None) if is_dropped else clause)
    return kept


def _is_speech(quotation: str) -> bool:
    bare = quotation[1:-1].strip()
    return len(bare.split()) >= _SPEECH_WORDS or bare[-1:] in ".!?…" or bare[:1].islower()
