"""What somebody wants gone: log, episodes with their packs, vectors, searches."""

from typing import Any

from sqlalchemy import delete, func, select

from memory.lsm.chats import locked
from memory.lsm.following import Followers
from memory.lsm.forgettings import Forgettings
from memory.lsm.tables import ChatRow, EpisodeOfTurnRow, EpisodeRow, SearchRow, SearchWeightsRow, TurnRow, TurnVectorRow
from mindbus.sql.database import Database

_HANGING_ON_TURNS: dict[str, Any] = {"vectors": TurnVectorRow, "memberships": EpisodeOfTurnRow}
_OF_A_CHAT: dict[str, Any] = {"turns": TurnRow, "episodes": EpisodeRow, "searches": SearchRow, "chats": ChatRow}


class Erasing:
    """Every method is a part of the transaction of the message at hand; what followers keep goes with its commit."""

    def __init__(self, database: Database, followers: Followers, forgettings: Forgettings) -> None:
        self.database, self.followers, self.forgettings = database, followers, forgettings

    async def forget(self, chat_id: str) -> dict[str, int]:
        """Everything of one chat; how much there was of each kind."""
        return await self._erase(chat_id)

    async def clear(self) -> dict[str, int]:
        """Everything."""
        counts = await self._erase(None)
        counts["weights"] = await self._deleted(delete(SearchWeightsRow))
        return counts

    async def _erase(self, chat_id: str | None) -> dict[str, int]:
        if chat_id is not None:
            await locked(self.database.session, chat_id)
        self.forgettings.add(chat_id)
        is_packed = EpisodeRow.content_warm.is_not(None) | EpisodeRow.content_cold.is_not(None)
        packs = select(func.count()).select_from(EpisodeRow).where(is_packed, *_of(EpisodeRow, chat_id))
        counts = {"packs": await self.database.session.scalar(packs) or 0}
        turns = select(TurnRow.id).where(*_of(TurnRow, chat_id))
        for kind, hanging in _HANGING_ON_TURNS.items():
            counts[kind] = await self._deleted(delete(hanging).where(hanging.raw_log_id.in_(turns)))
        for kind, table in _OF_A_CHAT.items():
            counts[kind] = await self._deleted(delete(table).where(*_of(table, chat_id)))
        if not counts["turns"]:
            # There was nothing but the row that was locked.
            counts["chats"] = 0
        self.followers.forgotten(chat_id)
        return counts

    async def _deleted(self, statement: Any) -> int:
        done = await self.database.session.execute(statement.execution_options(synchronize_session=False))
        return int(done.rowcount)  # type: ignore[attr-defined]  # a delete's result is a CursorResult


def _of(table: Any, chat_id: str | None) -> list[Any]:
    return [] if chat_id is None else [table.chat_id == chat_id]
