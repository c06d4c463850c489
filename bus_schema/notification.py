"""Events of a notification's life: generated, sent, deferred, ignored."""

from enum import StrEnum

from pydantic import AwareDatetime, Field

from bus_schema.dialogue import DialogueMessageId, NotificationId
from bus_schema.identities import ServiceName, UserId
from bus_schema.messages import Command, Event, Link, Nothing


class Urgency(StrEnum):
    """Urgency of a notification: `high` breaks into quiet hours, `low` waits for a pause in the conversation."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


class NotificationGenerated(Event, topic="notification", name="generated"):
    """An agent wants a user to be told something before it expires; the context agent decides.

    `message` says in plain words what to tell, `context` helps to phrase it; two with the same `about` are about the
    same thing, so that one of them is enough.
    """

    notification_id: NotificationId
    agent: ServiceName
    to_user: UserId
    message: str = Field(min_length=1, max_length=4000)
    context: str = Field(default="", max_length=4000)
    about: str = Field(default="", max_length=256)
    urgency: Urgency = Urgency.NORMAL
    expires: AwareDatetime | None = None
    links: tuple[Link, ...] = ()


class NotificationSent(Event, topic="notification", name="sent"):
    """The user has been told; `merged` notifications were delivered in the same message."""

    notification_id: NotificationId
    to_user: UserId
    message_id: DialogueMessageId
    merged: tuple[NotificationId, ...] = ()


class NotificationDeferred(Event, topic="notification", name="deferred"):
    """Delivery is deferred; a new decision is made at the given time."""

    notification_id: NotificationId
    to_user: UserId
    until: AwareDatetime
    reason: str


class NotificationIgnored(Event, topic="notification", name="ignored"):
    """The notification will not be delivered."""

    notification_id: NotificationId
    to_user: UserId
    reason: str


class ReviewDesk(Command[Nothing], domain="context", action="review_desk"):
    """Decide again about the notifications waiting for a user; those not yet due keep waiting."""

    user_id: UserId
