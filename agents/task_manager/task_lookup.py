"""Matching of statements with known tasks by verb and object."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from agents.people import KnownPeople, same_name
from bus_schema.processing import Task
from language.russian import fold_yo, word_forms
from language.words import base_of, bases, has_cyrillic, is_base, is_meaningful, stem, words

# What is said of any task, so that it tells none from another.
_GENERIC_WORDS = """
    task thing job work do done finish complete ready move postpone push reschedule delay cancel need deadline already
    now finally instead hand pass over give take it's we've i've due date new mark fully relevant longer still
    задача дело работа сделать закончить завершить готов готово выполнить перенести переносим сдвинуть отложить отменить
    отменяем нужно нужен нужна срок дедлайн уже теперь наконец вместо передать отдать новый актуально полностью
    попробовать заняться try
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
_CLOSE_ENOUGH = 0.5
_SAME_WORK = 0.75
# So long after a task was spoken of may "make it Thursday" mean it.
_JUST_BEFORE = timedelta(minutes=30)
_BACKWARDS = re.compile(
    r"\b(?:it|this|that|them|её|ее|его|их|это|этого|этим|туда|there|him|her|he|she|они|она|он)\b", re.IGNORECASE
)
_FEW_WORDS = 9
_SHORT = 4


def _root(word: str) -> str:
    """The stem of a word's dictionary form."""
    if has_cyrillic(word):
        forms = word_forms(word.lower())
        lemma = next((form.lemma for form in forms if form.has("VERB") or form.has("INFN")), forms[0].lemma)
        return stem(lemma)
    base = base_of(word.lower())
    return stem(base)


_GENERIC = frozenset(stem(word) for word in _GENERIC_WORDS.split())
_MAKING = frozenset(stem(word) for word in _MAKING_WORDS.split())
_FINISHING = frozenset(stem(word) for word in _FINISHING_WORDS.split())


@dataclass(frozen=True)
class Subject:
    """Stems: what is done, and to what; names and what is said of any task are left out."""

    verbs: frozenset[str]
    objects: tuple[str, ...]
    names: frozenset[str] = frozenset()

    @property
    def stems(self) -> frozenset[str]:
        return self.verbs | set(self.objects)

    def may_mean(self, task: "Subject") -> bool:
        """Check whether this act completes the task: the same verb, one like "done", or a later stage of it."""
        return not self.verbs or not task.verbs or self.says_the_same(task)

    def is_of_others(self, task: "Subject") -> bool:
        """Check for "I called Boris", which is all that it names, where the task is to call somebody else."""
        return bool(self.names) and not self.objects and not self.names & task.names

    def says_the_same(self, task: "Subject") -> bool:
        return bool(self.verbs & task.verbs or (self.verbs & _FINISHING and task.verbs & _MAKING))

    def closeness(self, task: "Subject") -> float:
        """Share of common objects, of the task or of the statement; 0 without the first object of the task."""
        shared = set(self.objects) & set(task.objects)
        if not shared or task.objects[0] not in shared:
            return 0.0
        named = max(len(shared) / len(set(task.objects)), 0.9 * len(shared) / len(set(self.objects)))
        return named + 0.01 * len(self.verbs & task.verbs)

    def nearness(self, task: "Subject") -> float:
        """Number of words shared with a task that was spoken of just before."""
        objects = sum(any(_same_root(each, other) for other in set(task.objects)) for each in set(self.objects))
        is_same_verb = bool(self.verbs & task.verbs) and bool(objects or not self.objects or not task.objects)
        return objects + 0.9 * is_same_verb + 0.6 * len(self.names & task.names)


def _same_root(one: str, other: str) -> bool:
    """Check for one word, or its short form: «преза», «презентация»."""
    short, long = sorted((one, other), key=len)
    return one == other or (
        _SHORT <= len(short) <= _SHORT + 1 and len(long) > len(short) + 2 and long.startswith(short)
    )


@lru_cache(maxsize=4096)
def subject(text: str, people: KnownPeople) -> Subject:
    mentions = people.mentions(text)
    names = {word.lower() for each in mentions for word in text[each.start : each.end].split()}
    verbs, objects = set[str](), []
    for place, word in enumerate(words(text)):
        lowered = word.lower()
        is_short_name = word.isupper() and len(word) > 1
        if lowered in names or not (is_meaningful(word) or is_short_name):
            continue
        root = stem(_verb(word, is_first=not place) or word)
        if root in _GENERIC:
            continue
        if _verb(word, is_first=not place):
            verbs.add(root)
        else:
            objects.append(root)
    return Subject(frozenset(verbs), tuple(objects), frozenset(stem(each.name) for each in mentions))


def done_task(about: str, speaker: str, tasks: Sequence[Task], people: KnownPeople) -> Task | None:
    """The task that somebody reports as done; "done!" alone means the only one that they have."""
    said = subject(about, people)
    if said.objects:
        fitting = [task for task in tasks if said.may_mean(subject(task.text, people))]
        return _closest(said, speaker, fitting, people)
    own = [task for task in tasks if speaker in (task.owner_id, task.asked_by) and _may_be_done(said, task, people)]
    return own[0] if len(own) == 1 else None


def _may_be_done(said: Subject, task: Task, people: KnownPeople) -> bool:
    known = subject(task.text, people)
    return not said.verbs or (said.says_the_same(known) and not said.is_of_others(known))


def spoken_of(about: str, speaker: str, tasks: Sequence[Task], people: KnownPeople) -> Task | None:
    """The task that is moved, given away, called off."""
    return _closest(subject(about, people), speaker, tasks, people)


@dataclass(frozen=True)
class Hint:
    """A sentence that may be about a task of a moment ago.

    One that `is_sure` tells of a change, so it may name little; one that does not `lean` has to name what it is of.
    """

    text: str
    is_sure: bool = False
    leans: bool = True


def just_spoken_of(hint: Hint, speaker: str, now: datetime, tasks: Sequence[Task], people: KnownPeople) -> Task | None:
    """The task of a moment ago that a sentence means: it shares a word with it, or points back and names nothing."""
    recent = [
        task
        for task in tasks
        if timedelta(0) <= now - task.changed_at <= _JUST_BEFORE and speaker in (task.asked_by, task.owner_id)
    ]
    said = subject(hint.text, people)
    near = max(recent, key=lambda task: (said.nearness(subject(task.text, people)), task.changed_at), default=None)
    return near if near and is_meant(near.text, hint, people) else None


def is_meant(task: str, hint: Hint, people: KnownPeople) -> bool:
    """Whether a sentence is about a task of a moment ago."""
    said = subject(hint.text, people)
    if said.nearness(subject(task, people)) >= _CLOSE_ENOUGH:
        return True
    is_short = len(words(hint.text)) <= _FEW_WORDS
    points_back = bool(_BACKWARDS.search(hint.text)) and len(said.objects) <= 2
    return hint.leans and is_short and (points_back or len(said.objects) <= hint.is_sure)


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


@lru_cache(maxsize=4096)
def _verb(word: str, *, is_first: bool) -> str | None:
    """The dictionary form of a verb; in English "the report" is none, unless it opens: "report the figures"."""
    lowered = word.lower()
    if has_cyrillic(word):
        first = word_forms(lowered)[0]
        is_verb = any(first.has(kind) for kind in ("VERB", "INFN", "PRTS", "GRND"))
        return fold_yo(first.lemma) if is_verb else None
    if is_base(lowered) or lowered not in bases():
        return lowered if is_first and is_base(lowered) else None
    return bases()[lowered]
