"""A cursor leads back to where its own query's page ended, and to nowhere else."""

from datetime import UTC, datetime

import pytest

from retrieval.cursors import InvalidCursor, PageKey, decode_cursor, digest_of, encode_cursor, position_of

KEY = PageKey(datetime(2026, 3, 1, 12, tzinfo=UTC), "kem_1")


def test_parts_come_back_as_they_were() -> None:
    assert decode_cursor(encode_cursor(3, "kem_1")) == [3, "kem_1"]
    assert PageKey.parse_plain(KEY.plain) == KEY


def test_a_cursor_with_padding_is_read_too() -> None:
    cursor = encode_cursor("a", "bc")

    assert len(cursor) % 4
    assert decode_cursor(cursor + "=" * (-len(cursor) % 4)) == ["a", "bc"]


def test_a_cursor_is_refused_outside_its_scope() -> None:
    cursor = encode_cursor(3, scope=digest_of("one"))

    assert decode_cursor(cursor, scope=digest_of("one")) == [3]
    with pytest.raises(InvalidCursor, match="start again"):
        decode_cursor(cursor, scope=digest_of("another"))


@pytest.mark.parametrize("cursor", ["", "x", "bnVsbA", "W10", "я", "[" * 300, encode_cursor("a"), encode_cursor(1)])
def test_nonsense_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidCursor):
        decode_cursor(cursor, scope=digest_of("one"))
    with pytest.raises(InvalidCursor):
        PageKey.parse_plain(cursor)
    with pytest.raises(InvalidCursor):
        position_of(cursor)


@pytest.mark.parametrize(
    ("time", "item_id"),
    [
        ("2026-03-01T12:00:00", "a"),
        ("noon", "a"),
        ("2026-03-01T12:00:00Z", ""),
        ("2026-03-01T12:00:00Z", "a\0"),
        (1, 2),
    ],
)
def test_half_a_position_is_none(time: object, item_id: object) -> None:
    with pytest.raises(InvalidCursor):
        PageKey.parse(time, item_id)


def test_positions_are_decimal_and_fit_the_column() -> None:
    assert (position_of(None), position_of("17")) == (0, 17)
    with pytest.raises(InvalidCursor):
        position_of("9" * 19)
