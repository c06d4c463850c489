"""The task manager: tasks with owners and due dates found in conversations, and the news of them."""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo

from agents.fragment_reader import FragmentReader
from agents.fragments import MessageSentence, ProcessingResult, links_to, message_sentences
from agents.models.explicit_delegation import is_delegation
from agents.people import KnownPeople
from agents.present import Present
from agents.reminder_requests import reminder_flaw
from agents.sentence_kinds import prepare_kinds
from agents.status_reports import StatusReport, find_reports, shifted_date
from agents.task_manager.extraction import (
    NOTHING_BEFORE,
    PrecedingText,
    TaskCandidate,
    find_likely_tasks,
    find_plan,
    find_tasks,
    preceding_text,
)
from agents.task_manager.model_extraction import extract_by_model
from agents.task_manager.task_lookup import Hint, done_task, is_meant, just_spoken_of, spoken_of, subject
from agents.task_manager.tasks import TaskList, TaskRecorder, has_change
from agents.task_requests import TaskRequest, find_requests
from bus_schema.dialogue import DialogueFragment, DialogueMessage
from bus_schema.ids import derived
from bus_schema.notification import NotificationGenerated
from bus_schema.processing import Task, TaskUpdate
from language.dates.expressions import date_text, dates_in, without_dates
from language.words import Language, language_of

_MOST_PLANS = 5
_NOT = re.compile(r"\b(?:не|not|no|never|didn't)\b|n't\b", re.IGNORECASE)


def extract_by_rules(
    messages: Iterable[DialogueMessage], recorder: TaskRecorder, language: Language | None = None
) -> None:
    """Enter all that the messages say of tasks, in the order in which they say it."""
    for message in messages:
        before = NOTHING_BEFORE
        if is_delegation(message.content or ""):
            continue
        for sentence in message_sentences(message.content or "", language):
            _read(sentence, message, recorder, before)
            before = preceding_text(sentence, recorder.said_at(message), recorder.people)


def _read(sentence: MessageSentence, message: DialogueMessage, recorder: TaskRecorder, before: PrecedingText) -> None:
    said_at = recorder.said_at(message)
    requests = [request for request in find_requests(sentence.text, said_at) if request.is_certain]
    for request in requests:
        _read_request(request, sentence, message, recorder)
    if requests or reminder_flaw(sentence.text, said_at):
        return
    drafts = find_tasks(sentence, said_at, recorder.people, before)
    if not _postponed(sentence, drafts, message, recorder):
        _read_statement(sentence, drafts, message, recorder, before)


def _read_request(
    request: TaskRequest, sentence: MessageSentence, message: DialogueMessage, recorder: TaskRecorder
) -> None:
    """Enter the task that the assistant is asked to note; what it is asked to do with one is no task of its own."""
    if request.kind == "add":
        recorder.record_request(request, sentence.text, message)
    elif request.kind != "list" and not _is_carried_out(sentence, message, recorder):
        _read_statement(sentence, (), message, recorder, None)


def _is_carried_out(sentence: MessageSentence, message: DialogueMessage, recorder: TaskRecorder) -> bool:
    """Whether the assistant has made the change already that it was asked for, to whichever task."""
    reports = find_reports(sentence, recorder.said_at(message), recorder.people)
    return any(has_change(task, report, message) for report in reports for task in recorder.book.tasks)


def _read_statement(
    sentence: MessageSentence,
    drafts: Sequence[TaskCandidate],
    message: DialogueMessage,
    recorder: TaskRecorder,
    before: PrecedingText | None,
) -> None:
    """Enter the reports of a sentence, and its tasks; `before` is None where it has none but those."""
    said_at = recorder.said_at(message)
    tells_of_known = reports_heard = False
    for report in find_reports(sentence, said_at, recorder.people):
        task = _task_of(report, sentence, drafts, message, recorder)
        if task:
            reports_heard = True
            _apply(report, task, message, recorder)
            tells_of_known = tells_of_known or report.change != "done"
            if report.change != "done":
                break
    # "Let's move the demo to Monday" is news of a task that is known, not a task of its own.
    if not tells_of_known:
        for draft in drafts:
            recorder.record(draft, message)
    likely = (
        find_likely_tasks(sentence, said_at, recorder.people, before)
        if before and not drafts and not reports_heard
        else []
    )
    for draft in likely:
        recorder.record(draft, message)
    if not (drafts or likely) and (plan := find_plan(sentence, said_at, recorder.people)):
        recorder.plans = [*recorder.plans, (plan, message)][-_MOST_PLANS:]


