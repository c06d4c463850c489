from pathlib import Path

import pytest

from mindbus_fleet.cli.briefs import MAX_BYTES, InvalidBrief, read_brief


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "brief.md"


def test_a_text_is_taken_as_it_is(file: Path) -> None:
    file.write_bytes("# Каток\r\n\tи бассейн\n".encode())

    assert read_brief(file) == "# Каток\r\n\tи бассейн\n".encode()


def test_a_byte_order_mark_is_no_part_of_the_text(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbfHello")

    assert read_brief(file) == b"Hello"


def test_utf_16_becomes_utf_8(file: Path) -> None:
    file.write_bytes("Привет".encode("utf-16"))

    assert read_brief(file).decode() == "Привет"


@pytest.mark.parametrize("content", [b"", b" \n\t\r\n"])
def test_an_empty_brief_is_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)

    with pytest.raises(InvalidBrief, match="is empty"):
        read_brief(file)


@pytest.mark.parametrize(
    "content", [b"\x89PNG\r\n\x1a\n\x00\x00", b"text\x00text", b"\x7fELF\x02\x01\x01", b"\xff\xd8\xff\xe0"]
)
def test_a_binary_brief_is_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)

    with pytest.raises(InvalidBrief, match=r"is not a? ?text"):
        read_brief(file)


def test_a_brief_too_long_to_be_one_is_refused(file: Path) -> None:
    file.write_bytes(b"a" * (MAX_BYTES + 1))

    with pytest.raises(InvalidBrief, match="shorten it"):
        read_brief(file)


def test_a_missing_brief_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidBrief, match=r"nothing.md cannot be read: No such file"):
        read_brief(tmp_path / "nothing.md")
