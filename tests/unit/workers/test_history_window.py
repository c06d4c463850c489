"""The window of a talk goes on with what is appended, as stored and as the model is shown it."""

from agents.models.conversation import model_messages
from bus_schema.history import ChatHistory, ChatMessage, FunctionCall, HistoryMessage, HistoryToolCall, chat_key
from tests.clocks import NOON
from workers.dialogue.open_talks import HistoryWindow

CALL = HistoryToolCall(id="call_1", function=FunctionCall(name="find", arguments="{}"))
STORED = [
    ChatMessage(role="user", content="Where is it?"),
    ChatMessage(role="assistant", tool_calls=(CALL,)),
    ChatMessage(role="tool", content="In the attic.", tool_call_id="call_1"),
    ChatMessage(role="assistant", content="In the attic."),
]
ADDED = [
    HistoryMessage(id="msg_5", timestamp=NOON, role="user", content="And the key?"),
    HistoryMessage(id="msg_6", timestamp=NOON, role="assistant", content="Under the mat."),
]


def window() -> HistoryWindow:
    ids = ("msg_1", "msg_2", "msg_3", "msg_4")
    return HistoryWindow.of(
        ChatHistory(key=chat_key("anna"), messages=tuple(STORED), message_ids=ids, version="1", length=4)
    )


def test_what_is_appended_is_shown_after_what_was_there() -> None:
    grown = window().with_messages(ADDED, "2", 10)

    assert list(grown.messages) == [*STORED, *ADDED]
    assert list(grown.ids) == ["msg_1", "msg_2", "msg_3", "msg_4", "msg_5", "msg_6"]
    assert grown.version == "2"
    assert list(grown.shown) == model_messages(grown.messages)


def test_a_full_window_drops_whole_turns_of_all_its_columns() -> None:
    grown = window().with_messages(ADDED, "2", 4)

    assert list(grown.messages) == ADDED
    assert list(grown.ids) == ["msg_5", "msg_6"]
    assert list(grown.shown) == model_messages(ADDED)
