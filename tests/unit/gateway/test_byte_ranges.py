"""Ranges of bytes, as HTTP asks for them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api.artifacts import RequestedRange, UnsatisfiableRange, parse_range


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("bytes=0-0", RequestedRange(0, 0)),
        ("bytes=2-5", RequestedRange(2, 5)),
        ("bytes=2-", RequestedRange(2, 9)),
        ("bytes=2-999999999999999999", RequestedRange(2, 9)),
        ("bytes=-3", RequestedRange(7, 9)),
        ("bytes=-300", RequestedRange(0, 9)),
        ("Bytes=9-9", RequestedRange(9, 9)),
    ],
)
def test_one_range_is_read(header: str, wanted: RequestedRange) -> None:
    assert parse_range(header, 10) == wanted


@pytest.mark.parametrize(
    "header", [None, "", "bytes=-", "bytes=5-2", "bytes=0-1,3-4", "lines=1-2", "bytes=a-b", "bytes=1-2x", "bytes=²-"]
)
def test_what_need_not_be_understood_means_all(header: str | None) -> None:
    assert parse_range(header, 10) is None


@pytest.mark.parametrize(
    ("header", "size"), [("bytes=10-", 10), ("bytes=10-11", 10), ("bytes=-0", 10), ("bytes=-5", 0)]
)
def test_what_is_not_there_cannot_be_had(header: str, size: int) -> None:
    with pytest.raises(UnsatisfiableRange):
        parse_range(header, size)


@given(st.text("bytes=-0123456789, ", max_size=20), st.integers(0, 50))
def test_a_range_lies_within_the_artifact(header: str, size: int) -> None:
    try:
        found = parse_range(header, size)
    except UnsatisfiableRange:
        return
    assert found is None or 0 <= found.first <= found.last < size
