"""Values that agents keep between messages, each in its own namespace."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from bus_schema.agent_data import AgentDataPage, AgentDatum, GetAgentData, PutAgentData
from mindbus.sql.database import Database
from retrieval.cursors import split_page
from storage_service.errors import AgentDatumConflict
from storage_service.rows import insert_if_absent
from storage_service.tables import AgentDatumRow


@dataclass(frozen=True, slots=True)
class AgentData:
    """Versioned values by agent, namespace and key."""

    database: Database
    clock: Callable[[], datetime]

    async def put(self, request: PutAgentData) -> int:
        """Store a value within the current transaction; returns its version. Raises AgentDatumConflict."""
        session = self.database.session
        key = {"agent": request.agent, "namespace": request.namespace, "key": request.key}
        row = await session.get(AgentDatumRow, key, with_for_update=True)
        version = row.version if row else 0
        if request.expected_version not in (None, version):
            raise AgentDatumConflict(expected_version=request.expected_version, version=version)
        if request.value is None:
            if row is not None:
                await session.delete(row)
                await session.flush()
            return 0
        fields = {"value": request.value, "version": version + 1, "updated_at": self.clock()}
        if row is not None:
            row.value, row.version, row.updated_at = request.value, version + 1, self.clock()
            await session.flush()
        elif not await insert_if_absent(session, AgentDatumRow, **key, **fields):
            # Another transaction has inserted it first: replace its value, or report its version.
            return await self.put(request)
        return version + 1

    async def page(self, request: GetAgentData) -> AgentDataPage:
        """A page in order of keys; the cursor is the last key."""
        query = select(AgentDatumRow).where(
            AgentDatumRow.agent == request.agent, AgentDatumRow.namespace == request.namespace
        )
        if request.key is not None:
            query = query.where(AgentDatumRow.key == request.key)
        if request.cursor is not None:
            query = query.where(AgentDatumRow.key > request.cursor)
        query = query.order_by(AgentDatumRow.key).limit(request.limit + 1)
        async with self.database.reading() as session:
            rows = (await session.scalars(query)).all()
        page, last = split_page(rows, request.limit)
        items = tuple(AgentDatum.model_validate(row, from_attributes=True) for row in page)
        return AgentDataPage(items=items, next_cursor=last.key if last else None)
