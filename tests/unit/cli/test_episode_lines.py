"""A talk as a file has it, read for long-term memory."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer

from bus_schema.lsm import MAX_RECORDED
from mindbus.cli.errors import UsageError
from mindbus_fleet.cli.episode_import import batches_of, read_turns
from mindbus_fleet.cli.episode_view import moment

HELLO = {"chat_id": "anna", "role": "user", "content": "Привет", "time": "2026-01-10T12:00:00+05:00"}


def written(path: Path, *lines: dict[str, Any] | str) -> Path:
    said = path / "said.jsonl"
    said.write_text(
        "\n".join(line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines),
        encoding="utf-8",
    )
    return said


def test_a_line_keeps_its_words_its_time_and_its_speaker(tmp_path: Path) -> None:
    (said,) = read_turns(written(tmp_path, HELLO | {"speaker": "Аня", "mood": "left alone"}, ""))

    assert (said.line, said.chat_id, said.message.content, said.message.speaker) == (1, "anna", "Привет", "Аня")
    assert said.message.time == datetime(2026, 1, 10, 7, tzinfo=UTC)


def test_the_same_file_says_the_same_under_the_same_ids(tmp_path: Path) -> None:
    lines = [HELLO, HELLO, HELLO | {"time": "2026-01-10T12:00:01+05:00"}, HELLO | {"chat_id": "boris"}]
    first, second = (read_turns(written(tmp_path, *lines)) for _ in range(2))

    assert first == second
    assert len({said.message.message_id for said in first}) == len(lines)


def test_what_has_an_id_is_one_message_however_often_it_stands_there(tmp_path: Path) -> None:
    named = HELLO | {"message_id": "msg_1"}
    foreign = HELLO | {"message_id": "D1:3"}
    said = read_turns(written(tmp_path, named, named, foreign, foreign))

    assert [each.line for each in said] == [1, 3]
    assert said[0].message.message_id == "msg_1"
    assert str(said[1].message.message_id).startswith("msg_")


def test_every_line_that_cannot_be_used_is_named_before_anything_is_sent(tmp_path: Path) -> None:
    bad = written(
        tmp_path,
        HELLO,
        "{not json",
        HELLO | {"role": "system"},
        HELLO | {"time": "2026-01-10T12:00:00"},
        HELLO | {"content": ""},
        HELLO | {"chat_id": "../anna"},
        "[1, 2]",
        {"chat_id": "anna"},
    )
    with pytest.raises(UsageError) as refused:
        read_turns(bad)

    told = str(refused.value).splitlines()
    assert told[0].startswith("nothing was sent")
    assert [line.removeprefix(f"{bad}:").split(": ")[:2] for line in told[1:4]] == [
        ["2", "is not JSON"],
        ["3", "role"],
        ["4", "time"],
    ]
    assert "write it as 2026-04-01T12:00:00Z" in told[3]
    assert [int(line.removeprefix(f"{bad}:").split(":")[0]) for line in told[1:]] == [2, 3, 4, 5, 6, 7, 8]


def test_one_id_for_two_things_is_wrong(tmp_path: Path) -> None:
    named = HELLO | {"message_id": "msg_1"}
    with pytest.raises(UsageError, match="2: message_id: is that of line 1, which says something else"):
        read_turns(written(tmp_path, named, named | {"content": "Пока"}))


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe", b"[" * 100_000])
def test_a_file_without_a_usable_line_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "said.jsonl").write_bytes(content)
    with pytest.raises(UsageError):
        read_turns(tmp_path / "said.jsonl")


def test_batches_are_of_one_chat_in_the_order_of_time(tmp_path: Path) -> None:
    lines = [
        HELLO | {"chat_id": chat, "content": f"{number}", "time": f"2026-01-{28 - number % 28:02}T12:00:00Z"}
        for number in range(MAX_RECORDED + 1)
        for chat in ("anna", "boris")
    ]
    batches = list(batches_of(read_turns(written(tmp_path, *lines))))

    assert [len(batch.said) for batch in batches] == [MAX_RECORDED, 1, MAX_RECORDED, 1]
    assert [batch.command.chat_id for batch in batches] == ["anna", "anna", "boris", "boris"]
    times = [each.message.time for batch in batches[:2] for each in batch.said]
    assert times == sorted(times)


def test_long_messages_go_in_smaller_batches(tmp_path: Path) -> None:
    lines = [HELLO | {"content": "я" * 30_000, "message_id": f"msg_{number}"} for number in range(20)]
    batches = list(batches_of(read_turns(written(tmp_path, *lines))))

    assert sum(len(batch.said) for batch in batches) == 20
    assert max(len(batch.said) for batch in batches) == 6


@pytest.mark.parametrize("text", ["2026-04-01T12:00:00Z", "2026-04-01T15:00:00+03:00"])
def test_a_time_with_a_zone_is_one_moment(text: str) -> None:
    assert moment(text) == datetime(2026, 4, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["2026-04-01", "2026-04-01T12:00:00", "yesterday", "2026-04-01T12:00+99:00", "0001-01-01T00:00:00+14:00"]
)
def test_a_time_without_a_zone_is_answered_with_advice(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="with its zone, such as"):
        moment(text)
