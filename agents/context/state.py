"""State of one user's notifications: delivered, waiting, decided."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict

from bus_schema.notification import NotificationGenerated
from bus_schema.processing import FactUpdate, Mood, TaskUpdate

_MOST_TOLD = 60
_MOST_DECIDED = 120
_MOST_SETTLED = 300

Verdict = Literal["deliver", "defer", "merge", "ignore"]
_WELL_AGAIN = -0.2


class NotificationDecision(BaseModel):
    """A decision with its reason; `merge` waits for the notification `into` and goes out with it."""

    model_config = ConfigDict(frozen=True)
    notification_id: str
    verdict: Verdict
    reason: str
    until: AwareDatetime | None = None
    into: str | None = None


class Delivery(BaseModel):
    """A message for the user; the notifications `merged` are part of it."""

    model_config = ConfigDict(frozen=True)
    to_user: str
    notification_id: str
    merged: tuple[str, ...] = ()
    message: str
    context: str = ""


class DeliveredNotification(BaseModel):
    """A notification that the user has been told."""

    model_config = ConfigDict(frozen=True)
    notification_id: str
    about: str
    message: str
    at: AwareDatetime


class WaitingNotification(BaseModel):
    """A deferred notification; it is decided on again at `until`."""

    model_config = ConfigDict(frozen=True)
    notification: NotificationGenerated
    until: AwareDatetime
    reason: str


class NotificationState(BaseModel):
    """Notifications of one user, bounded in number; kept by storage."""

    model_config = ConfigDict(frozen=True)
    told: tuple[DeliveredNotification, ...] = ()
    waiting: tuple[WaitingNotification, ...] = ()
    decided: tuple[NotificationDecision, ...] = ()
    deliveries: tuple[Delivery, ...] = ()
    settled: tuple[str, ...] = ()

    def decision_on(self, notification_id: str) -> NotificationDecision | None:
        return next((each for each in self.decided if each.notification_id == notification_id), None)

    def delivery_of(self, notification_id: str) -> Delivery | None:
        return next((each for each in self.deliveries if each.notification_id == notification_id), None)

    def delivered_since(self, moment: datetime) -> tuple[DeliveredNotification, ...]:
        return tuple(each for each in self.told if each.at > moment)

    def due(self, now: datetime) -> tuple[WaitingNotification, ...]:
        """Notifications whose wait is over, the most urgent first."""
        order = ("high", "normal", "low")
        due = [each for each in self.waiting if each.until <= now]
        return tuple(sorted(due, key=lambda each: (order.index(each.notification.urgency), each.until)))

    @property
    def next_due(self) -> datetime | None:
        return min((each.until for each in self.waiting), default=None)

    def with_settled(self, ids: Iterable[str]) -> Self:
        """The state with further subjects that need no notification any more."""
        settled = tuple(dict.fromkeys((*self.settled, *ids)))[-_MOST_SETTLED:]
        return self.model_copy(update={"settled": settled})

    def without_settled(self, ids: Iterable[str]) -> Self:
        """The state with subjects that need notifications again."""
        again = frozenset(ids)
        return self.model_copy(update={"settled": tuple(each for each in self.settled if each not in again)})

    def with_decision(self, decision: NotificationDecision, notification: NotificationGenerated) -> Self:
        """A decision replaces the one before it; what it defers waits, what it ends waits no longer."""
        decided = (*(each for each in self.decided if each.notification_id != decision.notification_id), decision)
        waiting = [each for each in self.waiting if each.notification.notification_id != decision.notification_id]
        if decision.until is not None:
            waiting.append(WaitingNotification(notification=notification, until=decision.until, reason=decision.reason))
        return self.model_copy(update={"decided": decided[-_MOST_DECIDED:], "waiting": tuple(waiting)})

    def with_delivery(self, delivery: Delivery, notifications: Iterable[NotificationGenerated], now: datetime) -> Self:
        told = [
            DeliveredNotification(notification_id=each.notification_id, about=each.about, message=each.message, at=now)
            for each in notifications
        ]
        return self.model_copy(
            update={
                "told": (*self.told, *told)[-_MOST_TOLD:],
                "deliveries": (*self.deliveries, delivery)[-_MOST_TOLD:],
            }
        )


def settled_by_tasks(updates: Iterable[TaskUpdate]) -> tuple[str, ...]:
    """The tasks that nobody needs to be reminded of."""
    return tuple(update.task.task_id for update in updates if update.change in ("done", "cancelled"))


def settled_by_facts(updates: Iterable[FactUpdate]) -> tuple[str, ...]:
    """News of a fact that is no longer true itself."""
    replaced = (update.fact.supersedes for update in updates if update.change == "superseded")
    return tuple(f"{fact_id} superseded" for fact_id in replaced if fact_id)


def settled_by_moods(moods: Iterable[Mood]) -> tuple[str, ...]:
    """Concern for somebody who sounds well again."""
    return tuple(f"mood down {mood.assessed_at:%Y-%m-%d}" for mood in moods if mood.tone > _WELL_AGAIN)
