"""Changes of the log, as those who derive something from it learn of them; erasure of chats, and of old searches."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import delete, func, select, update

from memory.lsm.rows import lock_chat
from memory.lsm.tables import (
    ChatRow,
    EpisodeOfTurnRow,
    EpisodeRow,
    NoteRow,
    SearchRow,
    SearchWeightsRow,
    TurnRow,
    TurnVectorRow,
    of_chat,
)
from mindbus.sql.database import Database


class LogListener:
    """Called after the commit of a change, so that it may read the tables; it must not block."""

    def on_recorded(self, chat_id: str) -> None:
        """Turns of this chat were added, moved to other episodes, or noted."""

    def on_erased(self, chat_id: str | None) -> None:
        """This chat was erased; without an id, all were."""


class LogListeners:
    """All listeners of the log, and the number of erasures of each chat: complete, since one instance writes.

    To record what was read elsewhere, note the number of erasures before reading; in the transaction that records it,
    under the lock on the chat, it must be the same.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._listeners: list[LogListener] = []
        self._erasures: Counter[str | None] = Counter()

    def add(self, listener: LogListener) -> None:
        self._listeners.append(listener)

    def erasures(self, chat_id: str) -> int:
        """Number of erasures that concerned this chat."""
        return self._erasures[chat_id] + self._erasures[None]

    def count_erasure(self, chat_id: str | None) -> None:
        """Count an erasure of this chat, or of all, before it begins."""
        self._erasures[chat_id] += 1

    def notify_recorded(self, chat_id: str) -> None:
        """Notify all once the current transaction is committed."""
        self._after_commit(lambda listener: listener.on_recorded(chat_id))

    def notify_erased(self, chat_id: str | None) -> None:
        """Notify all once the current transaction is committed."""
        self._after_commit(lambda listener: listener.on_erased(chat_id))

    def _after_commit(self, notify: Callable[[LogListener], None]) -> None:
        for listener in self._listeners:
            self.database.after_commit(partial(notify, listener))


_BY_TURN: dict[str, Any] = {"notes": NoteRow, "vectors": TurnVectorRow, "memberships": EpisodeOfTurnRow}
_BY_CHAT: dict[str, Any] = {"turns": TurnRow, "episodes": EpisodeRow, "searches": SearchRow, "chats": ChatRow}
_BATCH = 500


class EpisodeErasure:
    """Deletes log, episodes, vectors and searches in the current transaction; listeners hear of its commit."""

    def __init__(self, database: Database, listeners: LogListeners, keep_searches: timedelta) -> None:
        self.database, self.listeners, self.keep_searches = database, listeners, keep_searches

    async def erase(self, chat_id: str | None) -> dict[str, int]:
        """Erase a chat, or everything; number of deleted rows of each kind."""
        if chat_id is not None:
            await self.database.session.run_sync(lock_chat, chat_id)
        else:
            # An order for all, and before any other row: whoever moves texts has locked its chat first.
            every = select(ChatRow.chat_id).order_by(ChatRow.chat_id).with_for_update()
            await self.database.session.execute(every)
        self.listeners.count_erasure(chat_id)
        is_packed = EpisodeRow.content_warm.is_not(None) | EpisodeRow.content_cold.is_not(None)
        packs = select(func.count()).select_from(EpisodeRow).where(is_packed, *of_chat(EpisodeRow, chat_id))
        counts = {"packs": await self.database.session.scalar(packs) or 0}
        turns = select(TurnRow.id).where(*of_chat(TurnRow, chat_id))
        for kind, table in _BY_TURN.items():
            counts[kind] = await self._delete_rows(delete(table).where(table.raw_log_id.in_(turns)))
        for kind, table in _BY_CHAT.items():
            counts[kind] = await self._delete_rows(delete(table).where(*of_chat(table, chat_id)))
        if not counts["turns"]:
            # The only row was the one inserted for the lock.
            counts["chats"] = 0
        if chat_id is None:
            counts["weights"] = await self._delete_rows(delete(SearchWeightsRow))
        self.listeners.notify_erased(chat_id)
        return counts

    async def forget_searches(self, now: datetime) -> int:
        """Delete a batch of the searches that had no feedback for the time to keep them; number of deleted searches.

        A search may be as of another time, so its age counts from when it was first noticed here.
        """
        session, unrated = self.database.session, SearchRow.feedback.is_(None)
        new = select(SearchRow.search_id).where(unrated, SearchRow.noticed_at.is_(None)).limit(_BATCH)
        noticing = update(SearchRow).where(SearchRow.search_id.in_(new)).values(noticed_at=now)
        await session.execute(noticing.execution_options(synchronize_session=False))
        old = select(SearchRow.search_id).where(unrated, SearchRow.noticed_at < now - self.keep_searches).limit(_BATCH)
        # Concurrent feedback either comes first, so that the search is skipped, or finds it deleted.
        ids = list(await session.scalars(old.with_for_update(skip_locked=True)))
        if ids:
            deletion = delete(SearchRow).where(SearchRow.search_id.in_(ids))
            await session.execute(deletion.execution_options(synchronize_session=False))
        return len(ids)

    async def _delete_rows(self, statement: Any) -> int:
        done = await self.database.session.execute(statement.execution_options(synchronize_session=False))
        return int(done.rowcount)  # type: ignore[attr-defined]  # a delete's result is a CursorResult
