"""Session log: a file per chat, apart from the fleet's log, of requests, messages and loaded histories (spec 001).

A queue decouples callers from the disk; files are rotated by size; secrets are redacted.
"""

import asyncio
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from bus_schema.history import HistoryMessage, chat_of, subagent_of
from mindbus.logs import logger
from mindbus.redaction import without_secrets
from mindbus.tasks import Supervised, end
from mindbus.terminal import escape_controls

REDACTED = "[redacted]"

_NAMES = (
    r"(?:(?:api|access|private|secret)[ _-]?key|client[ _-]?secret|secret|token|pass(?:word|wd|phrase)|pwd|credentials?"
    r"|парол[ьяюе]м?|токен\w{0,2}|секрет\w{0,2}|(?:api[ -]?)?ключ)"
)
_ANY_NAME = ("key", "secret", "token", "pass", "pwd", "credential", "парол", "токен", "секрет", "ключ")
# What a text has where the pattern has something to find, in small letters: most texts have nothing of it. The first
# group is kept.
_SECRETS = tuple(
    (signs, re.compile(pattern, re.IGNORECASE | re.DOTALL))
    for signs, pattern in (
        (("-----begin",), r"()-----BEGIN[^-]{0,40}PRIVATE KEY-----.*?(?:-----END[^-]{0,40}-----|$)"),
        (("authorization",), r"(\bauthorization[\"']?\s*[:=]\s*[\"']?(?:\w+\s+)?)[^\s\"',;]+"),
        (("bearer",), r"(\bbearer\s+)[^\s\"',;]+"),
        (("://",), r"(\w://[^\s/:@]*:)[^\s/@]+(?=@)"),
        (_ANY_NAME, rf"({_NAMES}[\"']?\s*(?:=>|[:=]|—|\bis\b|\bэто\b)\s*[\"']?)[^\s\"',;]+"),
        # Without a separator, only values that look like a secret.
        (_ANY_NAME, rf"({_NAMES}\s+)(?=[^\s,;]*\d)[^\s\"',;]{{6,}}"),
        (
            ("sk-", "gh", "glpat-", "hf_", "xox"),
            r"()\b(?:sk-|gh[pousr]_|github_pat_|glpat-|hf_|xox[abprs]-)[\w-]{10,}",
        ),
        (("akia", "asia"), r"()\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
        (("aiza",), r"()\bAIza[\w-]{35}"),
        (("eyj",), r"()\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"),
    )
)


def redacted(text: str) -> str:
    """The text without keys, tokens and passwords, as far as they can be recognised."""
    folded = text.casefold()
    for signs, secret in _SECRETS:
        if any(sign in folded for sign in signs):
            text = secret.sub(rf"\g<1>{REDACTED}", text)
    return without_secrets(text)


# Rotated files of a chat beside the current one.
OLDER = 3
_MAX_NAME = 120
# Capitals are escaped too: some file systems ignore case.
_UNSAFE = re.compile(r"[^a-z0-9@_.-]")


class SessionFiles:
    """Appends from one thread at a time, nothing if `max_bytes` is 0; files are readable by this user only."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder, self._max_bytes = folder, max_bytes

    def path_of(self, chat_id: str) -> Path:
        """Path of a chat's file: unique per chat, always inside the folder."""
        return self._folder / f"memory_{_safe(chat_id)}.log"

    def write(self, lines: Iterable[tuple[str, str]]) -> None:
        """Append (chat id, line) pairs. Raises OSError."""
        if not self._max_bytes:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        of_chat: dict[str, list[bytes]] = {}
        for chat_id, line in lines:
            of_chat.setdefault(chat_id, []).append(f"{line}\n".encode(errors="backslashreplace"))
        for chat_id, encoded in of_chat.items():
            self._append(self.path_of(chat_id), encoded)

    def remove(self, chat_id: str | None) -> int:
        """Delete the files of a chat, or of all; returns their number. Raises OSError."""
        if chat_id is None:
            files = list(self._folder.glob("memory_*.log*"))
        else:
            files = [file for file in _generations(self.path_of(chat_id)) if file.exists()]
        for file in files:
            file.unlink(missing_ok=True)
        return len(files)

    def _append(self, path: Path, lines: list[bytes]) -> None:
        size = path.stat().st_size if path.exists() else 0
        part: list[bytes] = []
        for line in lines:
            if size and size + len(line) > self._max_bytes:
                _write(path, part)
                _rotate(path)
                part, size = [], 0
            part.append(line)
            size += len(line)
        _write(path, part)


def _write(path: Path, lines: list[bytes]) -> None:
    if lines:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(b"".join(lines))


def _rotate(path: Path) -> None:
    oldest_first = _generations(path)[::-1]
    for older, newer in pairwise(oldest_first):
        if newer.exists():
            newer.replace(older)


def _generations(path: Path) -> list[Path]:
    return [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, OLDER + 1))]


