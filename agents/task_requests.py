"""Requests to the assistant about the user's tasks, in so many words: list, add, complete, move, cancel."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agents.due import NoDate, parse_due, split_due
from agents.fragments import message_sentences
from agents.people import KnownPeople
from agents.reminder_requests import find_reminders, find_untimed_reminder
from agents.status_reports import find_reports

RequestKind = Literal["list", "add", "complete", "move", "cancel"]
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
_MOVE = re.compile(
    rf"{_PLEASE}(?:перенес(?:и|ите|ти)|передвинь(?:те)?|сдвинь(?:те)?|отложи(?:те)?|move|reschedule|postpone|shift|push)\s+"
    rf"(?:задачу\s+|the\s+|my\s+|task\s+)*(?P<task>.+?)\s+(?:на|до|к|ко|to|until|till|for)\s+(?P<due>[^,]+?){_END}",
    re.IGNORECASE,
)
_CANCEL = re.compile(
    rf"{_PLEASE}(?:отмени(?:те)?|удали(?:те)?|вычеркни(?:те)?|cancel|call\s+off|drop|delete)\s+"
    rf"(?:задачу\s+|the\s+|my\s+|task\s+)*(?P<task>.+?){_END}",
    re.IGNORECASE,
)
_DONE = re.compile(
    rf"{_PLEASE}(?:"
    r"я\s+(?:уже\s+|наконец\s+)*(?:сделал|закончил|завершил|выполнил)а?\s+(?P<one>.+?)"
    r"|отметь(?:те)?\s+(?:задачу\s+)?(?P<two>.+?)\s+(?:как\s+)?(?:выполненн|сделанн|готов)\w*"
    r"|i(?:\s+have|['’]ve)?\s+(?:already\s+|just\s+|finally\s+)*(?:done|finished|completed)\s+(?:with\s+)?(?P<three>.+?)"
    r"|mark\s+(?P<four>.+?)\s+(?:as\s+)?(?:done|complete|completed|finished)"
    rf"){_END}",
    re.IGNORECASE,
)
_NEW = re.compile(
    rf"{_PLEASE}(?:добав(?:ь|ьте)|запиши(?:те)?|созда(?:й|йте)|add|create)\s+(?:мне\s+|a\s+|new\s+|новую\s+)*"
    rf"(?:задачу|task|to-?do)\s*[:—-]?\s*(?:to\s+)?(?P<text>.+?){_END}",
    re.IGNORECASE | re.DOTALL,
)
# "Put the plants on my list for Saturday", «Добавь молоко в список», «Запиши мне на субботу полить цветы».
_LISTED = re.compile(
    rf"{_PLEASE}(?:(?:add|put)\s+(?P<one>.+?)\s+(?:to|on|onto|in)\s+my\s+(?:to-?do\s+list|task\s+list|list|tasks|to-?dos?)"
    rf"(?P<rest>\b[^.?!]*)|(?:добав(?:ь|ьте)|запиши(?:те)?|занеси(?:те)?|внеси(?:те)?)\s+(?P<two>.+?)\s+"
    rf"(?:в|мне\s+в)\s+(?:мой\s+|мои\s+|список\s+)*(?:список|задачи|дела|дел|задач)(?P<tail>\b[^.?!]*)"
    rf"|(?:запиши(?:те)?|запланируй(?:те)?)\s+(?:мне\s+|себе\s+)?(?P<three>(?:[^\W\d_]+\s+|\d[\d:.]*\s+){{0,4}}?[^\W\d_]+(?:ть|ти|чь)(?:ся|сь)?\b.*?)){_END}",
    re.IGNORECASE | re.DOTALL,
)
# Words that may be about anything: "What should I do?", "Delete the last paragraph", "I've done the report".
_ASKS_ADVICE = re.compile(r"\b(?:what\s+(?:do|should|must)\s+i|что\s+(?:мне|нам|я\s+долж))\b", re.IGNORECASE)
_CANCELS = re.compile(
    rf"{_PLEASE}(?:отмени|cancel|call\s+off|\w+\s+(?:(?:the|my)\s+)?(?:task|задачу)\b)", re.IGNORECASE
)
_MARKS = re.compile(r"\b(?:mark|отметь\w*)\b", re.IGNORECASE)
_ARTICLES = re.compile(r"^(?:the|my|a|мой|мою|моё)\s+", re.IGNORECASE)
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


def find_requests(said: str, now: datetime) -> list[TaskRequest]:
    """The requests that a message makes: one, or several reminders; `now` is on the user's clock."""
    if _ASKS_TASKS.search(said):
        due = next((due for due, pattern in _WHEN if re.search(pattern, said, re.IGNORECASE)), "all")
        return [TaskRequest("list", due=due, is_certain=due != "all" or not _ASKS_ADVICE.search(said))]
    moved = _MOVE.match(said)
    if moved and _is_date(moved["due"], now):
        return [TaskRequest("move", _bare(moved["task"]), moved["due"])]
    if done := _DONE.match(said):
        text = _bare(next(text for text in done.groupdict().values() if text))
        return [TaskRequest("complete", text, is_certain=bool(_MARKS.search(said)))]
    if cancelled := _CANCEL.match(said):
        return [TaskRequest("cancel", _bare(cancelled["task"]), is_certain=bool(_CANCELS.match(said)))]
    reminders = [TaskRequest("add", each.text, each.due.said, remind=True) for each in find_reminders(said, now)]
    return reminders or list(_additions(said, now))


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


def _additions(said: str, now: datetime) -> Iterator[TaskRequest]:
    """The task that a message asks to note, or to be reminded of without a moment."""
    if untimed := find_untimed_reminder(said, now):
        yield TaskRequest("add", untimed.text, untimed.due.said if untimed.due else "")
    elif added := _NEW.match(said):
        yield _new_task(added["text"], now)
    elif added := _LISTED.match(said):
        task = next(added[part] for part in ("one", "two", "three") if added[part]).strip(" \"'«»“”")
        on = split_due(added["rest"] or added["tail"] or "", now)[1]
        yield _new_task(f"{task} {on.said}" if on else task, now)


def _new_task(words: str, now: datetime) -> TaskRequest:
    text, due = split_due(words, now)
    text = re.sub(r"\s+(?:на|к|for|on|by|at)$|^(?:на|к|for|on|by)\s+(?=\s|$)", "", text.strip(), flags=re.IGNORECASE)
    return TaskRequest("add", " ".join(text.split()) or words, due.said if due else "")


def _is_date(text: str, now: datetime) -> bool:
    try:
        parse_due(text, now)
    except NoDate:
        return False
    return True


def _bare(task: str) -> str:
    return _ARTICLES.sub("", task.strip(" \"'«»“”.,!")).strip()