def _postponed(
    sentence: MessageSentence, drafts: Sequence[TaskCandidate], message: DialogueMessage, recorder: TaskRecorder
) -> bool:
    """«Не дозвонился, завтра попробую»: the task of a moment ago, on another day. «Завтра побегаю» is another one."""
    for draft in drafts:
        if draft.leans and draft.due:
            task = _recent(Hint(sentence.text, is_sure=True), message, recorder)
            if task and task.due != draft.due.at and _leans_on(draft, task, sentence, recorder.people):
                recorder.move(task, draft.due, message)
                return True
    return False


def _task_of(
    report: StatusReport,
    sentence: MessageSentence,
    drafts: Sequence[TaskCandidate],
    message: DialogueMessage,
    recorder: TaskRecorder,
) -> Task | None:
    """The task that a report is of, among all by its object, among those of a moment ago by any word.

    None where the assistant has made the change when the message came: another task would be meant otherwise.
    """
    tasks, people = recorder.book.open, recorder.people
    if not report.is_implied:
        find = done_task if report.change == "done" else spoken_of
        changed = [task for task in recorder.book.tasks if has_change(task, report, message)]
        if changed and find(report.about, message.user_id, changed, people):
            return None
        found = find(report.about, message.user_id, tasks, people)
        if found:
            return found
    is_sure = not report.is_implied and report.change != "done"
    text = report.about if report.change == "done" and not report.is_own else sentence.text
    recent = _recent(Hint(text, is_sure, report.is_own), message, recorder)
    if recent is None or (report.is_implied and drafts and not _is_same_work(drafts, recent, sentence, people)):
        return None
    return recent


def _recent(hint: Hint, message: DialogueMessage, recorder: TaskRecorder) -> Task | None:
    """A task or a plan that was spoken of just before; a plan that changes is a task from then on."""
    tasks = [task for task in recorder.book.open if message.message_id not in task.message_ids]
    hint = replace(hint, text=without_dates(hint.text, dates_in(hint.text, recorder.said_at(message))))
    task = just_spoken_of(hint, message.user_id, message.time, tasks, recorder.people)
    if task or any(message.user_id in (each.asked_by, each.owner_id) for each in tasks):
        return task
    for plan, said_in in reversed(recorder.plans):
        if said_in.message_id != message.message_id and is_meant(plan.text, hint, recorder.people):
            recorder.plans = [each for each in recorder.plans if each[0] is not plan]
            return recorder.record(plan, said_in)
    return None


def _is_same_work(drafts: Sequence[TaskCandidate], task: Task, sentence: MessageSentence, people: KnownPeople) -> bool:
    """Check whether what a sentence promises is the task again, with another date."""
    known = subject(task.text, people)
    return any(
        _leans_on(draft, task, sentence, people)
        if draft.leans
        else not (said := subject(draft.text, people)).verbs or said.verbs & known.verbs
        for draft in drafts
    )


def _leans_on(draft: TaskCandidate, task: Task, sentence: MessageSentence, people: KnownPeople) -> bool:
    """Whether a promise without an object is of a task: it says nothing else, or tells that something was not done."""
    said = subject(draft.text, people).stems
    return not said or bool(said & subject(task.text, people).stems) or bool(_NOT.search(sentence.text))


def _apply(report: StatusReport, task: Task, message: DialogueMessage, recorder: TaskRecorder) -> None:
    match report.change:
        case "done" | "cancelled":
            recorder.close(task, report.change, message)
        case "moved":
            to = report.to or (shifted_date(task.due, report.shift) if task.due and report.shift else None)
            if to:
                recorder.move(task, to, message)
        case "reassigned" if report.by:
            recorder.reassign(task, report.by, message)


