"""What is said in a dialogue holds together; what cannot be said is refused in words that help."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from bus_schema.agent_data import MAX_VALUE_BYTES, PutAgentData
from bus_schema.conversations import SaveMessage
from bus_schema.data import ClearData
from bus_schema.dialogue import MAX_MESSAGE_CHARS, DialogueFragment, DialogueMessage, Invoke
from bus_schema.envelope import Envelope, explain
from bus_schema.sim import StartSim
from bus_schema.timeline import TimelineEvent

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
POINTER = {"artifact_id": "art_1", "version": 1, "sha256": "a" * 64, "size_bytes": 9, "content_type": "text/plain"}


def a_message(**changes: Any) -> DialogueMessage:
    fields: dict[str, Any] = {
        "message_id": "msg_1",
        "user_id": "anna",
        "role": "user",
        "content": "Привет!",
        "time": NOON,
    }
    return DialogueMessage(**(fields | changes))


def a_fragment(**changes: Any) -> DialogueFragment:
    fields: dict[str, Any] = {
        "fragment_id": "frag_1",
        "user_id": "anna",
        "message_ids": ("msg_1",),
        "messages": (a_message(),),
        "started_at": NOON,
        "ended_at": NOON,
        "reason": "timeout",
    }
    return DialogueFragment(**(fields | changes))


def refusal(of: type[BaseModel], /, **fields: Any) -> str:
    with pytest.raises(ValidationError) as invalid:
        of(**fields)
    return explain(invalid.value)


def test_a_message_belongs_to_the_one_dialogue_of_its_user() -> None:
    assert a_message().trace_id == "conv_anna"
    assert a_message(trace_id="conv_anna") == a_message()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"content": ""}, "content: is empty; say something"),
        ({"content": " \n\t"}, "content: is empty; say something"),
        ({"content": "ы" * (MAX_MESSAGE_CHARS + 1)}, "has 32001 characters, 32000 at most; make it an artifact"),
        ({"content": "a\0b"}, "content: contains a NUL character; remove it"),
        ({"content": None}, "a message has either content or a ref to it"),
        ({"ref": POINTER}, "a message has either content or a ref to it"),
        ({"user_id": "Анна"}, "user_id: a user id has 1 to 64 characters"),
        ({"user_id": ".."}, "user_id: a user id has 1 to 64 characters"),
        ({"user_id": "a b"}, "user_id: a user id has 1 to 64 characters"),
        ({"user_id": "a" * 65}, "user_id: a user id has 1 to 64 characters"),
        ({"trace_id": "conv_boris"}, "the trace of a dialogue is conv_ followed by its user's id"),
        ({"role": "assistant", "kind": "hidden"}, "a hidden message is said by the user, not by the assistant"),
        ({"role": "assistant", "kind": "response"}, "a response message is said by the user"),
        ({"kind": "notification"}, "a notification message is said by the assistant, not by the user"),
        ({"time": NOON.replace(tzinfo=None)}, "time: Input should have timezone info"),
    ],
)
def test_what_cannot_be_kept_as_a_message_is_refused_with_the_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError) as invalid:
        a_message(**changes)

    assert reason in explain(invalid.value)


def test_a_refusal_names_the_fault_once() -> None:
    said = refusal(SaveMessage, message_id="msg_1", user_id="a b", role="user", content="Hi", time=NOON)

    assert said.count(";") == 0
    assert said.startswith("user_id: ")


def test_a_longer_text_is_sent_as_a_pointer() -> None:
    assert a_message(content=None, ref=POINTER).ref is not None
    assert Invoke(user_id="anna", ref=POINTER).message is None
    assert "give either a message or a ref" in refusal(Invoke, user_id="anna")
    assert "give either a message or a ref" in refusal(Invoke, user_id="anna", message="Hi", ref=POINTER)


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    assert "message: contains half of a character" in refusal(Invoke, user_id="anna", message="\ud83d")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"messages": ()}, "either its messages or a ref to them"),
        ({"ref": POINTER}, "either its messages or a ref to them"),
        ({"message_ids": ("msg_2",)}, "message_ids are those of the messages, in their order"),
        ({"user_id": "boris"}, "a fragment is of one user's dialogue"),
        ({"reason": "boredom"}, "reason"),
    ],
)
def test_a_fragment_holds_together(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError) as invalid:
        a_fragment(**changes)

    assert reason in explain(invalid.value)


def test_a_large_fragment_travels_as_a_pointer_that_still_names_its_messages() -> None:
    fragment = a_fragment(messages=(), ref=POINTER)

    assert fragment.message_ids == ("msg_1",)


def test_an_agent_keeps_any_json_of_bearable_size() -> None:
    key = {"agent": "task_manager", "namespace": "tasks", "key": "anna@example.org/2026"}

    assert PutAgentData(**key, value={"задачи": [1, None, "да"]}).expected_version is None
    assert PutAgentData(**key, value=None, expected_version=0).value is None
    assert f"{MAX_VALUE_BYTES} at most; spread it over several keys" in refusal(
        PutAgentData, **key, value="ы" * (MAX_VALUE_BYTES // 2)
    )
    assert "key" in refusal(PutAgentData, **(key | {"key": "../x"}), value=1)


def test_nobody_clears_data_without_saying_so() -> None:
    assert "confirm" in refusal(ClearData)
    assert "confirm" in refusal(ClearData, confirm=False)


@pytest.mark.parametrize("speed", [0, -1, float("nan"), float("inf")])
def test_a_simulation_has_a_speed_that_time_can_have(speed: float) -> None:
    assert "speed" in refusal(StartSim, profiles="team_ru", speed=speed)


def an_envelope(wire_type: str, **data: Any) -> Envelope:
    return Envelope(
        id="1",
        source="/mb/dialogue/1",
        type=wire_type,
        time=NOON,
        correlationid="1",
        mbkind="event",
        mbrequester="svc.dialogue",
        mbtraceid="conv_anna",
        data=data,
    )


@pytest.mark.parametrize(
    ("wire_type", "name"),
    [
        ("mb.evt.dialogue.message_received.v1", "message_received"),
        ("mb.evt.raw.dialogue_fragment.v1", "dialogue_fragment_published"),
        ("mb.evt.fleet.agent_activity_started.v1", "agent_activity_start"),
        ("mb.evt.notification.sent.v1", "notification_sent"),
        ("mb.evt.sim.started.v1", "sim_start"),
        ("mb.evt.artifact.registered.v1", "artifact.registered"),
        ("mb.evt.weather.storm_came.v3", "weather.storm_came"),
    ],
)
def test_the_timeline_calls_events_as_its_specification_does(wire_type: str, name: str) -> None:
    event = TimelineEvent.of(an_envelope(wire_type, user_id="anna"))

    assert (event.name, event.user_id, event.trace_id) == (name, "anna", "conv_anna")


def test_a_strangers_event_is_on_the_timeline_whatever_it_means_by_our_names() -> None:
    assert TimelineEvent.of(an_envelope("mb.evt.weather.storm_came.v1", user_id={"id": 5})).user_id is None
    assert TimelineEvent.of(an_envelope("mb.evt.notification.sent.v1", to_user="anna")).user_id == "anna"
