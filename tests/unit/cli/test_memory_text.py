"""What is typed of metadata and filters means what it seems to mean."""

from typing import Any

import pytest

from bus_schema.kem_match import meets_filter
from bus_schema.kem_query import KemQuery
from mindbus.cli.errors import UsageError
from mindbus_fleet.cli.memory_options import parse_metadata, query_of


def test_a_text_is_a_text_unless_it_is_said_to_be_json() -> None:
    assert parse_metadata(["a=1", "b:=1", 'c:=["x", 2]', "d:=null", "путь=a=b"]) == {
        "a": "1",
        "b": 1,
        "c": ["x", 2],
        "d": None,
        "путь": "a=b",
    }


@pytest.mark.parametrize("pair", ["novalue", "=x", ":=1", "a:=nonsense"])
def test_what_is_no_pair_is_a_usage_error(pair: str) -> None:
    with pytest.raises(UsageError, match="--meta"):
        parse_metadata([pair])


@pytest.mark.parametrize(
    ("text", "metadata", "is_meant"),
    [
        ("metadata.n=3", {"n": 3}, True),
        ("metadata.n=3", {"n": "3"}, True),
        ("metadata.n=3", {"n": 4}, False),
        ("metadata.done=true", {"done": True}, True),
        ('metadata.name="два слова"', {"name": "два слова"}, True),
        ("metadata.a=1 AND metadata.b=2", {"a": "1", "b": "2"}, True),
        ("metadata.a=1 AND metadata.b=2", {"a": "1"}, False),
        ("metadata.a=1 OR metadata.b=2", {"b": "2"}, True),
        ("metadata.a=1 AND (metadata.b=2 OR metadata.b=3)", {"a": "1", "b": "3"}, True),
        (None, {}, True),
    ],
)
def test_a_filter_is_the_same_question(text: str | None, metadata: dict[str, Any], *, is_meant: bool) -> None:
    assert meets_filter(metadata, query_of(text).metadata_filters) is is_meant


def test_ids_are_asked_for_beside_metadata() -> None:
    found = query_of("(kem_id=a OR kem_id=b) AND metadata.x=1", text_query="what")

    assert (found.ids, found.text_query) == (("a", "b"), "what")
    assert query_of("kem_id=a") == KemQuery(ids=("a",))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("metadata.a=1 AND", "At character 17"),
        ("nonsense=1", "unknown field"),
        ("kem_id=a OR metadata.x=1", "kem_id cannot be joined"),
        ("KEM_DELETED", "event_type cannot be joined"),
        ("kem_id=a AND kem_id=b", "join several by OR"),
        (f"metadata.a={'x' * 300}", "metadata_filters"),
    ],
)
def test_what_a_question_cannot_say_is_a_usage_error(text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        query_of(text)
