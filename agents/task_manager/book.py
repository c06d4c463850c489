"""The tasks that are known, with how one finds the task that somebody speaks of."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Self

from pydantic import BaseModel, ConfigDict

from agents.people import People, same_name
from agents.processing import Outcome
from agents.task_manager import english_verbs
from agents.task_manager.russian_verbs import infinitives, plain
from agents.text import is_meaningful, stem, words
from bus_schema.processing import Task, TaskStatus, TaskUpdate

# What is said of any task, so that it tells none from another.
_GENERIC_WORDS = """
    task thing job work do done finish complete ready move postpone push reschedule delay cancel need deadline already
    now finally instead hand pass over give take it's we've i've due date new mark fully drop off relevant longer still
    задача дело работа сделать закончить завершить готов готово выполнить перенести переносим сдвинуть отложить отменить
    отменяем нужно нужен нужна срок дедлайн уже теперь наконец вместо передать отдать новый актуально полностью
    """
_GENERIC = frozenset(map(stem, _GENERIC_WORDS.split()))
_CLOSE_ENOUGH = 0.5
_SAME_WORK = 0.75
_VERB = "="
_MOST_KEPT = 250


class TaskBook(BaseModel):
    """An agent's memory of tasks; `reminded` are the reminders that have gone out, by what they were about."""

    model_config = ConfigDict(frozen=True)
    tasks: tuple[Task, ...] = ()
    reminded: tuple[str, ...] = ()
    outcomes: tuple[Outcome[TaskUpdate], ...] = ()

    @property
    def open(self) -> tuple[Task, ...]:
        return tuple(task for task in self.tasks if task.status is TaskStatus.OPEN)

    def with_task(self, task: Task) -> Self:
        """The book with this task in the place of its former self; of too many, closed ones go first."""
        tasks = [each for each in self.tasks if each.task_id != task.task_id]
        tasks.append(task)
        tasks.sort(key=lambda each: each.found_at)
        while len(tasks) > _MOST_KEPT:
            tasks.remove(next((each for each in tasks if each.status is not TaskStatus.OPEN), tasks[0]))
        return self.model_copy(update={"tasks": tuple(tasks)})


@lru_cache(maxsize=4096)
def subject(text: str, people: People) -> frozenset[str]:
    """The stems that tell a task from others: no names, nothing that is said of any task."""
    names = {text[each.start : each.end].lower() for each in people.mentions(text)}
    return frozenset(
        found
        for word in words(text)
        if word.lower() not in names and is_meaningful(word) and (found := _root(word)) not in _GENERIC
    )


def spoken_of(about: str, speaker: str, tasks: Sequence[Task], people: People) -> Task | None:
    """The task that these words are about; of equals the speaker's own, then the newest.

    Words that name nothing, such as "done!", are about the only task that the speaker has.
    """
    said = subject(about, people)
    if not {each for each in said if not each.startswith(_VERB)}:
        own = [task for task in tasks if speaker in (task.owner_id, task.asked_by)]
        return own[0] if len(own) == 1 else None
    scored = [
        (_closeness(said, subject(task.text, people)), task.owner_id == speaker, task.found_at, task) for task in tasks
    ]
    best = max(scored, key=lambda each: each[:3], default=None)
    return best[3] if best and best[0] >= _CLOSE_ENOUGH else None


def same_task(text: str, owner: str | None, owner_id: str | None, tasks: Iterable[Task], people: People) -> Task | None:
    """The task that says the same in other words, of the same owner, as far as one is named."""
    wanted = subject(text, people)
    for task in tasks:
        known = subject(task.text, people)
        shared = len(wanted & known)
        is_alike = (
            shared and _numbers(wanted) == _numbers(known) and shared >= _SAME_WORK * max(len(wanted), len(known))
        )
        if is_alike and _may_be_one(owner, owner_id, task):
            return task
    return None


def _numbers(stems: frozenset[str]) -> set[str]:
    return {each for each in stems if each[0].isdigit()}


def _may_be_one(owner: str | None, owner_id: str | None, task: Task) -> bool:
    if owner_id and task.owner_id:
        return owner_id == task.owner_id
    return owner is None or task.owner is None or same_name(owner, task.owner)


def _closeness(said: frozenset[str], task: frozenset[str]) -> float:
    """How much of the task was named, or of what was said belongs to it; a verb alone names nothing."""
    shared = said & task
    objects, named = ({each for each in stems if not each.startswith(_VERB)} for stems in (task, said))
    if not shared & objects:
        return 0.0
    covered = len(shared & objects)
    return max(covered / len(objects), 0.9 * covered / len(named)) + 0.01 * len(shared - objects)


def _root(word: str) -> str:
    """A stem; verbs that are known go by one form, marked as such."""
    base = infinitives().get(plain(word)) or english_verbs.bases().get(word.lower())
    found = stem(base or word)
    return _VERB + found if base and found not in _GENERIC else found
