"""Erasure of chats on request, and of searches without feedback after a time."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, func, select, update

from memory.lsm.log_changes import LogListeners
from memory.lsm.rows import lock_chat
from memory.lsm.tables import (
    ChatRow,
    EpisodeOfTurnRow,
    EpisodeRow,
    SearchRow,
    SearchWeightsRow,
    TurnRow,
    TurnVectorRow,
    of_chat,
)
from mindbus.sql.database import Database

_BY_TURN: dict[str, Any] = {"vectors": TurnVectorRow, "memberships": EpisodeOfTurnRow}
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
