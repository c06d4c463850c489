"""The fact base: stated facts, and how a new statement repeats or supersedes a known one."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict

from agents.fragments import numbers_in
from agents.syntax.english_grammar import bases
from bus_schema.dialogue import DialogueMessage
from bus_schema.ids import derived
from bus_schema.processing import Fact, FactKind, FactUpdate
from language.dates.expressions import dates_in, without_dates
from language.russian import word_forms
from language.word_lists import MEASURES
from language.words import has_cyrillic, is_meaningful, stem, words

_MOST_KEPT = 200
_SAME = 0.75
_ALIKE = 0.6
_CHANGED = 0.3

_CHANGE = re.compile(
    r"\b(?:теперь|больше не|уже не|вместо|передумали|перенесли|переносится|изменили\w*|поменял\w*|увеличил\w*)\b"
    r"|\b(?:снизил\w*|сократил\w*|вырос\w*|на самом деле|отказались|отказываемся)\b"
    r"|\b(?:now|no longer|not any ?more|instead|changed|moved|increased|raised|cut|reduced|grew|actually)\b"
    r"|\b(?:switch\w*|won't)\b",
    re.IGNORECASE,
)
_INSTEAD_OF = re.compile(
    r"\b(?:вместо|instead of|отказались от|отказываемся от|больше не \w+|no longer \w+|stop using)\s+([^\s,.;]+)",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[\w,:—–-] )[A-ZА-ЯЁ][\w-]+|\b[A-Z][A-Za-z]*[A-Z]\w*\b|\b[A-Z][a-z]+\b(?=[^.]*[а-яё])")
_GENERIC_WORDS = """
    решить решили решено договориться договорились согласовали утвердили выбрали остановились использовать будем
    переходим перешли отказались передумали проект проекта теперь больше вместо новый новая новое планируем
    запланирован назначен назначена вырос выросла увеличили снизили составляет составит итог сейчас пока decide
    decided agree agreed choose chose chosen approve approved settle settled go going use using switch switching
    project new now longer instead plan planned set increase increased raise raised grow grew currently напомню
    напоминаю кстати итак reminder fyi btw way remind
    """
_GENERIC = frozenset(map(stem, _GENERIC_WORDS.split())) | frozenset(map(stem, MEASURES))


@dataclass(frozen=True)
class StatementContent:
    """Stems of a statement's subject, with the values that it states."""

    subject: frozenset[str]
    numbers: frozenset[str]
    dates: frozenset[str]
    names: frozenset[str]

    @property
    def values(self) -> frozenset[str]:
        return self.numbers | self.dates | self.names


class FactBase(BaseModel):
    """An agent's memory of what was said to be so; what holds no longer stays, marked."""

    model_config = ConfigDict(frozen=True)
    facts: tuple[Fact, ...] = ()

    @property
    def current(self) -> tuple[Fact, ...]:
        return tuple(fact for fact in self.facts if fact.superseded_by is None)

    def with_fact(self, fact: Fact) -> Self:
        """The knowledge with this fact in the place of its former self; of too many, superseded ones go first."""
        facts = [each for each in self.facts if each.fact_id != fact.fact_id]
        facts.append(fact)
        facts.sort(key=lambda each: each.said_at)
        while len(facts) > _MOST_KEPT:
            facts.remove(next((each for each in facts if each.superseded_by), facts[0]))
        return self.model_copy(update={"facts": tuple(facts)})

    def without(self, user_id: str) -> Self:
        """The knowledge without what a user said; what that had superseded does not hold again."""
        return self.model_copy(update={"facts": tuple(fact for fact in self.facts if fact.said_by != user_id)})


def find_repeated(text: str, said_at: datetime, kind: FactKind, known: Iterable[Fact]) -> Fact | None:
    """The fact that says the same."""
    new = statement_content(text, said_at)
    for fact in known:
        old = statement_content(fact.text, fact.said_at)
        is_same_subject = _overlap(new.subject, old.subject) >= _SAME
        if fact.kind is kind and is_same_subject and (new.numbers, new.dates) == (old.numbers, old.dates):
            return fact if _overlap(new.names, old.names) >= _SAME or not (new.names or old.names) else None
    return None


