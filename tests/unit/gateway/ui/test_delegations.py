"""What was told of delegations, put together for the chat."""

from datetime import UTC, datetime

from bus_schema.envelope import Envelope, Kind
from bus_schema.messages import Event
from bus_schema.subagent import LAST_POSITION, SubagentCompletion, SubagentDelegation, SubagentTool
from gateway.ui.chat.delegations import Delegations

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def told(event: Event) -> Envelope:
    return Envelope(
        id="e1", source="/mb/x/1", type=event.wire.type, time=NOW, correlationid="c", mbkind=Kind.EVENT,
        mbrequester="svc.dialogue", data=event.model_dump(mode="json"),
    )  # fmt: skip


def place(position: int, chat: str = "12345") -> dict[str, object]:
    return {
        "chat_id": chat, "subagent": "analytic", "delegation_id": "dlg_1", "position": position, "time": NOW,
    }  # fmt: skip


BEGUN = SubagentDelegation.model_validate(place(0) | {"task": "Как меня зовут?"})
WORKING = SubagentTool.model_validate(place(1) | {"name": "compute", "status": "compute …"})
DONE = SubagentCompletion.model_validate(place(2) | {"response": "Алия"})


def test_a_story_is_told_in_order_however_its_events_come() -> None:
    delegations = Delegations("12345")
    delegations.learn([told(DONE), told(BEGUN), told(DONE)])

    (story,) = delegations.stories
    assert (story.task, story.completion) == ("Как меня зовут?", DONE)
    assert delegations.learn([told(BEGUN)]) == []


def test_what_a_tool_does_is_shown_until_something_else_happens() -> None:
    delegations = Delegations("12345")
    (story,) = delegations.learn([told(BEGUN), told(WORKING)])
    assert story.status == "compute …"
    delegations.learn([told(DONE)])
    assert story.status == ""


def test_a_late_answer_counts_more_than_that_somebody_has_waited_in_vain() -> None:
    gone = SubagentCompletion.model_validate(place(LAST_POSITION) | {"response": "no answer", "is_error": True})
    delegations = Delegations("12345")
    (story,) = delegations.learn([told(BEGUN), told(gone), told(DONE)])

    assert story.completion == DONE


def test_another_chat_and_what_cannot_be_read_tell_nothing() -> None:
    strange = told(BEGUN).model_copy(update={"data": {"chat_id": "12345"}})
    other = SubagentDelegation.model_validate(place(0, "777") | {"task": "x"})

    assert Delegations("12345").learn([strange, told(other)]) == []
