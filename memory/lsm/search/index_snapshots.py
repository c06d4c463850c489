"""Snapshots of large chat indexes, a file each: opened in seconds where building takes minutes."""

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from bus_schema.dialogue import MessageKind
from memory.lsm.search.chat_index import ChatIndex
from memory.lsm.tables import TurnRow
from mindbus.logs import logger
from mindbus.sql.database import Database
from retrieval.snapshots import Snapshot

# Another number wherever stems or what is stored change: older files are deleted and their indexes built anew.
_FORMAT = 3
_SUFFIX = ".index"
# Building a smaller index takes a moment.
_LEAST_TURNS = 20_000


@dataclass(frozen=True, slots=True)
class SavedIndex:
    """An index of the log's first `next_position` turns, with the vectors of a model."""

    index: ChatIndex
    model: str
    next_position: int


class IndexSnapshots:
    """Files in a folder, each of one chat; they hold nothing that the database has not, and may be lost.

    A file that does not fit its chat's log, as after a restore of a backup, is deleted.
    """

    def __init__(self, database: Database, folder: Path, least_turns: int = _LEAST_TURNS) -> None:
        self.database, self.folder, self.least_turns = database, folder, least_turns

    def write(self, chat_id: str, saved: SavedIndex) -> None:
        """Replace the chat's snapshot. Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        whole = saved.index.snapshot()
        facts = {
            **whole.facts,
            "format": _FORMAT,
            "chat_id": chat_id,
            "model": saved.model,
            "next_position": saved.next_position,
            "shown": len(saved.index),
            "last_id": saved.index.ids[len(saved.index) - 1],
        }
        Snapshot(whole.arrays, facts).write(self._path(chat_id))

    async def read(self, chat_id: str) -> SavedIndex | None:
        """Map the chat's snapshot; None if there is none that fits its log. Raises DatabaseAway."""
        path = self._path(chat_id)
        if not await self._fits(path):
            path.unlink(missing_ok=True)
            return None
        return await asyncio.to_thread(_saved, path)

    def delete(self, chat_id: str | None) -> None:
        """Delete the snapshot of this chat; without an id, all of them."""
        for path in list(self._paths()) if chat_id is None else [self._path(chat_id)]:
            path.unlink(missing_ok=True)

    def size_bytes(self, chat_id: str | None) -> int:
        """Size of the chat's snapshot, or of all."""
        size_bytes = 0
        for path in self._paths() if chat_id is None else [self._path(chat_id)]:
            # There may be none; one may be deleted meanwhile.
            with suppress(FileNotFoundError):
                size_bytes += path.stat().st_size
        return size_bytes

    async def sweep(self) -> None:
        """Delete what does not fit the log: an erasure may have been cut off before its file was deleted."""
        for path in list(self._paths()):
            if not await self._fits(path):
                path.unlink(missing_ok=True)

    async def _fits(self, path: Path) -> bool:
        """Whether the log has as many turns as were indexed, and the last one is the same."""
        facts = await asyncio.to_thread(_facts_of, path)
        if facts is None or self._path(facts["chat_id"]) != path:
            return False
        of_snapshot = (TurnRow.chat_id == facts["chat_id"], TurnRow.position < facts["next_position"])
        shown = select(func.count()).where(*of_snapshot, TurnRow.kind != MessageKind.HIDDEN.value)
        last = select(TurnRow.id).where(*of_snapshot, TurnRow.id == facts["last_id"])
        async with self.database.reading() as session:
            return await session.scalar(shown) == facts["shown"] and await session.scalar(last) is not None

    def _path(self, chat_id: str) -> Path:
        return self.folder / f"{hashlib.sha256(chat_id.encode()).hexdigest()[:32]}{_SUFFIX}"

    def _paths(self) -> Iterator[Path]:
        """Snapshots, and what a writer that was killed has left of one."""
        return self.folder.glob(f"*{_SUFFIX}*")


def _facts_of(path: Path) -> dict[str, Any] | None:
    """Facts about a snapshot of this format; None without one."""
    try:
        facts = Snapshot.read(path).facts
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        logger().warning("index is built anew: its snapshot cannot be read", path=str(path), reason=str(error))
        return None
    return facts if facts.get("format") == _FORMAT else None


def _saved(path: Path) -> SavedIndex:
    snapshot = Snapshot.read(path)
    return SavedIndex(ChatIndex.of_snapshot(snapshot), snapshot.facts["model"], snapshot.facts["next_position"])
