"""What a fragment adds to what is known, statement by statement."""

from datetime import datetime, tzinfo
from typing import Literal

from agents.context_manager.knowledge import Knowledge, repeated, replaced
from bus_schema.dialogue import DialogueMessage
from bus_schema.ids import derived
from bus_schema.processing import Fact, FactKind, FactUpdate


class Ledger:
    """Keeps knowledge while a fragment is read; `updates` is what has happened to it."""

    def __init__(self, knowledge: Knowledge, zone: tzinfo) -> None:
        self.knowledge = knowledge
        self.updates: list[FactUpdate] = []
        self._zone = zone

    def said_at(self, message: DialogueMessage) -> datetime:
        """The moment on the clock of those who speak."""
        return message.time.astimezone(self._zone)

    def enter(
        self, text: str, kind: FactKind, message: DialogueMessage, project: str | None, old: Fact | None = None
    ) -> None:
        """Something is known anew, or known already; `old` is what it replaces, where somebody knows better."""
        said_at = self.said_at(message)
        within = [fact for fact in self.knowledge.current if _may_be_of(project, fact)]
        known = repeated(text, said_at, kind, within)
        if known:
            self._confirm(known, message)
            return
        old = old or replaced(text, said_at, kind, within)
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
