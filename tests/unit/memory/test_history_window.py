"""A tool's result is never without its call, wherever a history is cut."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus_schema.history import HistoryMessage
from memory.history.histories import model_tail, stored_tail
from tests.history_kit import exchange, said

TALKS = st.lists(
    st.one_of(st.integers(0, 4).map(lambda results: ("exchange", results)), st.just(("said", 0))), max_size=12
)


def talk(parts: list[tuple[str, int]]) -> list[HistoryMessage]:
    messages: list[HistoryMessage] = []
    for number, (kind, results) in enumerate(parts):
        messages += exchange(number, results) if kind == "exchange" else [said(f"{number}-word")]
    return messages


def ids(messages: "tuple[HistoryMessage, ...]") -> list[str]:
    return [message.id for message in messages]


def is_whole(messages: "tuple[HistoryMessage, ...]") -> bool:
    called = [call.id for message in messages for call in message.tool_calls or ()]
    answered = [message.tool_call_id for message in messages if message.role == "tool"]
    return called == answered


@pytest.mark.parametrize("cut", [stored_tail, model_tail])
@given(parts=TALKS, most=st.integers(1, 30))
def test_no_cut_parts_a_call_from_its_results(cut: type, parts: list[tuple[str, int]], most: int) -> None:
    messages = talk(parts)

    end = cut(messages, most)

    assert is_whole(end)
    assert len(end) <= most
    place = {message.id: number for number, message in enumerate(messages)}
    places = [place[message.id] for message in end]
    assert places == sorted(places)
    # Nothing but an exchange that would be cut is missing.
    missing = [message for message in messages[-most:] if message not in end]
    assert {message.role for message in missing} <= {"tool"}


def test_an_exchange_at_the_edge_goes_whole() -> None:
    messages = exchange(1, results=2)

    assert ids(model_tail(messages, 3)) == ["1-answer"]
    assert ids(model_tail(messages, 4)) == [message.id for message in messages[1:]]
    assert ids(stored_tail(messages, 3)) == ["1-answer"]


def test_a_call_without_all_its_results_is_kept_but_not_shown() -> None:
    task, call, first, *_rest = exchange(1, results=2)

    assert ids(model_tail([task, call, first], 10)) == ["1-task"]
    assert ids(stored_tail([task, call, first], 10)) == ["1-task", "1-call", first.id]
    assert ids(stored_tail([said("0"), task, call, first], 3)) == ["1-task", "1-call", first.id]


def test_a_result_that_comes_after_other_words_is_nobodys() -> None:
    task, call, result, answer = exchange(1, results=1)

    assert ids(model_tail([task, call, answer, result], 10)) == ["1-task", "1-answer"]
    assert ids(model_tail([result, answer], 10)) == ["1-answer"]
    assert ids(model_tail([task, call, result, result, answer], 10)) == ["1-task", "1-call", result.id, "1-answer"]


def test_ids_of_calls_may_come_again_in_a_later_exchange() -> None:
    task, call, result, answer = exchange(1, results=1)
    again = [message.model_copy(update={"id": f"again-{message.id}"}) for message in (task, call, result, answer)]

    assert len(model_tail([task, call, result, answer, *again], 8)) == 8
    assert len(model_tail([task, call, answer, *again], 8)) == 6


def test_a_stored_message_is_json_as_openai_has_it() -> None:
    _task, call, result, _answer = exchange(1, results=1)

    assert json.loads(json.dumps(call.as_stored())) == {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "call-1-0", "type": "function", "function": {"name": "search", "arguments": "{}"}},
        ],
        "id": "1-call",
        "timestamp": "2026-03-14T12:00:00Z",
    }
    assert list(result.as_stored()) == ["role", "content", "tool_call_id", "name", "id", "timestamp"]
    silent = call.model_copy(update={"content": None})
    assert silent.as_stored()["content"] is None
