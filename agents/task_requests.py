"""Requests to the assistant about the user's tasks, in so many words: list, add, complete, move, cancel."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Literal

from agents.due import dues_in, split_due
from agents.fragments import message_sentences
from agents.people import KnownPeople
from agents.reminder_requests import ReminderRequest, find_reminders
from agents.status_reports import find_reports
from language.russian import word_forms
from language.words import has_cyrillic, is_base, words

RequestKind = Literal["list", "add", "complete", "move", "cancel"]


def _listed(verbs: str) -> frozenset[str]:
    return frozenset(verbs.split())


_PLEASE = r"^\W*(?:(?:пожалуйста|please|can\s+you|could\s+you|можешь|а|и|so|and)\b\W*)*"
_END = r"\W*(?:пожалуйста|please)?\W*$"
_ASKS_TASKS = re.compile(
    r"\b(?:какие|покажи\w*|перечисли\w*|назови\w*|список)\b[^.!]*\b(?:задач\w*|дел|дела)\b"
    r"|\bчто\s+(?:мне|нам|я\s+долж\w+)\s+(?:[\w-]+\s+){0,3}(?:с?делать|успеть)\b"
    r"|\bчто\s+(?:у\s+меня\s+)?(?:запланировано\s+)?на\s+(?:сегодня|завтра|(?:этой\s+|эту\s+)?недел\w)\b"
    r"|\bчто\s+(?:ещ[её]\s+)?(?:у\s+меня|на\s+мне|за\s+мной)\s+(?:ещ[её]\s+|сейчас\s+)?(?:висит|числится|просрочено|горит)\b"
    r"|\bчто\s+(?:уже\s+|у\s+меня\s+)*просрочено\b|^\W*мои\s+(?:открытые\s+)?(?:задачи|дела)\b(?!\s+\w+(?:ют|ят|ут|ат)\b)"
    r"|\b(?:есть|остались)\s+ли\s+(?:у\s+меня\s+)?(?:[\w-]+\s+)?(?:задач\w*|дела)\b"
    r"|\bwhat(?:\s+is|\s+are|['’]s)?\s+(?:still\s+|already\s+)?(?:over)?due\b"
    r"|\b(?:is|do\s+i\s+have)\s+anything\s+(?:over)?due\b"
    r"|\bwhat\s+(?:are\s+)?my\s+(?:open\s+)?(?:tasks|to-?dos?)\b"
    r"|\b(?:show|list|tell)\s+(?:me\s+)?my\s+(?:open\s+)?(?:tasks|to-?dos?|to-?do\s+list)\b|^\W*my\s+(?:open\s+)?(?:tasks|to-?dos?)\W*$"
    r"|\bwhat(?:\s+is|['’]s)\s+(?:still\s+)?on\s+my\s+(?:plate|list|to-?do\s+list)\b"
    r"|\bwhat\s+(?:do\s+i\s+(?:have|need)\s+to|(?:should|must)\s+i)\s+(?:do|get\s+done)\b(?=[^?]*(?:today|tomorrow|week|\?|$))"
    r"|\bwhat\s+do\s+i\s+do\s+(?:today|tomorrow|this\s+week)\b"
    r"|\bdo\s+i\s+have\s+any\s+(?:open\s+)?(?:tasks|to-?dos?)\b|\bwhat\s+tasks\s+do\s+i\s+have\b",
    re.IGNORECASE,
)
_WHEN = (
    ("overdue", r"\b(?:overdue|просроч\w*)\b"),
    ("today", r"\b(?:сегодня|today|tonight)\b"),
    ("tomorrow", r"\b(?:завтра|tomorrow)\b"),
    ("week", r"\b(?:недел\w*|week)\b"),
)
# Imperatives that change a plan; other verbs do where what follows is called a task.
_CHANGING = _listed("перенести передвинуть сдвинуть отложить отменить move reschedule postpone shift push cancel")
_MARK = re.compile(
    rf"{_PLEASE}(?:отметь(?:те)?|mark)\s+(?P<task>.+?)\s+(?:как\s+|as\s+)?"
    rf"(?:(?:выполненн|сделанн|готов|complete)\w*|done|finished){_END}",
    re.IGNORECASE,
)
_ADD = re.compile(
    rf"{_PLEASE}(?P<verb>(?:добав|созда|запиши|занеси|внеси|запланируй)\w*|add|create|put)\s+(?P<rest>.+?){_END}",
    re.IGNORECASE | re.DOTALL,
)
_NEW = re.compile(r"^(?:(?:мне|a|new|новую)\s+)*(?:задачу|task|to-?do)\b\s*[:—-]?\s*(?:to\s+)?", re.IGNORECASE)
# "Put the plants on my list for Saturday", «Добавь молоко в список».
_IN_LIST = re.compile(
    r"\s+(?:(?:to|on|onto|in)\s+my\s+(?:(?:to-?do|task)\s+list|list|tasks|to-?dos?)"
    r"|(?:мне\s+)?в\s+(?:(?:мой|мои)\s+)?(?:список|задачи|дела)(?:\s+(?:дел|задач|покупок))?)\b",
    re.IGNORECASE,
)
_FOR_ME = re.compile(r"^(?:мне|себе)\s+", re.IGNORECASE)
# "What should I do?" may be about anything.
_ASKS_ADVICE = re.compile(r"\b(?:what\s+(?:do|should|must)\s+i|что\s+(?:мне|нам|я\s+долж))\b", re.IGNORECASE)
_OPENING = re.compile(_PLEASE, re.IGNORECASE)
_POLITE = re.compile(r",?\s*\b(?:пожалуйста|please)\b,?", re.IGNORECASE)
_NAMES_TASK = re.compile(r"^(?:the\s+|my\s+)?(?:task|задачу)\b\s*", re.IGNORECASE)
_ARTICLES = re.compile(r"^(?:'?s\s+|off\s+)?(?:(?:the|my|a|мой|мою|моё)\s+)?", re.IGNORECASE)
_DATELESS = re.compile(
    r"\s+(?:на|к|ко|до|в|for|on|by|at|to|until|till)\W*$|^(?:на|к|for|on|by)\s+(?=\s|$)", re.IGNORECASE
)
_NEAR_WORDS = 6
_EDGES = " \"'«»“”.,!"
_KINDS: dict[str, RequestKind] = {"done": "complete", "cancelled": "cancel", "moved": "move"}
_NOBODY = KnownPeople()


@dataclass(frozen=True)
class TaskRequest:
    """A request about the user's tasks, in their words.

    `text` is the new task, or words that tell which one is meant; `due` its date as it was said, or the days that a
    list is asked for. One that is not `is_certain` may be about something else.
    """

    kind: RequestKind
    text: str = ""
    due: str = ""
    remind: bool = False
    is_certain: bool = True


def _day_in(said: str, now: datetime) -> str:
    """The one day that a message names, as 2026-11-26; else `all`."""
    days = {due.on for due in dues_in(said, now) if due.on is not None}
    return days.pop().isoformat() if len(days) == 1 else "all"


def find_requests(said: str, now: datetime) -> list[TaskRequest]:
    """The requests that a message makes: one, or several reminders; `now` is on the user's clock."""
    return list(_known_requests(said, now) if len(said) <= _KNOWN_CHARS else _requests(said, now))