def find_superseded(text: str, said_at: datetime, kind: FactKind, known: Iterable[Fact]) -> Fact | None:
    """The fact that holds no longer, if this one holds: alike in what it is about, not in what it says of it."""
    new = statement_content(text, said_at)
    dropped = {stem(each) for each in _INSTEAD_OF.findall(text)}
    is_change = bool(_CHANGE.search(text))
    scored = []
    for fact in known:
        old = statement_content(fact.text, fact.said_at)
        if dropped & (old.names | old.subject):
            scored.append((2.0, fact.said_at, fact))
        elif fact.kind is kind or is_change:
            alike = _overlap(new.subject, old.subject)
            if alike >= (_CHANGED if is_change else _ALIKE) and _contradicts(new, old, is_change):
                scored.append((alike, fact.said_at, fact))
    best = max(scored, key=lambda each: each[:2], default=None)
    return best[2] if best else None


@lru_cache(maxsize=4096)
def statement_content(text: str, said_at: datetime) -> StatementContent:
    dates = dates_in(text, said_at)
    rest = without_dates(text, dates)
    names = {stem(name) for name in _NAME.findall(rest)}
    subject = {
        root
        for word in words(rest)
        if is_meaningful(word) and not word[0].isdigit() and not _is_verb(word) and (root := stem(word)) not in _GENERIC
    }
    return StatementContent(
        subject=frozenset(subject - names),
        numbers=numbers_in(rest),
        dates=frozenset(each.at.isoformat() for each in dates),
        names=frozenset(names),
    )


def _contradicts(new: StatementContent, old: StatementContent, is_change: bool) -> bool:
    """Check whether both statements cannot hold: other numbers or dates; other names only in a stated change."""
    for ours, theirs in ((new.numbers, old.numbers), (new.dates, old.dates)):
        if ours and theirs and ours != theirs:
            return True
    return is_change and new.values != old.values


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(len(one), len(other)) if one and other else 0.0


def _is_verb(word: str) -> bool:
    """Check whether a word can only be a verb: in English "the release" and "to release" are one word."""
    if has_cyrillic(word):
        first = word_forms(word.lower())[0]
        return any(first.has(kind) for kind in ("VERB", "PRTS", "GRND"))
    return bases().get(word.lower(), word.lower()) != word.lower()


class FactRecorder:
    """Records facts while a fragment is read; `updates` lists the changes."""

    def __init__(self, knowledge: FactBase, zone: tzinfo) -> None:
        self.knowledge = knowledge
        self.updates: list[FactUpdate] = []
        self._zone = zone

    def said_at(self, message: DialogueMessage) -> datetime:
        """The moment on the clock of those who speak."""
        return message.time.astimezone(self._zone)

    def record(
        self, text: str, kind: FactKind, message: DialogueMessage, project: str | None, old: Fact | None = None
    ) -> None:
        """Record a statement as new or confirmed; `old` is the fact that it supersedes, where that is known."""
        said_at = self.said_at(message)
        within = [fact for fact in self.knowledge.current if _may_be_of(project, fact)]
        known = find_repeated(text, said_at, kind, within)
        if known:
            self._confirm(known, message)
            return
        old = old or find_superseded(text, said_at, kind, within)
        ordinal = sum(message.message_id == fact.message_ids[0] for fact in self.knowledge.facts)
        fact = Fact(
            fact_id=f"fact_{derived(message.message_id, 'fact', ordinal)}",
            kind=kind,
            text=text[:1000],
            said_by=message.user_id,
            project=project or (old.project if old else None),
            said_at=said_at,
            supersedes=old.fact_id if old else None,
            message_ids=(message.message_id,),
        )
        if old:
            self._note("superseded", old.model_copy(update={"superseded_by": fact.fact_id}))
        self._note("found", fact)

    def _confirm(self, fact: Fact, message: DialogueMessage) -> None:
        if message.message_id not in fact.message_ids:
            ids = (*fact.message_ids, message.message_id)
            self._note("confirmed", fact.model_copy(update={"message_ids": ids}))

    def _note(self, change: Literal["found", "confirmed", "superseded"], fact: Fact) -> None:
        self.knowledge = self.knowledge.with_fact(fact)
        self.updates.append(FactUpdate(change=change, fact=fact))


def _may_be_of(project: str | None, fact: Fact) -> bool:
    return project is None or fact.project is None or fact.project.casefold() == project.casefold()
