"""Members and retention of traces."""

from collections.abc import Callable, Iterable
from datetime import datetime

from bus_schema.artifacts import retention_of
from bus_schema.identities import owner_of
from mindbus.principal import Principal
from mindbus.sql.database import Database
from storage_service.errors import NotAService
from storage_service.inserts import insert_unless_taken
from storage_service.tables import TraceMemberRow, TraceRow


class Traces:
    """Member lists of traces; members are only added."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self.database = database
        self.clock = clock

    async def add_members(
        self, trace_id: str, members: Iterable[str], principal: Principal, retention: str | None = None
    ) -> None:
        """Add members within the current transaction; opens the trace, unless it has ended. Raises NotAService."""
        if not principal.is_service:
            raise NotAService(requester=principal.identity)
        # In one order, so that two concurrent lists do not deadlock.
        for member in sorted(set(map(owner_of, members))):
            await insert_unless_taken(self.database.session, TraceMemberRow, trace_id=trace_id, member=member)
        trace = await self._opened(trace_id)
        trace.retention = retention or trace.retention
        _set_retention(trace)

    async def close(self, trace_id: str) -> None:
        """End a trace within the current transaction; its retention counts from now on."""
        trace = await self._opened(trace_id)
        trace.closed_at = trace.closed_at or self.clock()
        _set_retention(trace)

    async def _opened(self, trace_id: str) -> TraceRow:
        session = self.database.session
        await insert_unless_taken(session, TraceRow, trace_id=trace_id)
        return await session.get_one(TraceRow, trace_id, with_for_update=True)


def _set_retention(trace: TraceRow) -> None:
    kept = retention_of(trace.retention) if trace.retention else None
    trace.kept_until = trace.closed_at + kept if trace.closed_at and kept else None
