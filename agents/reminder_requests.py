"""Requests for a reminder in a message: at a moment, on a day, some day; those that cannot be met."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agents.due import Due, dues_in
from agents.fragments import MessageSentence, message_sentences
from language.russian import word_forms
from language.words import Language, has_cyrillic

_CUE = re.compile(
    r"\b(?:напомни(?:те|шь)?|разбуди(?:те)?|поставь(?:те)?\s+(?:мне\s+)?напоминание|"
    r"remind\s+me|set\s+(?:me\s+)?(?:a\s+)?reminder|wake\s+me(?:\s+up)?)\b(?:\s+(?:мне|нам|пожалуйста|please)\b)*",
    re.IGNORECASE,
)
_PAST = re.compile(r"\b(?:yesterday|ago|вчера|позавчера|назад)\b", re.IGNORECASE)
_POLITE = re.compile(r"\b(?:пожалуйста|please)\b,?", re.IGNORECASE)
_LEAD = re.compile(
    r"^(?:о\s+том,?\s+что(?:бы)?|что(?:бы)?(?:\s+я)?|о|об|про|нужно|надо|что\s+(?:нужно|надо)|"
    r"to|that|about|of|for|i\s+(?:need|have)\s+to)\b[\s,:]*",
    re.IGNORECASE,
)
# "Remind me what the code is" asks for something that was said.
_OF_WORK = re.compile(r"^(?:to|(?:что\s+)?(?:мне\s+)?(?:надо|нужно)|чтобы\s+я)\s+\w", re.IGNORECASE)
_OF_MATTER = re.compile(r"^(?:about|of|о|об|про|обо)\s+\w", re.IGNORECASE)
_LEADS_TO_DATE = re.compile(r"\b(?:в|к|на|at|by|on)\s*$", re.IGNORECASE)
_JOINS = re.compile(r"^(?:и|а|потом|затем|and|then)\b[\s,]*|[\s,]*\b(?:и|а|and)$", re.IGNORECASE)
_EDGES = " \t,;:.!?—–-\"'«»()"
_NAMELESS = {Language.ENGLISH: "Reminder", Language.RUSSIAN: "Напоминание"}


@dataclass(frozen=True)
class ReminderRequest:
    """Request for a reminder: the matter, the moment."""

    text: str
    due: Due


@dataclass(frozen=True)
class UntimedReminder:
    """Request for a reminder without a moment: the matter, the day if one is named."""

    text: str
    due: Due | None


def find_reminders(text: str, said_at: datetime) -> list[ReminderRequest]:
    """Requests for a reminder at a moment to come, in the order of the text; `said_at` is on the speaker's clock."""
    found = []
    for sentence, cue in _cues(text):
        dues = [due for due in dues_in(sentence.text, said_at) if due.on is None and due.at > said_at]
        if _PAST.search(sentence.text):
            continue
        for due, matter in _matters(sentence.text, cue, sorted(dues, key=lambda each: each.start)):
            found.append(ReminderRequest(matter or _NAMELESS[sentence.language], due))
    return found


def _matters(text: str, cue: tuple[int, int], dues: Sequence[Due]) -> Iterator[tuple[Due, str]]:
    """Each of several moments with its matter, which stands behind it or before it; else the last with all of it."""
    if not dues:
        return
    starts, ends = [each.start for each in dues], [each.end for each in dues]
    behind = _parts(text, ends, [*starts[1:], len(text)])
    before = _parts(text, [cue[1], *ends[:-1]], starts)
    for matters in (behind, before):
        if len(dues) > 1 and all(matters):
            yield from zip(dues, matters, strict=True)
            return
    yield dues[-1], _matter(_rest(text, (cue, *zip(starts, ends, strict=True))))


def _parts(text: str, starts: Sequence[int], ends: Sequence[int]) -> list[str]:
    return [
        _matter(_JOINS.sub("", _LEADS_TO_DATE.sub("", text[start:end]).strip(_EDGES)))
        for start, end in zip(starts, ends, strict=True)
    ]


def find_untimed_reminder(text: str, said_at: datetime) -> UntimedReminder | None:
    """The first request to be reminded of work without a moment, or of anything on a day to come."""
    for sentence, cue in _cues(text):
        dues = [due for due in dues_in(sentence.text, said_at) if due.at > said_at]
        rest = _rest(sentence.text, (cue, *((each.start, each.end) for each in dues)))
        if _PAST.search(sentence.text) or not (_is_work(rest) or (dues and _OF_MATTER.match(rest))):
            continue
        if matter := _matter(rest):
            return UntimedReminder(matter, dues[-1] if dues else None)
    return None


def reminder_flaw(text: str, said_at: datetime) -> Literal["past", "empty"] | None:
    """Why a request for a reminder cannot be met: its moment has passed, or it says neither what nor when."""
    for sentence, cue in _cues(text):
        rest = _rest(sentence.text, (cue,))
        if not rest:
            return "empty"
        dues, over = list(dues_in(sentence.text, said_at)), list(_PAST.finditer(sentence.text))
        is_past = over or (dues and all(due.at <= said_at for due in dues))
        spans = (cue, *((each.start, each.end) for each in dues), *(each.span() for each in over))
        if is_past and _is_work(_rest(sentence.text, spans)):
            return "past"
    return None


def _cues(text: str) -> Iterator[tuple[MessageSentence, tuple[int, int]]]:
    """Sentences that ask for a reminder, with the place of the words that do."""
    for sentence in message_sentences(text):
        if cue := _CUE.search(sentence.text):
            yield sentence, cue.span()


def _is_work(rest: str) -> bool:
    first = rest.split(maxsplit=1)[0] if rest else ""
    return bool(_OF_WORK.match(rest)) or (has_cyrillic(first) and word_forms(first)[0].has("INFN"))


def _rest(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The words between the spans, of which one may lie within another: «завтра напомни в 9» is one date."""
    outer: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if outer and start < outer[-1][1]:
            outer[-1] = outer[-1][0], max(end, outer[-1][1])
        else:
            outer.append((start, end))
    for start, end in reversed(outer):
        text = f"{_LEADS_TO_DATE.sub('', text[:start]).rstrip()} {text[end:].lstrip()}"
    return _POLITE.sub("", text).strip(_EDGES)


def _matter(rest: str) -> str:
    """Work that is left of the words, as a task's text."""
    for _ in range(2):
        rest = _LEAD.sub("", rest).strip(_EDGES)
    rest = " ".join(rest.split())
    return rest[:1].upper() + rest[1:200]
