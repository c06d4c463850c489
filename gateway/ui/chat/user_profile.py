"""Tasks, facts, mood and notifications of a user as agents know them: tasks as listed, the rest from events."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from nicegui import ui
from nicegui.element import Element
from pydantic import ValidationError

from bus_schema.envelope import Envelope
from bus_schema.messages import Event
from bus_schema.notification import NotificationDeferred, NotificationGenerated, NotificationIgnored, NotificationSent
from bus_schema.processing import ContextUpdated, Fact, Mood, MoodAssessed, Task
from gateway.ui.components import anchor, box, head, refill, scroller, text
from gateway.ui.i18n import Localizer, decision_reason
from gateway.ui.svg import area, icon
from gateway.ui.tasks.rows import due_text

_PROCESSED: Final = (ContextUpdated, MoodAssessed)
_NOTIFICATIONS: Final = (NotificationGenerated, NotificationSent, NotificationDeferred, NotificationIgnored)
_READ: Final[dict[str, type[Event]]] = {kind.wire.type: kind for kind in (*_PROCESSED, *_NOTIFICATIONS)}
TOPICS: Final = ("processed", "notification")


@dataclass
class UserProfile:
    """Grows with every event; unreadable events are ignored. Open tasks and current facts are set as listed.

    Until they have been read, facts are those of the events.
    """

    user_id: str
    open_tasks: tuple[Task, ...] = ()
    has_more_tasks: bool = False
    listed_facts: tuple[Fact, ...] | None = None
    has_more_facts: bool = False
    facts: dict[str, Fact] = field(default_factory=dict)
    moods: list[Mood] = field(default_factory=list)
    wishes: dict[str, NotificationGenerated] = field(default_factory=dict)
    deferred: dict[str, NotificationDeferred] = field(default_factory=dict)
    _notification_ids: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _seen_ids: set[str] = field(default_factory=set)

    @property
    def valid_facts(self) -> list[Fact]:
        """Facts that are not superseded, the newest first."""
        if self.listed_facts is not None:
            return list(self.listed_facts)
        return [fact for fact in reversed(self.facts.values()) if fact.superseded_by is None]

    def superseded_fact(self, fact: Fact) -> Fact | None:
        return self.facts.get(fact.supersedes or "")

    def reasons(self, message_id: str) -> list[NotificationGenerated]:
        """Notifications that were merged into this message."""
        return [self.wishes[name] for name in self._notification_ids.get(message_id, ()) if name in self.wishes]

    def learn(self, envelopes: Iterable[Envelope]) -> bool:
        """True if any event was new."""
        is_new = False
        for envelope in envelopes:
            kind = _READ.get(envelope.type)
            if kind is None or envelope.id in self._seen_ids:
                continue
            self._seen_ids.add(envelope.id)
            try:
                self._apply(kind.model_validate(envelope.data or {}))
            except ValidationError:
                continue
            is_new = True
        return is_new

    def _apply(self, event: Event) -> None:
        match event:
            case ContextUpdated():
                for fact_change in event.items:
                    self.facts[fact_change.fact.fact_id] = fact_change.fact
            case MoodAssessed():
                self.moods.extend(event.items)
            case NotificationGenerated():
                self.wishes[event.notification_id] = event
            case _:
                self._apply_delivery(event)

    def _apply_delivery(self, event: Event) -> None:
        match event:
            case NotificationDeferred():
                self.deferred[event.notification_id] = event
            case NotificationSent():
                self._notification_ids[event.message_id] = (event.notification_id, *event.merged)
                for name in self._notification_ids[event.message_id]:
                    self.deferred.pop(name, None)
            case NotificationIgnored():
                self.deferred.pop(event.notification_id, None)
            case _:
                pass


MAX_ROWS = 8
_SHARP = 0.25


class ProfilePanel:
    """Redrawn whenever an agent has reported something."""

    def __init__(self, i18n: Localizer, place: Element) -> None:
        self.i18n = i18n
        with place:
            head(i18n("aside.title"))
            self._body = scroller("mb-grow")

    def show(self, profile: UserProfile) -> None:
        with refill(self._body):
            if profile.moods:
                self._mood(profile)
            self._tasks(profile)
            self._facts(profile)
            self._show_deferred(profile)
            if not (profile.moods or profile.open_tasks or profile.valid_facts):
                text(self.i18n("aside.nothing"), "mb-meta mb-aside-note", "p")

    def _mood(self, profile: UserProfile) -> None:
        i18n, last = self.i18n, profile.moods[-1]
        is_low = last.tone < last.usual - _SHARP
        arrow = "↓" if last.tone < last.usual else "↑" if last.tone > last.usual else ""
        looks = f"mb-num mb-medium mb-end {'mb-warn' if is_low else ''}"
        with self._section("mood", "aside.mood", f"{i18n.number(last.tone, 2)} {arrow}", looks):
            curve = area([mood.tone for mood in profile.moods[-30:]], 236, 40, low=-1, high=1)
            ui.html(curve, sanitize=False).classes(f"mb-mood {'mb-warn' if is_low else 'mb-acc'}")
            if last.evidence:
                text(f"«{last.evidence[0]}»", "mb-meta", "p")

    def _tasks(self, profile: UserProfile) -> None:
        """Those due next, with a link to all of them."""
        i18n, now, tasks = self.i18n, datetime.now(UTC), profile.open_tasks
        if tasks:
            number = i18n.number(len(tasks)) + "+" if profile.has_more_tasks else ""
            note = i18n("aside.more_open", n=number) if number else i18n.count("aside.open", len(tasks))
            with self._section("task", "aside.tasks", note, "mb-meta"):
                for task in tasks[:MAX_ROWS]:
                    due = i18n("aside.due", when=due_text(i18n, task, now)) if task.due else ""
                    self._row(task.text, due, task.owner if task.owner_id != profile.user_id else None)
                anchor(f"/tasks?user={quote(profile.user_id)}", i18n("aside.all_tasks"))

    def _facts(self, profile: UserProfile) -> None:
        i18n, now, facts = self.i18n, datetime.now(UTC), profile.valid_facts
        if facts:
            with self._section("memory", "aside.facts", f"{len(facts)}{'+' if profile.has_more_facts else ''}"):
                for fact in facts[:MAX_ROWS]:
                    shared = i18n("aside.shared", project=fact.shared_with) if fact.shared_with else None
                    about = (i18n(f"fact.{fact.kind.value}"), shared or fact.project, i18n.when(fact.said_at, now))
                    self._row(fact.text, *about, before=profile.superseded_fact(fact))

    def _show_deferred(self, profile: UserProfile) -> None:
        i18n, now, deferred = self.i18n, datetime.now(UTC), profile.deferred
        if deferred:
            with self._section("clock", "aside.deferred", str(len(deferred))):
                for waiting in list(deferred.values())[:MAX_ROWS]:
                    wish = profile.wishes.get(waiting.notification_id)
                    deadline = i18n("aside.until", when=i18n.when(waiting.until, now))
                    self._row(
                        wish.message if wish else waiting.notification_id,
                        deadline,
                        decision_reason(i18n, waiting.reason),
                    )

    @contextmanager
    def _section(self, icon_name: str, title: str, note: str = "", looks: str = "mb-meta mb-num") -> Iterator[None]:
        with box("mb-aside-part", "section"):
            with box("mb-line-x mb-aside-title"):
                icon(icon_name, "mb-i14")
                text(self.i18n(title), "mb-medium")
                text(note, looks)
            yield

    def _row(self, content: str, *about: str | None, before: Fact | None = None) -> None:
        with box("mb-aside-row"):
            if before is not None:
                text(before.text, "mb-struck mb-clamp", "del")
            text(content, "mb-clamp" + (" mb-changed" if before else ""))
            text(" · ".join(part for part in about if part), "mb-cap mb-t3")
