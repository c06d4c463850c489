"""The language of subscriptions says what it means, or where it does not."""

import pytest

from bus_schema.kem_match import meets_filter
from bus_schema.kem_query import AllOf, OneOf
from mindbus.sdk.kem_filters import FilterSubject, MalformedFilter, parse_filter, query_from

UPDATED = FilterSubject(
    "KEM_UPDATED",
    "important_kem_id",
    {"project_id": "project_alpha", "title": "Two words", "priority": 2, "final": True, "tags": ["релиз", 3]},
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "kem_id=important_kem_id",
        "metadata.project_id=project_alpha",
        "metadata.project_id = project_alpha",
        'metadata.title="Two words"',
        "metadata.priority=2",
        "metadata.final=true",
        "metadata.tags=релиз",
        "metadata.tags=3",
        "KEM_UPDATED",
        "event_type=KEM_UPDATED",
        "KEM_EVICTED OR kem_id=important_kem_id",
        "kem_id=other AND KEM_UPDATED OR metadata.priority=2",
        "(kem_id=other or KEM_UPDATED) and metadata.priority=2",
        "((KEM_UPDATED))",
        "metadata.project_id!=project_beta",
        "metadata.absent != project_alpha",
        "kem_id!=other AND NOT KEM_EVICTED",
        "NOT (kem_id=other OR metadata.priority=3)",
        "not not metadata.final=true",
        "metadata.priority>=2 AND metadata.priority<=2",
        "metadata.priority > 1.5 AND metadata.tags<4",
    ],
)
def test_what_is_meant_is_heard(text: str) -> None:
    assert parse_filter(text).matches(UPDATED)


@pytest.mark.parametrize(
    "text",
    [
        "kem_id=other",
        "metadata.project_id=project_beta",
        "metadata.absent=project_alpha",
        "metadata.priority=2.0",
        "metadata.final=True",
        "KEM_PUBLISHED",
        "metadata.tags!=3",
        "NOT KEM_UPDATED",
        "metadata.priority<2",
        "metadata.final>0",
        "metadata.absent<1",
        "KEM_UPDATED AND kem_id=other",
        "kem_id=other AND (KEM_UPDATED OR metadata.priority=2)",
        'kem_id="important_kem_id OR KEM_UPDATED"',
    ],
)
def test_what_is_not_meant_is_not_heard(text: str) -> None:
    assert not parse_filter(text).matches(UPDATED)


def test_a_query_asks_for_what_the_filter_says() -> None:
    wanted = query_from('metadata.status!=done AND NOT (metadata.kind="a" OR metadata.n<2)').metadata_filters

    assert meets_filter({"status": "open", "n": 2}, wanted)
    assert not meets_filter({"status": "done", "n": 2}, wanted)
    assert not meets_filter({"kind": "a"}, wanted)
    assert not meets_filter({"n": 1}, wanted)


def test_a_value_may_be_a_word_of_the_language_or_hold_quotes() -> None:
    assert parse_filter("metadata.a=AND AND metadata.b=or").matches(
        FilterSubject("KEM_UPDATED", "k", {"a": "AND", "b": "or"})
    )
    assert parse_filter(r'metadata.a="say \"x\\y\""').matches(FilterSubject("KEM_UPDATED", "k", {"a": r'say "x\y"'}))


def test_of_what_is_gone_only_its_id_is_known() -> None:
    gone = FilterSubject("KEM_EVICTED", "important_kem_id")

    assert parse_filter("kem_id=important_kem_id AND KEM_EVICTED").matches(gone)
    assert not parse_filter("metadata.project_id=project_alpha").matches(gone)


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("colour=red", 1, "unknown field colour"),
        ("kem_id=a OR colour=red", 13, "unknown field colour"),
        ("metadata.=red", 1, "unknown field metadata."),
        ("kem_id", 7, "expected ="),
        ("kem_id=", 8, "expected a value"),
        ("kem_id==a", 8, "expected a value"),
        ("kem_id=a AND", 13, "expected a condition"),
        ("AND kem_id=a", 1, "expected a condition"),
        ("kem_id=a kem_id=b", 10, "expected AND, OR or the end"),
        ("(kem_id=a", 10, "expected AND, OR or )"),
        ("kem_id=a)", 9, "expected AND, OR or the end"),
        ("()", 2, "expected a condition"),
        ('kem_id="a', 8, "a quote without its other half"),
        ("event_type=KEM_LOST", 12, "expected one of KEM_PUBLISHED"),
        ("(" * 500, 33, "more than 32 parentheses"),
        ("метка=1", 1, "unknown field метка"),
        ("metadata.due<2025-01-01", 14, "expected a number: dates are compared as text"),
        ("metadata.n>nan", 12, "expected a number"),
        ("kem_id>a", 7, "kem_id has no order"),
        ("NOT", 4, "expected a condition"),
        ("NOT " * 500 + "kem_id=a", 129, "more than 32"),
    ],
)
def test_a_malformed_filter_is_refused_at_its_place(text: str, position: int, expected: str) -> None:
    with pytest.raises(MalformedFilter) as malformed:
        parse_filter(text)

    assert malformed.value.details["position"] == position
    assert expected in str(malformed.value)
    assert f"\n{' ' * (position - 1)}^\n" in str(malformed.value)


@pytest.mark.parametrize("text", ["823041234567890123", "Infinity", "NaN", "1e999", "-9.1e15"])
def test_a_number_that_units_do_not_hold_is_asked_for_as_a_text(text: str) -> None:
    query = query_from(f"metadata.chat_id={text}")

    assert query.metadata_filters == AllOf(AND=({"chat_id": OneOf(any_of=(text,))},))