def _safe(chat_id: str) -> str:
    spelled = _UNSAFE.sub(lambda one: "".join(f"%{byte:02x}" for byte in _encode(one.group())), chat_id)
    if len(spelled) <= _MAX_NAME:
        return spelled
    return f"{spelled[:_MAX_NAME]}~{hashlib.sha256(_encode(chat_id)).hexdigest()}"


def _encode(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


_MAX_QUEUED = 10_000
_AT_ONCE = 500
_LAST_WITHIN_S = 5.0
# A thread and an open file for each line cost as much as the rest of an append.
_GATHERED_S = 0.2
_MAX_SHOWN = 300
# Long enough to recognise a secret whose end is not shown.
_MAX_REDACTED = 4000
_RULE = "=" * 80
_SAVED = {"user": "request saved", "assistant": "answer saved", "system": "instruction saved"}
_SAVED_OF_SUBAGENT = {"user": "task saved", "assistant": "final answer saved", "system": "instruction saved"}


class SessionLog:
    """Queue of lines and a task that writes them in a thread; on a slow disk lines are lost, callers never wait."""

    def __init__(self, files: SessionFiles, clock: Callable[[], datetime]) -> None:
        self._files, self._clock = files, clock
        self._queue: asyncio.Queue[tuple[str, str]] = asyncio.Queue(_MAX_QUEUED)
        self._writing: asyncio.Task[None] | None = None

    def request(self, chat_id: str, text: str) -> None:
        self.add(chat_id, _RULE)
        self.add(chat_id, "new request", text=text)

    def log_messages(self, key: str, messages: Iterable[HistoryMessage]) -> None:
        saved = _SAVED if subagent_of(key) is None else _SAVED_OF_SUBAGENT
        for message in messages:
            text = message.content or ""
            if message.role == "tool":
                self._add_of(key, "tool result saved", tool=message.name, text=text)
            elif message.tool_calls:
                self._add_of(key, "tools called", tools=[call.function.name for call in message.tool_calls], text=text)
            else:
                self._add_of(key, saved[message.role], text=text)

    def log_load(self, key: str, shown: int, length: int) -> None:
        self._add_of(key, "history loaded", messages=shown, kept=length)
        if not length:
            self._add_of(key, "history is empty")

    def log_clear(self, key: str, length: int) -> None:
        self._add_of(key, "history cleared", messages=length)

    def add(self, chat_id: str, title: str, **fields: object) -> None:
        """Queue a line; texts are redacted and shortened."""
        time = self._clock().astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
        values = "".join(f"  {name}={_format(value)}" for name, value in fields.items())
        try:
            self._queue.put_nowait((chat_id, escape_controls(f"{time} - {title}{values}")))
        except asyncio.QueueFull:
            logger().warning("session log is behind, a line is lost", chat_id=chat_id)

    def start(self) -> None:
        """Start writing; idempotent."""
        if self._writing is None:
            self._writing = Supervised("session log", self._write_lines, 0, lasts=True).start()

    async def stop(self) -> None:
        """Write what is queued, then stop."""
        writing, self._writing = self._writing, None
        if writing is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WITHIN_S):
                    await self._queue.join()
            await end(writing)

    async def remove(self, chat_id: str | None) -> int:
        """Delete the files of a chat, or of all; returns their number. Raises OSError."""
        await self._queue.join()
        return await asyncio.to_thread(self._files.remove, chat_id)

    def _add_of(self, key: str, title: str, **fields: object) -> None:
        """Queue a line about a history, with its sub-agent if it is one's."""
        subagent = subagent_of(key)
        self.add(chat_of(key), title, **({} if subagent is None else {"subagent": subagent}), **fields)

    async def _write_lines(self) -> None:
        lines = [await self._queue.get()]
        try:
            await asyncio.sleep(_GATHERED_S)
            with suppress(asyncio.QueueEmpty):
                while len(lines) < _AT_ONCE:
                    lines.append(self._queue.get_nowait())
            await asyncio.to_thread(self._files.write, lines)
        except OSError as error:
            logger().warning("session log not written", lines=len(lines), reason=str(error))
        finally:
            for _line in lines:
                self._queue.task_done()


def _format(value: object) -> str:
    if isinstance(value, str):
        clean = redacted(value[:_MAX_REDACTED])
        value = clean if len(clean) <= _MAX_SHOWN else f"{clean[:_MAX_SHOWN]}…"
    return json.dumps(value, ensure_ascii=False)
