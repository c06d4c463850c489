"""What long-term memory is asked is looked at before it is sent."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import ValidationError

from bus_schema.envelope import explain
from bus_schema.lsm import MAX_RECORDED, RecordExchange, SaidMessage
from bus_schema.lsm_search import SearchEpisodes
from bus_schema.packer import GetDueEpisodes, PackEpisode, RunPacking

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
HELLO: dict[str, Any] = {"role": "user", "content": "Hello", "time": NOON}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"time": datetime(2026, 3, 14, 12)}, "timezone"),  # noqa: DTZ001  # that is what is wrong with it
        ({"time": datetime(1, 1, 1, tzinfo=UTC)}, "between the years"),
        ({"time": datetime.max.replace(tzinfo=UTC) - timedelta(days=1)}, "between the years"),
        ({"content": " "}, "say something"),
        ({"content": "x" * 32_001}, "artifact"),
        ({"role": "system"}, "user"),
        ({"message_id": "1"}, "pattern"),
    ],
)
def test_a_message_that_cannot_be_kept_is_refused_with_a_reason(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        SaidMessage.model_validate(HELLO | changes)


def test_an_exchange_has_some_messages_not_thousands() -> None:
    for messages in ([], [HELLO] * (MAX_RECORDED + 1)):
        with pytest.raises(ValidationError, match="messages"):
            RecordExchange.model_validate({"chat_id": "anna", "messages": messages})


def test_a_time_of_any_zone_is_the_same_moment() -> None:
    elsewhere = SaidMessage.model_validate(HELLO | {"time": NOON.astimezone(timezone(timedelta(hours=-9)))})

    assert elsewhere.time == NOON


def test_a_question_has_a_budget_and_a_time_with_a_zone() -> None:
    for wrong in ({"budget_words": -1}, {"budget_words": 0}, {"at": datetime(2026, 3, 14)}, {"query": " "}):  # noqa: DTZ001
        with pytest.raises(ValidationError):
            SearchEpisodes.model_validate({"query": "release", "chat_id": "anna"} | wrong)
    for asked in (GetDueEpisodes, RunPacking):
        with pytest.raises(ValidationError):
            asked.model_validate({"at": datetime(1, 1, 2, tzinfo=UTC)})


def test_a_layer_that_nothing_is_packed_to_is_refused_in_words() -> None:
    with pytest.raises(ValidationError) as invalid:
        PackEpisode.model_validate({"episode_id": "ep_1", "to": "hot"})

    assert explain(invalid.value) == "to: Input should be 'warm' or 'cold'"
