"""Matching of statements with known tasks by verb and object."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agents.people import KnownPeople, same_name
from agents.task_manager.english import bases
from agents.task_manager.russian_verbs import infinitive_of
from bus_schema.processing import Task
from language.words import is_meaningful, stem, words

# What is said of any task, so that it tells none from another.
_GENERIC_WORDS = """
    task thing job work do done finish complete ready move postpone push reschedule delay cancel need deadline already
    now finally instead hand pass over give take it's we've i've due date new mark fully relevant longer still
    задача дело работа сделать закончить завершить готов готово выполнить перенести переносим сдвинуть отложить отменить
    отменяем нужно нужен нужна срок дедлайн уже теперь наконец вместо передать отдать новый актуально полностью
    """
# What has been sent has been written before.
_MAKING_WORDS = """
    prepare write draft make create compose draw build collect compile plan finalise finalize finish fix repair
    подготовить сделать написать составить нарисовать собрать создать построить рассчитать посчитать дописать доделать
    исправить починить оформить
    """
_FINISHING_WORDS = """
    send submit deliver ship publish upload post close launch release present file
    отправить прислать выслать сдать опубликовать выложить закрыть запустить выпустить показать разослать переслать
    скинуть передать
    """
_GENERIC = frozenset(map(stem, _GENERIC_WORDS.split()))
_MAKING = frozenset(map(stem, _MAKING_WORDS.split()))
_FINISHING = frozenset(map(stem, _FINISHING_WORDS.split()))
_CLOSE_ENOUGH = 0.5
_SAME_WORK = 0.75


@dataclass(frozen=True)
class Subject:
    """Stems: what is done, and to what; names and what is said of any task are left out."""

    verbs: frozenset[str]
    objects: tuple[str, ...]

    @property
    def stems(self) -> frozenset[str]:
        return self.verbs | set(self.objects)

    def may_mean(self, task: "Subject") -> bool:
        """Check whether this act completes the task: the same verb, one like "done", or a later stage of it."""
        return not self.verbs or not task.verbs or self.says_the_same(task)

    def says_the_same(self, task: "Subject") -> bool:
        return bool(self.verbs & task.verbs or (self.verbs & _FINISHING and task.verbs & _MAKING))

    def closeness(self, task: "Subject") -> float:
        """Share of common objects, of the task or of the statement; 0 without the first object of the task."""
        shared = set(self.objects) & set(task.objects)
        if not shared or task.objects[0] not in shared:
            return 0.0
        named = max(len(shared) / len(set(task.objects)), 0.9 * len(shared) / len(set(self.objects)))
        return named + 0.01 * len(self.verbs & task.verbs)


@lru_cache(maxsize=4096)
def subject(text: str, people: KnownPeople) -> Subject:
    names = {text[each.start : each.end].lower() for each in people.mentions(text)}
    verbs, objects = set[str](), []
    for place, word in enumerate(words(text)):
        base = _verb(word, is_first=not place)
        root = stem(base or word)
        if word.lower() in names or not is_meaningful(word) or root in _GENERIC:
            continue
        if base:
            verbs.add(root)
        else:
            objects.append(root)
    return Subject(frozenset(verbs), tuple(objects))


def done_task(about: str, speaker: str, tasks: Sequence[Task], people: KnownPeople) -> Task | None:
    """The task that somebody reports as done; "done!" alone means the only one that they have."""
    said = subject(about, people)
    if said.objects:
        fitting = [task for task in tasks if said.may_mean(subject(task.text, people))]
        return _closest(said, speaker, fitting, people)
    own = [
        task
        for task in tasks
        if speaker in (task.owner_id, task.asked_by)
        and (not said.verbs or said.says_the_same(subject(task.text, people)))
    ]
    return own[0] if len(own) == 1 else None


def spoken_of(about: str, speaker: str, tasks: Sequence[Task], people: KnownPeople) -> Task | None:
    """The task that is moved, given away, called off."""
    return _closest(subject(about, people), speaker, tasks, people)


def same_task(
    text: str, owner: str | None, owner_id: str | None, tasks: Iterable[Task], people: KnownPeople
) -> Task | None:
    """The task that says the same in other words, of the same owner, as far as one is named."""
    wanted = subject(text, people).stems
    for task in tasks:
        known = subject(task.text, people).stems
        shared = len(wanted & known)
        is_alike = shared and shared >= _SAME_WORK * max(len(wanted), len(known))
        if is_alike and _numbers(wanted) == _numbers(known) and _may_be_one(owner, owner_id, task):
            return task
    return None


def is_within(text: str, other: str, people: KnownPeople) -> bool:
    """Check whether all stems of one text are among those of the other."""
    one, two = subject(text, people).stems, subject(other, people).stems
    return bool(one and two) and (one <= two or two <= one)


def _closest(said: Subject, speaker: str, tasks: Sequence[Task], people: KnownPeople) -> Task | None:
    """The closest task; of equals the speaker's own, then the newest."""
    scored = [
        (said.closeness(subject(task.text, people)), task.owner_id == speaker, task.found_at, task) for task in tasks
    ]
    best = max(scored, key=lambda each: each[:3], default=None)
    return best[3] if best and best[0] >= _CLOSE_ENOUGH else None


def _numbers(stems: Iterable[str]) -> set[str]:
    return {each for each in stems if each[0].isdigit()}


def _may_be_one(owner: str | None, owner_id: str | None, task: Task) -> bool:
    if owner_id and task.owner_id:
        return owner_id == task.owner_id
    return owner is None or task.owner is None or same_name(owner, task.owner)


def _verb(word: str, *, is_first: bool) -> str | None:
    """The dictionary form of a verb; in English "the report" is none, unless it opens: "report the figures"."""
    russian = infinitive_of(word)
    english = bases().get(word.lower())
    return russian or (english if is_first or english != word.lower() else None)
