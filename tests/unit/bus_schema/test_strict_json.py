"""JSON is read as strictly as untrusted input deserves."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus_schema.strict_json import MAX_DEPTH, MalformedJson, has_nul, parse_object


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


@given(json_values)
def test_a_nul_is_found_wherever_it_is(value: object) -> None:
    assert has_nul(json.dumps({"value": value}).encode()) == ("\0" in _all_text(value))


@pytest.mark.parametrize(("text", "has_one"), [(r'"\\u0000"', False), (r'"\\\u0000"', True), (r'"no\u0000ne"', True)])
def test_an_escaped_backslash_is_none(text: str, has_one: bool) -> None:
    assert has_nul(text.encode()) is has_one
    assert ("\0" in json.loads(text)) is has_one


def _all_text(value: object) -> str:
    if isinstance(value, dict):
        return "".join(key + _all_text(inner) for key, inner in value.items())
    if isinstance(value, list):
        return "".join(map(_all_text, value))
    return value if isinstance(value, str) else ""