def _requests(said: str, now: datetime) -> Sequence[TaskRequest]:
    if _ASKS_TASKS.search(said):
        due = next((due for due, pattern in _WHEN if re.search(pattern, said, re.IGNORECASE)), _day_in(said, now))
        return [TaskRequest("list", due=due, is_certain=due != "all" or not _ASKS_ADVICE.search(said))]
    if marked := _MARK.match(said):
        return [TaskRequest("complete", _bare(marked["task"]))]
    if changed := _asked_change(said, now):
        return [changed]
    if reminders := find_reminders(said, now):
        return [_reminder(each) for each in reminders if not each.flaw]
    added = _ADD.match(said)
    task = _task_to_add(added["verb"].lower(), added["rest"]) if added else ""
    return [_new_task(task, now)] if task else []


# The dialogue's explicit requests and the offline model both ask, in the same minute.
_KNOWN_CHARS = 4096
_known_requests = lru_cache(maxsize=128)(_requests)


def find_reported_changes(said: str, now: datetime) -> list[TaskRequest]:
    """The first change of a task that a message tells of in everyday words, none if it tells of none.

    "I called mom already", «Молоко уже не нужно»: whether there is such a task is for who knows them to say.
    """
    for sentence in message_sentences(said):
        for report in find_reports(sentence, now, _NOBODY):
            kind, due = _KINDS.get(report.change), report.to.text if report.to else ""
            if kind and not report.is_implied and (kind != "move" or due):
                return [TaskRequest(kind, report.about.strip(), due, is_certain=False)]
    return []


def _asked_change(said: str, now: datetime) -> TaskRequest | None:
    """The change that a message asks for by its first verb; what follows tells of it as a report does."""
    told = _POLITE.sub("", _OPENING.sub("", said)).strip()
    verb, _space, rest = told.partition(" ")
    lemma = _imperative(verb)
    is_of_task = lemma in _CHANGING or told.lower().startswith("call off ") or (lemma and _NAMES_TASK.match(rest))
    report = next(iter(find_reported_changes(told, now)), None) if is_of_task else None
    if report is None or report.kind == "complete":
        return None
    return replace(report, text=_bare(report.text[len(verb) :]), is_certain=True)


def _imperative(word: str) -> str:
    """The dictionary form of an imperative, empty where the word is none."""
    if not has_cyrillic(word):
        return word.lower() if is_base(word.lower()) else ""
    return next((form.lemma for form in word_forms(word) if form.has("impr")), "")


def _reminder(asked: ReminderRequest) -> TaskRequest:
    return TaskRequest("add", asked.text, asked.due.said if asked.due else "", remind=asked.is_timed)


def _task_to_add(verb: str, rest: str) -> str:
    """The words of a task, with its date, that is to be noted; empty where something else is."""
    if named := _NEW.match(rest):
        return rest[named.end() :]
    if listed := _IN_LIST.search(rest):
        return rest[: listed.start()] + rest[listed.end() :]
    # «Запиши мне на субботу полить цветы».
    is_work = verb.startswith("зап") and any(word_forms(word)[0].has("INFN") for word in words(rest)[:_NEAR_WORDS])
    return _FOR_ME.sub("", rest) if is_work else ""


def _new_task(task: str, now: datetime) -> TaskRequest:
    text, due = split_due(task, now)
    text = _DATELESS.sub("", text.strip()).strip(_EDGES)
    return TaskRequest("add", " ".join(text.split()) or task, due.said if due else "")


def _bare(task: str) -> str:
    """The words for a task without articles, quotes and the preposition that has lost its date."""
    text = _DATELESS.sub("", task.strip(_EDGES))
    return _ARTICLES.sub("", _NAMES_TASK.sub("", text)).strip(_EDGES)
