"""Requests for a reminder in a message: at a moment, on a day, some day; those that cannot be met."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agents.due import Due, dues_in, split_due
from agents.fragments import message_sentences
from language.russian import word_forms
from language.words import Language, has_cyrillic

_CUE = re.compile(
    r"\b(?:напомни(?:те|шь)?|разбуди(?:те)?(?:\s+меня)?|поставь(?:те)?\s+(?:мне\s+)?напоминание|"
    r"remind\s+me|set\s+(?:me\s+)?(?:a\s+)?reminder|wake\s+me(?:\s+up)?)\b(?:\s+(?:мне|нам)\b)*",
    re.IGNORECASE,
)
# "Don't remind me", "did you set a reminder".
_NOT_ASKED = re.compile(
    r"\b(?:(?:do|did)(?:n't| not)|never|not to|no need to|(?:did|have) you)\s+"
    r"(?:already\s+|ever\s+|(?:need|have)\s+to\s+)*$",
    re.IGNORECASE,
)
_PAST = re.compile(r"\b(?:yesterday|ago|вчера|позавчера|назад)\b", re.IGNORECASE)
_POLITE = re.compile(r",?\s*\b(?:пожалуйста|плиз|please|pls)\b,?", re.IGNORECASE)
_OPENING = re.compile(
    r"^(?:(?:(?:can|could|would|will)\s+you|можешь|можете|ой|слушай|hey|so|and|а|и)\b\W*)+", re.IGNORECASE
)
# "To call mom" is work, "about the call" is a matter; "what the code is" asks for something that was said.
_WORK = re.compile(
    r"^(?:to|(?:that\s+)?(?:i|we)\s+(?:need|have)\s+to|(?:о\s+том,?\s+)?(?:что\s+)?(?:мне\s+|нам\s+)?(?:надо|нужно)"
    r"|чтобы\s+(?:я|мы))\s+(?=\w)",
    re.IGNORECASE,
)
_MATTER = re.compile(r"^(?:обо|об|о|про|about|of)\s+(?=\w)", re.IGNORECASE)
_CLAUSE = re.compile(r"^(?:о\s+том,?\s+)?(?:что(?:бы)?|that|for)\b[\s,:]*", re.IGNORECASE)
_JOINS = re.compile(r"^(?:и|а|потом|затем|and|then)\b[\s,]*", re.IGNORECASE)
# Between a matter and the next moment.
_LEADS_ON = re.compile(r"(?:[\s,]*\b(?:и|а|and|в|к|на|at|by|on))+$", re.IGNORECASE)
_EDGES = " \t,;:.!?—–-\"'«»()"
_NAMELESS = {Language.ENGLISH: "Reminder", Language.RUSSIAN: "Напоминание"}


@dataclass(frozen=True)
class ReminderRequest:
    """Request for a reminder: the matter, and the moment or the day if one is named.

    One with a `flaw` cannot be met: its moment has passed, or it says neither what nor when.
    """

    text: str = ""
    due: Due | None = None
    flaw: Literal["past", "empty"] | None = None

    @property
    def is_timed(self) -> bool:
        """Whether it names the moment at which to remind."""
        return self.due is not None and self.due.on is None


def find_reminders(text: str, said_at: datetime) -> list[ReminderRequest]:
    """Requests for a reminder in the order of the text; `said_at` is on the speaker's clock."""
    found: list[ReminderRequest] = []
    for sentence in message_sentences(text):
        cue = _CUE.search(sentence.text)
        if cue and not _NOT_ASKED.search(sentence.text[: cue.start()]):
            asked = _POLITE.sub("", sentence.text[: cue.start()] + sentence.text[cue.end() :])
            found += _requests(" ".join(asked.split()), said_at, sentence.language)
    return found


def reminder_flaw(text: str, said_at: datetime) -> Literal["past", "empty"] | None:
    """Why the first request that cannot be met cannot."""
    return next((each.flaw for each in find_reminders(text, said_at) if each.flaw), None)


def _requests(asked: str, said_at: datetime, language: Language) -> Iterator[ReminderRequest]:
    """The requests of a sentence without the words that make it one."""
    is_over, dues = _PAST.search(asked), sorted(dues_in(asked, said_at), key=lambda due: due.start)
    to_come = [] if is_over else [due for due in dues if due.at > said_at]
    words = _OPENING.sub("", _PAST.sub("", split_due(asked, said_at)[0]).strip(_EDGES))
    is_work, matter = _is_work(words), _matter(words)
    if timed := [due for due in to_come if due.on is None]:
        for due, part in _parts(asked, timed) or [(timed[-1], matter)]:
            yield ReminderRequest(part or _NAMELESS[language], due)
    elif not words and not dues and not is_over:
        yield ReminderRequest(flaw="empty")
    elif is_work and not to_come and (dues or is_over):
        yield ReminderRequest(flaw="past")
    elif not is_over and matter and (is_work or (to_come and _MATTER.match(words))):
        yield ReminderRequest(matter, to_come[-1] if to_come else None)


def _parts(text: str, dues: Sequence[Due]) -> list[tuple[Due, str]]:
    """Each of several moments with its matter, which stands behind it or before it; empty where one has none."""
    starts, ends = [due.start for due in dues], [due.end for due in dues]
    behind, before = zip(ends, [*starts[1:], len(text)], strict=True), zip([0, *ends[:-1]], starts, strict=True)
    for spans in (behind, before):
        matters = [_matter(_LEADS_ON.sub("", text[start:end].strip(_EDGES))) for start, end in spans]
        if len(dues) > 1 and all(matters):
            return list(zip(dues, matters, strict=True))
    return []


def _is_work(words: str) -> bool:
    first = words.split(maxsplit=1)[0] if words else ""
    return bool(_WORK.match(words)) or (has_cyrillic(first) and word_forms(first)[0].has("INFN"))


def _matter(words: str) -> str:
    """The words as a task's text."""
    for lead in (_JOINS, _WORK, _CLAUSE, _MATTER):
        words = lead.sub("", words).strip(_EDGES)
    return words[:1].upper() + words[1:200]
