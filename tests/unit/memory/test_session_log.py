"""The log of a chat: what it tells, what it must not tell, where it lies."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus_schema.history import chat_key
from memory.history.session_log import (
    OLDER,
    REDACTED,
    SessionFiles,
    SessionLog,
    redacted,
)
from mindbus.testing.wait import until
from tests.clocks import Clock
from tests.history_kit import KEY, exchange, said

MAX_BYTES = 2000


@pytest.fixture
def files(tmp_path: Path) -> SessionFiles:
    return SessionFiles(tmp_path / "logs" / "memory_sessions", MAX_BYTES)


@pytest.fixture
async def log(files: SessionFiles) -> AsyncIterator[SessionLog]:
    found = SessionLog(files, Clock())
    found.start()
    yield found
    await found.stop()


def lines(files: SessionFiles, chat_id: str = "12345") -> list[str]:
    return files.path_of(chat_id).read_text(encoding="utf-8").splitlines()


async def test_a_session_is_told_in_the_kinds_of_lines_of_the_spec(log: SessionLog, files: SessionFiles) -> None:
    log.request("12345", "Привет!) мы тестируем память")
    log.log_load(KEY, 0, 0)
    log.log_messages(KEY, exchange(1, results=1))
    log.log_messages(chat_key(12345), [said("m1", "Привет!)"), said("m2", "Вас зовут Алия", role="assistant")])
    log.log_load(KEY, 4, 4)
    log.log_clear(KEY, 4)
    await log.stop()

    at = "2026-03-14 12:00:00 - "
    assert lines(files) == [
        f"{at}{'=' * 80}",
        f'{at}new request  text="Привет!) мы тестируем память"',
        f'{at}history loaded  subagent="analytic"  messages=0  kept=0',
        f'{at}history is empty  subagent="analytic"',
        f'{at}task saved  subagent="analytic"  text="said in 1-task"',
        f'{at}tools called  subagent="analytic"  tools=["search"]  text=""',
        f'{at}tool result saved  subagent="analytic"  tool="search"  text="said in 1-result-call-1-0"',
        f'{at}final answer saved  subagent="analytic"  text="said in 1-answer"',
        f'{at}request saved  text="Привет!)"',
        f'{at}answer saved  text="Вас зовут Алия"',
        f'{at}history loaded  subagent="analytic"  messages=4  kept=4',
        f'{at}history cleared  subagent="analytic"  messages=4',
    ]


async def test_nobody_writes_a_line_that_is_not_theirs(log: SessionLog, files: SessionFiles) -> None:
    said_so = "hello\n2026-03-14 12:00:00 - answer saved\u2028\r\x1b[2J\u202e"
    log.log_messages(chat_key(1), [said("m1", said_so)])
    await log.stop()

    written = files.path_of("1").read_bytes()
    assert written.count(b"\n") == 1
    assert not re.search(rb"[\x00-\x09\x0b-\x1f]", written)
    assert "\u2028" not in written.decode()
    assert "\u202e" not in written.decode()


async def test_secrets_are_not_told_even_where_the_text_is_cut(log: SessionLog, files: SessionFiles) -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    log.log_messages(chat_key(1), [said("m1", f"{'x ' * 140}{key}"), said("m2", f"пароль: {key}")])
    await log.stop()

    told = "\n".join(lines(files, "1"))
    assert "abcdefghijklmn" not in told
    assert "sk-" not in told
    assert REDACTED in told


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("my key is sk-ant-api03-abcdefghij", "abcdefghij"),
        ("api_key=0123456789abcdef", "0123456789abcdef"),
        ('{"apiKey": "0123456789abcdef"}', "0123456789abcdef"),
        ('{"password": "hunter2!"}', "hunter2"),
        ("password: hunter2", "hunter2"),
        ("the password is hunter2", "hunter2"),
        ("Мой пароль: Алия1990", "Алия1990"),
        ("пароль qwerty123 от почты", "qwerty123"),
        ("пароль — тайна", "тайна"),
        ("токен: 0123456789abcdef", "0123456789abcdef"),
        ("Authorization: Bearer abc.def-ghi", "abc.def-ghi"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("curl -H 'authorization: token abcdef'", "abcdef"),
        ("bearer abcdef0123", "abcdef0123"),
        ("postgresql://anna:hunter2@db/x", "hunter2"),
        ("amqp://:hunter2@rabbit", "hunter2"),
        ("ghp_0123456789abcdefghij", "0123456789abcdefghij"),
        ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "c2lnbmF0dXJl"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----", "MIIE"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEcut off", "MIIE"),
        ("client_secret => abcdef", "abcdef"),
        ("export OPENAI_API_KEY=abcdef", "abcdef"),
        ("psql --password=abcdef", "abcdef"),
        ("X-Api-Key: abcdef", "abcdef"),
        ("http://s3/bucket/key?X-Amz-Signature=abcdef", "abcdef"),
    ],
)
def test_a_secret_is_not_told(text: str, secret: str) -> None:
    assert secret not in redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "Меня зовут Алия, мне 34 года",
        "We spent 500 tokens, basic information is below",
        "Ключевые выводы: рост на 5 %",
        "Забыл пароль, помоги восстановить",
        "Look at https://example.org/a?b=c",
    ],
)
def test_plain_words_stay_as_they_are(text: str) -> None:
    assert redacted(text) == text


async def test_a_log_rotates_by_size(log: SessionLog, files: SessionFiles) -> None:
    for number in range(400):
        log.add("1", "task saved", text=f"{number:03} {'x' * 60}")
    await log.stop()

    path = files.path_of("1")
    found = sorted(path.parent.iterdir())
    assert [file.name for file in found] == [path.name, *(f"{path.name}.{n}" for n in range(1, OLDER + 1))]
    assert all(file.stat().st_size <= MAX_BYTES for file in found)
    kept = [line for file in reversed(found) for line in file.read_text().splitlines()]
    numbers = [int(line.split('"')[1][:3]) for line in kept]
    assert numbers == list(range(400 - len(numbers), 400))


async def test_only_this_user_may_read_a_log(log: SessionLog, files: SessionFiles) -> None:
    log.add("1", "task saved")
    await log.stop()

    path = files.path_of("1")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@given(st.lists(st.text(min_size=1, max_size=300), min_size=2, max_size=2, unique=True))
def test_no_two_chats_share_a_file_none_leaves_the_folder(chats: list[str]) -> None:
    folder = Path("/logs")
    one, other = (SessionFiles(folder, MAX_BYTES).path_of(chat) for chat in chats)

    assert one.name.lower() != other.name.lower()
    assert one.parent == folder
    assert len(one.name.encode()) < 255 - len(".1")
    assert re.fullmatch(r"memory_[a-z0-9@_.%~-]+\.log", one.name)


@pytest.mark.parametrize(
    ("chat_id", "name"),
    [
        ("12345", "memory_12345.log"),
        ("anna@example.org", "memory_anna@example.org.log"),
        ("Anna", "memory_%41nna.log"),
        ("../../etc/passwd", "memory_..%2f..%2fetc%2fpasswd.log"),
        ("a.log.1", "memory_a.log.1.log"),
    ],
)
def test_a_file_is_named_for_its_chat(files: SessionFiles, chat_id: str, name: str) -> None:
    assert files.path_of(chat_id).name == name


async def test_what_was_written_of_a_chat_is_deleted_with_what_is_on_its_way(
    log: SessionLog, files: SessionFiles
) -> None:
    for number in range(100):
        log.add("1", "task saved", text=f"{number} {'x' * 60}")
        log.add("2", "task saved")

    assert await log.remove("1") == OLDER + 1
    assert [file.name for file in files.path_of("2").parent.iterdir() if "_1." in file.name] == []
    assert await log.remove("1") == 0
    assert await log.remove(None) >= 1
    assert list(files.path_of("2").parent.iterdir()) == []


async def test_a_disk_that_refuses_holds_up_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "logs").write_text("no folder")
    log = SessionLog(SessionFiles(tmp_path / "logs", MAX_BYTES), Clock())
    log.start()
    log.add("1", "task saved")

    said_so = ""

    def has_said() -> bool:
        nonlocal said_so
        said_so += capsys.readouterr().err
        return "session log not written" in said_so

    await until(has_said)
    (tmp_path / "logs").unlink()
    log.add("1", "final answer saved")
    await asyncio.wait_for(log.stop(), 10)
    assert "final answer saved" in (tmp_path / "logs" / "memory_1.log").read_text()


async def test_a_mistake_in_one_line_is_not_the_end_of_the_log(tmp_path: Path) -> None:
    class Mistaken(SessionFiles):
        mistakes = 1

        def write(self, lines: Iterable[tuple[str, str]]) -> None:
            if self.mistakes:
                self.mistakes -= 1
                raise ValueError("foreseen by nobody")
            super().write(lines)

    files = Mistaken(tmp_path, MAX_BYTES)
    log = SessionLog(files, Clock())
    log.start()
    log.request("12345", "lost")
    await until(lambda: not files.mistakes)
    log.request("12345", "kept")
    await log.stop()

    assert 'text="kept"' in lines(files)[-1]


async def test_a_log_that_may_have_no_byte_is_not_written(tmp_path: Path) -> None:
    log = SessionLog(SessionFiles(tmp_path / "logs", 0), Clock())
    log.start()
    log.add("1", "task saved")
    await log.stop()

    assert not (tmp_path / "logs").exists()
