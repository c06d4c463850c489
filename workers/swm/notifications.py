"""Notifications of shared memory: events for everybody and for each subscriber."""

from collections.abc import Iterable, Iterator

from bus_schema.glm import KemDeleted, KemUpdated
from bus_schema.kem import KemNotice
from bus_schema.messages import Event
from bus_schema.swm import KemEvicted, KemPublished
from memory.glm.notices import notice_of
from memory.swm.subscriptions import KemEvent, Recipient, Subscriptions
from mindbus.bus.handlers import PublishTo

Notification = Event | PublishTo


async def notifications_of(happened: Iterable[KemEvent], subscriptions: Subscriptions) -> list[Notification]:
    """The event for everybody, unless it has been published, and for each subscriber what it may read."""
    notifications: list[Notification] = []
    for happening in happened:
        if not happening.is_published:
            notifications.append(_notice(happening))
        notifications += _to_each(happening, await subscriptions.recipients(happening))
    return notifications


def _to_each(happening: KemEvent, hearings: Iterable[Recipient]) -> Iterator[PublishTo]:
    whole = _whole(happening)
    for hearing in hearings:
        event = KemEvicted(kem_id=happening.kem_id) if hearing.is_lost else whole
        yield PublishTo(event, hearing.subscription_id)


def _notice(happening: KemEvent) -> Event:
    if happening.kem is None:
        return _end(happening)
    return notice_of(happening.kem, _kind(happening))


def _whole(happening: KemEvent) -> Event:
    kem = happening.kem
    if kem is None:
        return _end(happening)
    seen = {"kem_id": kem.id, "version": kem.version, "updated_at": kem.updated_at, "visibility": kem.visibility}
    return _kind(happening).model_validate(seen | {"metadata": kem.metadata, "kem": kem})


def _kind(happening: KemEvent) -> type[KemNotice]:
    return KemPublished if happening.event_type == "KEM_PUBLISHED" else KemUpdated


def _end(happening: KemEvent) -> Event:
    kind = KemDeleted if happening.event_type == "KEM_DELETED" else KemEvicted
    return kind(kem_id=happening.kem_id)