NOBODY_KNOWN = KnownPeople()
AGENT = "task_manager"
_NEWS_LASTS = timedelta(days=3)
ZoneOf = Callable[[str], tzinfo]
_PHRASES = {
    Language.ENGLISH: {
        "found": "{who} has given you a task: “{task}”{by}.",
        "reassigned": "{who} has handed you a task: “{task}”{by}.",
        "moved": "{who} has moved “{task}” to {due}.",
        "cancelled": "{who} has called off “{task}”.",
        "done": "{who} says that “{task}” is done.",
        "by": ", due {due}",
    },
    Language.RUSSIAN: {
        "found": "{who}: для вас есть задача «{task}»{by}.",
        "reassigned": "{who}: теперь ваша задача — «{task}»{by}.",
        "moved": "{who}: срок задачи «{task}» теперь {due}.",
        "cancelled": "{who}: задача «{task}» отменена.",
        "done": "{who}: задача «{task}» выполнена.",
        "by": ", срок — {due}",
    },
}


class TaskNotifications:
    """Words for the news of tasks, on the clock of those who read them."""

    def __init__(self, people: KnownPeople, zone_of: ZoneOf) -> None:
        self._people, self._zone_of = people, zone_of

    def of_updates(self, updates: Iterable[TaskUpdate], teller: str) -> tuple[NotificationGenerated, ...]:
        """News for those whom it concerns, except for whoever has told it."""
        return tuple(
            self._notice(update.change, update.task, reader, update.task.changed_at, teller)
            for update in updates
            for reader in _readers(update)
            if reader != teller
        )

    def _notice(self, kind: str, task: Task, reader: str, now: datetime, teller: str) -> NotificationGenerated:
        about = f"{_about(task)} {kind}"
        return NotificationGenerated(
            notification_id=f"ntf_{derived(about, reader, task.changed_at.isoformat())}",
            agent=AGENT,
            to_user=reader,
            message=self._message(kind, task, reader, now, teller),
            context=task.due_said and f"due: {task.due_said}",
            about=about,
            expires=now + _NEWS_LASTS,
            links=(*links_to("task", [task.task_id]), *links_to("message", task.message_ids)),
        )

    def _message(self, kind: str, task: Task, reader: str, now: datetime, teller: str) -> str:
        language = language_of(task.text)
        phrases = _PHRASES[language]
        zone = self._zone_of(reader)
        due = date_text(task.due.astimezone(zone), now.astimezone(zone), language) if task.due else ""
        by = phrases["by"].format(due=due) if due else ""
        return phrases[kind].format(task=task.text, due=due, by=by, who=self._people.name_of(teller))


class TaskManager:
    """Reads fragments by rules, then once more with a language model, where there is one."""

    def __init__(
        self,
        reader: FragmentReader,
        people: KnownPeople = NOBODY_KNOWN,
        zone: tzinfo = UTC,
        zone_of: ZoneOf | None = None,
    ) -> None:
        """`zone` is that of the speaker, `zone_of` tells those of others."""
        self._reader, self._people, self._zone = reader, people, zone
        self._notices = TaskNotifications(people, zone_of or (lambda _user_id: zone))

    async def process(
        self, fragment: DialogueFragment, book: TaskList, present: Present | None = None
    ) -> tuple[TaskList, ProcessingResult[TaskUpdate]]:
        """Task updates of a fragment, and the task list after it."""
        messages = fragment.heard
        recorder = TaskRecorder(book, self._people, self._zone)
        await prepare_kinds(messages)
        # Off the event loop, since a message may have hundreds of sentences.
        await asyncio.to_thread(extract_by_rules, messages, recorder)
        await extract_by_model(messages, recorder, self._reader, present)
        outcome = ProcessingResult[TaskUpdate](
            items=tuple(recorder.updates),
            notifications=self._notices.of_updates(recorder.updates, fragment.user_id),
            links=links_to("message", (each for update in recorder.updates for each in update.task.message_ids)),
        )
        return recorder.book, outcome


def _about(task: Task) -> str:
    return f"{task.task_id} {task.due.isoformat() if task.due else ''}".strip()


def _readers(update: TaskUpdate) -> Sequence[str]:
    task = update.task
    concerned = (task.owner_id,) if update.change in ("found", "reassigned") else (task.owner_id, task.asked_by)
    return tuple(dict.fromkeys(each for each in concerned if each))
