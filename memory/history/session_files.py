"""Session log files: one per chat, of limited size, rotated."""

import hashlib
import os
import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

# Rotated files of a chat beside the current one.
OLDER = 3
_LONGEST = 120
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
    spelled = _UNSAFE.sub(lambda one: "".join(f"%{byte:02x}" for byte in _encoded(one.group())), chat_id)
    if len(spelled) <= _LONGEST:
        return spelled
    return f"{spelled[:_LONGEST]}~{hashlib.sha256(_encoded(chat_id)).hexdigest()}"


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
