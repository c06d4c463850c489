"""The fact base: stated facts, and how a new statement repeats or supersedes a known one."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import lru_cache
from heapq import nlargest
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict

from bus_schema.dialogue import DialogueMessage
from bus_schema.ids import derived
from bus_schema.processing import Fact, FactKind, FactUpdate
from language.statements import contradicts, overlap, statement_content, states_change
from language.words import is_meaningful, stem, words

_SAME = 0.75
_MOST_COMPARED = 100
_ALIKE = 0.6
_CHANGED = 0.3

_INSTEAD_OF = re.compile(
    r"\b(?:вместо|instead of|отказались от|отказываемся от|больше не \w+|no longer \w+|stop using)\s+([^\s,.;]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class FactStatement:
    """A sentence that makes something known, the project that it is of, the one whose members may be told."""

    text: str
    kind: FactKind
    project: str | None = None
    shared_with: str | None = None


class FactBase(BaseModel):
    """Facts that a fragment is compared with, and those found in it; what holds no longer stays, marked."""

    model_config = ConfigDict(frozen=True)
    facts: tuple[Fact, ...] = ()

    @classmethod
    def of(cls, facts: Iterable[Fact]) -> Self:
        """A base of these facts, in the order in which they were stated."""
        return cls(facts=tuple(sorted(facts, key=lambda fact: fact.said_at)))

    @property
    def current(self) -> tuple[Fact, ...]:
        return tuple(fact for fact in self.facts if fact.superseded_by is None)

    def with_fact(self, fact: Fact) -> Self:
        """The knowledge with this fact in the place of its former self."""
        return self.of((*(each for each in self.facts if each.fact_id != fact.fact_id), fact))

    def without(self, user_id: str) -> Self:
        """The knowledge without what a user said; what that had superseded does not hold again."""
        return self.model_copy(update={"facts": tuple(fact for fact in self.facts if fact.said_by != user_id)})


def find_repeated(text: str, said_at: datetime, kind: FactKind, known: Iterable[Fact]) -> Fact | None:
    """The fact that says the same."""
    new = statement_content(text, said_at)
    for fact in known:
        old = statement_content(fact.text, fact.said_at)
        is_same_subject = overlap(new.subject, old.subject) >= _SAME
        if fact.kind is kind and is_same_subject and (new.numbers, new.dates) == (old.numbers, old.dates):
            return fact if overlap(new.names, old.names) >= _SAME or not (new.names or old.names) else None
    return None


def find_superseded(text: str, said_at: datetime, kind: FactKind, known: Iterable[Fact]) -> Fact | None:
    """The fact that holds no longer, if this one holds: alike in what it is about, not in what it says of it.

    Both must state a value of one sort, a number, a date or a name: that there was a call about the budget, a new
    budget does not contradict. News of a change may say less of its subject, but has to begin with it.
    """
    new = statement_content(text, said_at)
    dropped = {stem(each) for each in _INSTEAD_OF.findall(text)}
    is_change = states_change(text)
    scored = []
    for fact in known:
        old = statement_content(fact.text, fact.said_at)
        if dropped & (old.names | old.subject):
            # Rather what was decided than what else was told of the same thing.
            scored.append((2.0 + (fact.kind in (kind, FactKind.DECISION)), fact.said_at, fact))
        elif fact.kind is kind or is_change:
            alike = overlap(new.subject, old.subject)
            least = _CHANGED if is_change and new.head == old.head else _ALIKE
            if alike >= least and contradicts(new, old, is_change=is_change):
                scored.append((alike, fact.said_at, fact))
    best = max(scored, key=lambda each: each[:2], default=None)
    return best[2] if best else None


class FactRecorder:
    """Records facts while a fragment is read; `updates` lists the changes."""

    def __init__(self, knowledge: FactBase, zone: tzinfo, projects: Sequence[str] = ()) -> None:
        """`projects` are those of the speaker, with whose members a fact may be shared."""
        self.knowledge, self.projects = knowledge, projects
        self.updates: list[FactUpdate] = []
        self._zone = zone

    def said_at(self, message: DialogueMessage) -> datetime:
        """The moment on the clock of those who speak."""
        return message.time.astimezone(self._zone)

    def record(self, statement: FactStatement, message: DialogueMessage, old: Fact | None = None) -> None:
        """Record a statement as new or confirmed; `old` is the fact that it supersedes, where that is known.

        Whoever says what another has said before has a fact of their own; both are superseded together, if both are
        shared with one project.
        """
        said_at, text, kind = self.said_at(message), statement.text, statement.kind
        within = _candidates(
            text,
            (
                fact
                for fact in self.knowledge.current
                if _may_be_of(statement.project, fact)
                and (fact.said_by == message.user_id or _is_shared(fact, statement))
            ),
        )
        own = [fact for fact in within if fact.said_by == message.user_id]
        known = find_repeated(text, said_at, kind, own)
        if known:
            self._confirm(known, message)
            return
        if old is None or (old.said_by != message.user_id and not _is_shared(old, statement)):
            old = find_superseded(text, said_at, kind, within)
        ordinal = sum(message.message_id == fact.message_ids[0] for fact in self.knowledge.facts)
        fact = Fact(
            # Ids of messages are their speaker's: two may use the same.
            fact_id=f"fact_{derived(message.user_id, message.message_id, 'fact', ordinal)}",
            kind=kind,
            text=text[:1000],
            said_by=message.user_id,
            project=statement.project or (old.project if old else None),
            said_at=said_at,
            supersedes=old.fact_id if old else None,
            message_ids=(message.message_id,),
            shared_with=statement.shared_with,
        )
        # What the speaker corrects of their own may differ from what another has shared of the same.
        others = find_superseded(text, said_at, kind, (each for each in within if each.said_by != message.user_id))
        replaced = {each.fact_id: each for known in (others, old) if known for each in _copies(known, within)}
        for each in replaced.values():
            self._note("superseded", each.model_copy(update={"superseded_by": fact.fact_id}))
        self._note("found", fact)

    def _confirm(self, fact: Fact, message: DialogueMessage) -> None:
        if message.message_id not in fact.message_ids:
            ids = (*fact.message_ids, message.message_id)
            self._note("confirmed", fact.model_copy(update={"message_ids": ids}))

    def _note(self, change: Literal["found", "confirmed", "superseded"], fact: Fact) -> None:
        self.knowledge = self.knowledge.with_fact(fact)
        self.updates.append(FactUpdate(change=change, fact=fact))


def _candidates(text: str, facts: Iterable[Fact]) -> list[Fact]:
    """The facts that share most words with a text, of which others cannot be alike: to read one takes milliseconds."""
    roots = _roots(text)
    shared = [(len(roots & _roots(fact.text)), fact) for fact in facts]
    best = nlargest(_MOST_COMPARED, (each for each in shared if each[0]), key=lambda each: each[0])
    return sorted((fact for _number, fact in best), key=lambda fact: fact.said_at)


@lru_cache(maxsize=8192)
def _roots(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words(text) if is_meaningful(word))


def _copies(fact: Fact, others: Iterable[Fact]) -> list[Fact]:
    """The fact, after those of others that say the same."""
    same = [
        each
        for each in others
        if each.fact_id != fact.fact_id and find_repeated(fact.text, fact.said_at, fact.kind, (each,))
    ]
    return [*same, fact]


def _is_shared(fact: Fact, statement: FactStatement) -> bool:
    return statement.shared_with is not None and fact.is_shared_with((statement.shared_with,))


def _may_be_of(project: str | None, fact: Fact) -> bool:
    return project is None or fact.project is None or fact.project.casefold() == project.casefold()
