"""Tasks and changes of tasks in messages, by rules."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agents.fragments import MessageSentence, message_sentences
from agents.people import KnownPeople
from agents.task_manager.extraction import (
    NOTHING_BEFORE,
    PrecedingText,
    TaskCandidate,
    find_plan,
    find_tasks,
    preceding_text,
)
from agents.task_manager.status_reports import StatusReport, find_reports, shifted_date
from agents.task_manager.task_lookup import Hint, done_task, is_meant, just_spoken_of, spoken_of, subject
from agents.task_manager.tasks import TaskRecorder
from bus_schema.dialogue import DialogueMessage
from bus_schema.processing import Task
from language.dates.expressions import dates_in, without_dates
from language.words import Language

_MOST_PLANS = 5


def extract_by_rules(
    messages: Iterable[DialogueMessage], recorder: TaskRecorder, language: Language | None = None
) -> None:
    """Enter all that the messages say of tasks, in the order in which they say it."""
    for message in messages:
        before = NOTHING_BEFORE
        for sentence in message_sentences(message.content or "", language):
            _read(sentence, message, recorder, before)
            before = preceding_text(sentence, recorder.said_at(message), recorder.people)


def _read(sentence: MessageSentence, message: DialogueMessage, recorder: TaskRecorder, before: PrecedingText) -> None:
    said_at = recorder.said_at(message)
    drafts = find_tasks(sentence, said_at, recorder.people, before)
    postponed = _postponed(sentence, drafts, message, recorder)
    if postponed:
        return
    tells_of_known = False
    for report in find_reports(sentence, said_at, recorder.people):
        task = _task_of(report, sentence, drafts, message, recorder)
        if task:
            _apply(report, task, message, recorder)
            tells_of_known = tells_of_known or report.change != "done"
            if report.change != "done":
                break
    # "Let's move the demo to Monday" is news of a task that is known, not a task of its own.
    if not tells_of_known:
        for draft in drafts:
            recorder.record(draft, message)
    if not drafts and (plan := find_plan(sentence, said_at, recorder.people)):
        recorder.plans = [*recorder.plans, (plan, message)][-_MOST_PLANS:]


def _postponed(
    sentence: MessageSentence, drafts: Sequence[TaskCandidate], message: DialogueMessage, recorder: TaskRecorder
) -> bool:
    """«Не дозвонился, завтра попробую»: the task of a moment ago, on another day."""
    for draft in drafts:
        if draft.leans and draft.due:
            task = _recent(Hint(sentence.text, is_sure=True), message, recorder)
            if task and task.due != draft.due.at:
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
    """The task that a report is of, among all by its object, among those of a moment ago by any word."""
    tasks, people = recorder.book.open, recorder.people
    if not report.is_implied:
        find = done_task if report.change == "done" else spoken_of
        found = find(report.about, message.user_id, tasks, people)
        if found:
            return found
    is_sure = not report.is_implied and report.change != "done"
    text = report.about if report.change == "done" and not report.is_own else sentence.text
    recent = _recent(Hint(text, is_sure, report.is_own), message, recorder)
    if recent is None or (report.is_implied and drafts and not _is_same_work(drafts, recent, people)):
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


def _is_same_work(drafts: Sequence[TaskCandidate], task: Task, people: KnownPeople) -> bool:
    """Check whether what a sentence promises is the task again, with another date."""
    known = subject(task.text, people)
    return any(
        draft.leans or not (said := subject(draft.text, people)).verbs or said.verbs & known.verbs for draft in drafts
    )


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
