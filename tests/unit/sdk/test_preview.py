"""What an artifact looks like at a terminal, which its content must never get hold of."""

import json
import unicodedata
from datetime import UTC, datetime

import pytest

from bus_schema.artifacts import Manifest
from mindbus.cli.artifact_download import parse_range
from mindbus.cli.errors import UsageError
from mindbus.sdk.preview import MOST_BYTES, Preview, preview
from mindbus.terminal import escape_controls

HOSTILE = [
    "\x1b[2J\x1b]0;owned\x07",
    "\x9b31m",
    "safe\rhidden",
    "\u202egnp.exe",
    "a\u2028b\u2029c",
    "rub\x7fout",
    "\u2066\u2069\u200b\ufeff",
]


def seen(
    content: bytes, content_type: str = "text/plain", *, size_bytes: int | None = None, lines: int = 40
) -> Preview:
    manifest = Manifest(
        id="art_1",
        trace_id="t1",
        created_by="user.local",
        created_at=datetime(2026, 3, 14, tzinfo=UTC),
        artifact_type="note",
        content_type=content_type,
        uri="objects/sha256/00",
        size_bytes=len(content) if size_bytes is None else size_bytes,
        checksum="sha256:" + "0" * 64,
        owner="user.local",
    )
    return preview(manifest, content[:MOST_BYTES], lines)


def test_text_is_shown_by_its_first_lines() -> None:
    shown = seen("один\r\ntwo 🙂\n\ttrois\nvier\n".encode(), lines=3)

    assert (shown.kind, shown.text, shown.is_cut) == ("text", "один\ntwo 🙂\n\ttrois", True)
    assert not seen("один\ntwo\n".encode(), lines=2).is_cut


@pytest.mark.parametrize("cut_at", range(1, 12))
def test_a_cut_through_a_character_is_no_damage(cut_at: int) -> None:
    content = "Жё🙂!".encode()

    shown = seen(content[:cut_at], size_bytes=1000)

    assert shown.kind in ("text", "empty")
    assert "Жё🙂!".startswith(shown.text)


def test_half_a_character_at_the_very_end_is_no_text() -> None:
    assert seen("Ж".encode()[:1]).kind == "binary"


def test_utf_16_is_text_where_it_says_so() -> None:
    assert seen("Привет".encode("utf-16")).text == "Привет"


@pytest.mark.parametrize("content", HOSTILE)
def test_what_a_terminal_would_obey_is_spelled_out(content: str) -> None:
    for shown in (
        seen(content.encode()).text,
        seen(json.dumps([content], ensure_ascii=False).encode(), "text/json").text,
    ):
        assert not [each for each in shown if each != "\n" and unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp")]


def test_what_is_hidden_is_shown_for_what_it_is() -> None:
    assert escape_controls("\x1b[31mкрасный\x1b[0m") == "\\x1b[31mкрасный\\x1b[0m"
    assert escape_controls("👩‍🔬") == "👩‍🔬"


def test_json_is_laid_out_with_its_own_letters() -> None:
    shown = seen('{"имя":"Пушкин","n":[1]}'.encode(), "application/vnd.x+json; charset=utf-8")

    assert shown.kind == "json"
    assert shown.text == '{\n  "имя": "Пушкин",\n  "n": [\n    1\n  ]\n}'


@pytest.mark.parametrize("content", [b'{"half": ', b"[" * 100_000, b"NaN-sense"])
def test_what_is_no_json_or_is_cut_is_shown_as_text(content: bytes) -> None:
    assert seen(content, "application/json").kind == "text"
    assert seen(b'{"a": 1}', "application/json", size_bytes=10_000_000).kind == "text"


@pytest.mark.parametrize(
    ("content", "looks_like"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "PNG image"),
        (b"%PDF-1.7\n\xe2\xe3\xcf\xd3", "PDF document"),
        (b"PK\x03\x04\x14\x00\xff", "ZIP archive, perhaps an office document"),
        (b"\x00\xff\x1b[2J", "no kind known here"),
    ],
)
def test_anything_else_is_dumped_with_a_guess(content: bytes, looks_like: str) -> None:
    shown = seen(content + bytes(300))

    assert (shown.kind, shown.looks_like, shown.is_cut) == ("binary", looks_like, True)
    assert shown.text.startswith(f"00000000  {content[:3].hex(' ')}")
    assert len(shown.text.splitlines()) == 16
    assert shown.text.isascii()
    assert "\x1b" not in shown.text


def test_a_line_without_end_is_cut() -> None:
    shown = seen(b"x" * 100_000)

    assert len(shown.text) < 3000
    assert shown.is_cut


def test_nothing_is_nothing() -> None:
    assert seen(b"").kind == "empty"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (None, {}),
        ("0-1023", {"start": 0, "length": 1024}),
        ("7-7", {"start": 7, "length": 1}),
        ("1024-", {"start": 1024}),
        ("-500", {"start": -500}),
    ],
)
def test_a_range_is_written_as_in_http(text: str | None, meant: dict[str, int]) -> None:
    assert parse_range(text) == meant


@pytest.mark.parametrize("text", ["", "-", "5-3", "a-b", "-0", "1-2-3", "0-1,3-4", "٣-٤", "9" * 30 + "-"])
def test_what_is_no_range_is_said_to_be_none(text: str) -> None:
    with pytest.raises(UsageError, match="0-1023"):
        parse_range(text)
