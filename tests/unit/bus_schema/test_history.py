"""Keys of histories, messages in OpenAI's format."""

from typing import Any

import pytest
from pydantic import ValidationError

from bus_schema.history import (
    ChatMessage,
    GetHistory,
    ListHistories,
    chat_key,
    chat_of,
    subagent_key,
    subagent_of,
)

CALL = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": "not even JSON"}}


@pytest.mark.parametrize("chat", [12345, "12345", "anna@example.org", "A.b-c_d"])
def test_a_chat_is_named_by_a_number_or_a_word(chat: int | str) -> None:
    for key, subagent in ((chat_key(chat), None), (subagent_key("analytic", chat), "analytic")):
        assert GetHistory(key=key).key == key
        assert (chat_of(key), subagent_of(key)) == (str(chat), subagent)


def test_keys_are_exactly_those_of_the_spec() -> None:
    assert chat_key(12345) == chat_key("12345") == "chat_history:12345"
    assert subagent_key("analytic", 12345) == subagent_key("analytic", "12345") == "subagent:analytic:12345"


def test_a_number_alone_is_the_key_of_a_chat_a_text_is_a_key_already() -> None:
    assert GetHistory.model_validate({"key": 12345}).key == "chat_history:12345"
    assert GetHistory.model_validate({"key": "subagent:analytic:12345"}).key == "subagent:analytic:12345"
    assert ListHistories.model_validate({"chat_id": 12345}).chat_id == "12345"


@pytest.mark.parametrize(
    "key",
    [
        *("12345", "", "chat_history:", "chat_history:a:b", "subagent:1", "subagent::1", "subagent:Analytic:1"),
        *("chat_history:../x", "chat_history:..", "chat_history:a\n", "chat_history:a*", "swm_lock:a", True, 1.5, None),
    ],
)
def test_nothing_else_is_a_key(key: object) -> None:
    with pytest.raises(ValidationError):
        GetHistory.model_validate({"key": key})


@pytest.mark.parametrize(
    "fields",
    [
        {"role": "user", "content": ""},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "assistant", "content": "Ищу.", "tool_calls": [CALL]},
        {"role": "tool", "content": "42", "tool_call_id": "call_1", "name": "search"},
        {"role": "system", "content": "Be brief."},
    ],
)
def test_messages_are_those_of_openai(fields: dict[str, Any]) -> None:
    assert ChatMessage.model_validate(fields).model_dump(mode="json", exclude_none=True) == fields


@pytest.mark.parametrize(
    "fields",
    [
        {"role": "user"},
        {"role": "stranger", "content": "x"},
        {"role": "user", "content": "x", "tool_calls": [CALL]},
        {"role": "assistant", "tool_calls": []},
        {"role": "tool", "content": "42"},
        {"role": "user", "content": "x", "tool_call_id": "call_1"},
    ],
)
def test_what_no_model_would_take_is_no_message(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ChatMessage.model_validate(fields)
