"""What the agents have found out about one user, read from what they told."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from pydantic import ValidationError

from bus_schema.envelope import Envelope
from bus_schema.messages import Event
from bus_schema.notification import (
    NotificationDeferred,
    NotificationGenerated,
    NotificationIgnored,
    NotificationSent,
)
from bus_schema.processing import ContextUpdated, Fact, Mood, MoodAssessed, Task, TasksFound, TaskStatus

_READ: Final[dict[str, type[Event]]] = {
    kind.wire.type: kind
    for kind in (
        TasksFound,
        ContextUpdated,
        MoodAssessed,
        NotificationGenerated,
        NotificationSent,
        NotificationDeferred,
        NotificationIgnored,
    )
}
TOPICS: Final = ("processed", "notification")


@dataclass
class Knowledge:
    """It grows with every event; one that cannot be read tells nothing."""

    tasks: dict[str, Task] = field(default_factory=dict)
    facts: dict[str, Fact] = field(default_factory=dict)
    moods: list[Mood] = field(default_factory=list)
    wishes: dict[str, NotificationGenerated] = field(default_factory=dict)
    deferred: dict[str, NotificationDeferred] = field(default_factory=dict)
    _told: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _heard: set[str] = field(default_factory=set)

    @property
    def open_tasks(self) -> list[Task]:
        """What is still to be done, the newest first."""
        return [task for task in reversed(self.tasks.values()) if task.status is TaskStatus.OPEN]

    @property
    def valid_facts(self) -> list[Fact]:
        """What holds now, the newest first."""
        return [fact for fact in reversed(self.facts.values()) if fact.superseded_by is None]

    def replaced_by(self, fact: Fact) -> Fact | None:
        """What held before this did."""
        return self.facts.get(fact.supersedes or "")

    def reasons(self, message_id: str) -> list[NotificationGenerated]:
        """What agents wanted the user to know when the assistant said this."""
        return [self.wishes[name] for name in self._told.get(message_id, ()) if name in self.wishes]

    def learn(self, envelopes: Iterable[Envelope]) -> bool:
        """Whether there was anything new in them."""
        is_new = False
        for envelope in envelopes:
            kind = _READ.get(envelope.type)
            if kind is None or envelope.id in self._heard:
                continue
            self._heard.add(envelope.id)
            try:
                self._take(kind.model_validate(envelope.data or {}))
            except ValidationError:
                continue
            is_new = True
        return is_new

    def _take(self, event: Event) -> None:
        match event:
            case TasksFound():
                for change in event.items:
                    self.tasks[change.task.task_id] = change.task
            case ContextUpdated():
                for news in event.items:
                    self.facts[news.fact.fact_id] = news.fact
            case MoodAssessed():
                self.moods.extend(event.items)
            case NotificationGenerated():
                self.wishes[event.notification_id] = event
            case _:
                self._take_fate(event)

    def _take_fate(self, event: Event) -> None:
        match event:
            case NotificationDeferred():
                self.deferred[event.notification_id] = event
            case NotificationSent():
                names = (event.notification_id, *event.merged)
                self._told[event.message_id] = names
                for name in names:
                    self.deferred.pop(name, None)
            case NotificationIgnored():
                self.deferred.pop(event.notification_id, None)
            case _:
                pass
