"""What the agents have told about a user, put together."""

from datetime import UTC, datetime

from bus_schema.envelope import Envelope, Kind
from bus_schema.messages import Event
from bus_schema.notification import NotificationDeferred, NotificationGenerated, NotificationSent
from bus_schema.processing import ContextUpdated, Fact, FactKind, FactUpdate
from gateway.ui.chat.user_profile import UserProfile

NOW = datetime(2026, 11, 21, 9, 9, tzinfo=UTC)


def told(event: Event, number: int) -> Envelope:
    return Envelope(
        id=f"e{number}", source="/mb/context/1", type=event.wire.type, time=NOW, correlationid="c",
        mbkind=Kind.EVENT, mbrequester="svc.context", data=event.model_dump(mode="json"),
    )  # fmt: skip


def wish(name: str) -> NotificationGenerated:
    return NotificationGenerated(notification_id=name, agent="mood_watcher", to_user="anna", message="Позвоните.")


def test_a_notification_knows_everybody_who_wanted_it() -> None:
    knowledge = UserProfile("anna")
    sent = NotificationSent(notification_id="ntf_1", to_user="anna", message_id="msg_9", merged=("ntf_2",))
    knowledge.learn([told(wish("ntf_1"), 1), told(wish("ntf_2"), 2), told(sent, 3)])
    assert [reason.notification_id for reason in knowledge.reasons("msg_9")] == ["ntf_1", "ntf_2"]
    assert knowledge.reasons("msg_8") == []


def test_what_waits_is_deferred_until_it_is_sent() -> None:
    knowledge = UserProfile("anna")
    waiting = NotificationDeferred(notification_id="ntf_1", to_user="anna", until=NOW, reason="quiet hours")
    knowledge.learn([told(wish("ntf_1"), 1), told(waiting, 2)])
    assert list(knowledge.deferred) == ["ntf_1"]
    sent = NotificationSent(notification_id="ntf_1", to_user="anna", message_id="msg_9")
    assert knowledge.learn([told(sent, 3)])
    assert not knowledge.deferred


def test_a_fact_that_was_superseded_holds_no_longer_and_is_known_as_what_was_before() -> None:
    old = Fact(
        fact_id="fact_1", kind=FactKind.FACT, text="Макет 28 ноября", said_by="anna", said_at=NOW,
        superseded_by="fact_2", message_ids=("msg_1",),
    )  # fmt: skip
    new = old.model_copy(
        update={"fact_id": "fact_2", "text": "Макет 2 декабря", "supersedes": "fact_1", "superseded_by": None}
    )
    updates = (FactUpdate(change="superseded", fact=old), FactUpdate(change="found", fact=new))
    knowledge = UserProfile("anna")
    knowledge.learn(
        [told(ContextUpdated(agent="context_manager", fragment_id="frag_1", user_id="anna", items=updates), 1)]
    )
    assert knowledge.valid_facts == [new]
    assert knowledge.superseded_fact(new) == old


def test_an_event_is_learned_once_and_a_foreign_one_tells_nothing() -> None:
    knowledge = UserProfile("anna")
    first = told(wish("ntf_1"), 1)
    assert knowledge.learn([first])
    assert not knowledge.learn([first])
    assert not knowledge.learn([first.model_copy(update={"id": "e2", "data": {"nonsense": True}})])
