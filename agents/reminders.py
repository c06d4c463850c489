"""Reminders: the moments at which a task is told of, and the words for it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from agents.fragments import links_to
from bus_schema.ids import derived
from bus_schema.notification import NotificationGenerated, Urgency
from bus_schema.processing import Task
from language.dates.expressions import date_text
from language.words import Language, language_of

AGENT = "task_manager"
MORNING = time(8)
_NEWS_LASTS = timedelta(days=3)
_MOST_LISTED = 20
_PHRASES = {
    Language.ENGLISH: {
        "reminder": "You asked to be reminded: “{task}”.",
        "due_now": "“{task}” is due now, {due}.",
        "one": "“{task}” is due {due}.",
        "today": "Due today: {tasks}.",
        "overdue": "Overdue: {tasks}.",
        "more": "and {n} more",
    },
    Language.RUSSIAN: {
        "reminder": "Вы просили напомнить: «{task}».",
        "due_now": "Срок задачи «{task}» — сейчас, {due}.",
        "one": "Срок задачи «{task}» — {due}.",
        "today": "Срок сегодня: {tasks}.",
        "overdue": "Просрочено: {tasks}.",
        "more": "и ещё {n}",
    },
}


@dataclass(frozen=True)
class ReaderClock:
    """Clock of a reader: zone, hour of the morning digest, language."""

    zone: ZoneInfo
    morning: time = MORNING
    language: Language | None = None

    def morning_of(self, day: date) -> datetime:
        return datetime.combine(day, self.morning, tzinfo=self.zone)


def reader_of(task: Task) -> str:
    """Whom to remind of a task."""
    return task.owner_id or task.asked_by


def next_reminder(task: Task, clock: ReaderClock, after: datetime) -> datetime | None:
    """The next moment at which the reader is told of an open task; None where nothing is left to tell.

    A reminder comes when it was asked for. Otherwise the morning digest of the day lists the task, the due minute is
    told where there is one, and the next morning's digest tells that it is overdue.
    """
    moments: Sequence[datetime]
    if task.remind_at is not None:
        moments = [task.remind_at]
    elif task.due is not None:
        day = task.due_on or task.due.astimezone(clock.zone).date()
        at_minute = [] if task.due_on else [task.due]
        moments = [clock.morning_of(day), *at_minute, clock.morning_of(day + timedelta(days=1))]
    else:
        moments = []
    return min((moment for moment in moments if moment > after), default=None)


def is_at_minute(task: Task, clock: ReaderClock, now: datetime) -> bool:
    """Whether a task that is due to be told of is told by itself, not by a digest."""
    if task.remind_at is not None:
        return True
    if task.due is None or task.due_on is not None or task.due > now:
        return False
    return now < clock.morning_of(task.due.astimezone(clock.zone).date() + timedelta(days=1))


def reminder_of(task: Task, clock: ReaderClock, now: datetime) -> NotificationGenerated:
    """The notification at the minute: what its reader asked for then goes out in quiet hours too."""
    is_asked = task.remind_at is not None
    kind, at = ("reminder", task.remind_at) if is_asked else ("due_now", task.due)
    moment = at or now
    about = f"{task.task_id} {moment.isoformat()} {kind}"
    language = clock.language or language_of(task.text)
    due = date_text(moment.astimezone(clock.zone), now.astimezone(clock.zone), language)
    return NotificationGenerated(
        notification_id=f"ntf_{derived(about, reader_of(task))}",
        agent=AGENT,
        to_user=reader_of(task),
        message=_PHRASES[language][kind].format(task=task.text, due=due),
        context=task.due_said and f"due: {task.due_said}",
        about=about,
        urgency=Urgency.HIGH if is_asked else Urgency.NORMAL,
        expires=now + _NEWS_LASTS,
        links=(*links_to("task", [task.task_id]), *links_to("message", task.message_ids)),
    )


def digest_of(reader: str, tasks: Iterable[Task], clock: ReaderClock, now: datetime) -> NotificationGenerated | None:
    """The digest of a morning: open tasks of the reader that are due today or overdue; None where there are none."""
    here = now.astimezone(clock.zone)
    due = [task for task in tasks if task.due is not None and reader_of(task) == reader and not task.remind_at]
    today = [task for task in due if _day(task, clock) == here.date()]
    late = [task for task in due if _day(task, clock) < here.date()]
    if not today and not late:
        return None
    language = clock.language or language_of(" ".join(task.text for task in (*today, *late)))
    phrases = _PHRASES[language]
    if len(today) == 1 and not late:
        message = phrases["one"].format(task=today[0].text, due=_when(today[0], clock, here, language))
    else:
        parts = [
            phrases[key].format(tasks=_listed(each, clock, here, language, is_late=key == "overdue"))
            for key, each in (("today", today), ("overdue", late))
            if each
        ]
        message = " ".join(parts)
    about = f"digest {here.date().isoformat()}"
    return NotificationGenerated(
        notification_id=f"ntf_{derived(about, reader)}",
        agent=AGENT,
        to_user=reader,
        message=message[:4000],
        about=about,
        expires=clock.morning_of(here.date() + timedelta(days=1)),
        links=links_to("task", [task.task_id for task in (*today, *late)][:_MOST_LISTED]),
    )


def _day(task: Task, clock: ReaderClock) -> date:
    if task.due_on is not None:
        return task.due_on
    return task.due.astimezone(clock.zone).date() if task.due else date.max


def _when(task: Task, clock: ReaderClock, here: datetime, language: Language) -> str:
    due = task.due or here
    at = datetime.combine(task.due_on, time(23, 59, 59), tzinfo=clock.zone) if task.due_on else due
    return date_text(at.astimezone(clock.zone), here, language)


def _listed(tasks: Sequence[Task], clock: ReaderClock, here: datetime, language: Language, *, is_late: bool) -> str:
    opening, closing = ("«", "»") if language is Language.RUSSIAN else ("“", "”")
    items = []
    for task in tasks[:_MOST_LISTED]:
        at = task.due.astimezone(clock.zone) if task.due and not task.due_on else None
        when = f" ({_when(task, clock, here, language)})" if is_late else f" ({at:%H:%M})" if at else ""
        items.append(f"{opening}{task.text}{closing}{when}")
    more = len(tasks) - len(items)
    return ", ".join(items) + (f" {_PHRASES[language]['more'].format(n=more)}" if more > 0 else "")
