"""Searches of which nobody has said what was of use: they teach nothing, so they are not kept for ever."""

from datetime import datetime, timedelta

from sqlalchemy import delete, select, update

from memory.lsm.tables import SearchRow
from mindbus.sql.database import Database

_AT_ONCE = 500


class OldSearches:
    """Forgets them in portions; a search with feedback stays.

    A search may be as of another time, so its age counts from when it is noticed here.
    """

    def __init__(self, database: Database, keep: timedelta) -> None:
        self.database, self.keep = database, keep

    async def step(self, now: datetime) -> int:
        """How many are forgotten, in the transaction at hand."""
        session, silent = self.database.session, SearchRow.feedback.is_(None)
        new = select(SearchRow.search_id).where(silent, SearchRow.noticed_at.is_(None)).limit(_AT_ONCE)
        noticing = update(SearchRow).where(SearchRow.search_id.in_(new)).values(noticed_at=now)
        await session.execute(noticing.execution_options(synchronize_session=False))
        old = select(SearchRow.search_id).where(silent, SearchRow.noticed_at < now - self.keep).limit(_AT_ONCE)
        # Feedback that comes at this moment waits for the row, then finds it gone; what came before keeps it.
        ids = list(await session.scalars(old.with_for_update(skip_locked=True)))
        if ids:
            gone = delete(SearchRow).where(SearchRow.search_id.in_(ids))
            await session.execute(gone.execution_options(synchronize_session=False))
        return len(ids)
