"""JSON is read as strictly as untrusted input deserves."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus_schema.strict_json import MAX_DEPTH, MalformedJson, parse_object


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        ("[]", "expected an object, got list"),
        ('{"a": 1, "a": 2}', "key given twice: a"),
        ('{"a": {"b": 1, "b": 1}}', "key given twice: b"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": -Infinity}', "-Infinity is not JSON"),
        ('{"a": ' + "9" * 5000 + "}", "integer string conversion"),
        ('{"a":' + "[" * 200_000, "nested deeper than 32 levels"),
        (b'{"a": "\xff"}', "utf-8"),
    ],
)
def test_traps_are_refused_with_what_is_wrong(text: str | bytes, reason: str) -> None:
    with pytest.raises(MalformedJson, match=reason):
        parse_object(text)


def test_depth_is_counted_outside_of_strings() -> None:
    brackets = "[{" * 100 + '\\"' + "}]" * 3

    assert parse_object(json.dumps({"text": brackets})) == {"text": brackets}


@pytest.mark.parametrize("depth", [1, MAX_DEPTH])
def test_up_to_the_limit_depth_is_fine(depth: int) -> None:
    text = '{"a":' * (depth - 1) + "{}" + "}" * (depth - 1)

    assert isinstance(parse_object(text), dict)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_ordinary_json_means_what_it_says(value: dict[str, object]) -> None:
    assert parse_object(json.dumps(value)) == value
