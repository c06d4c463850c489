"""Who takes part in a trace."""

from collections.abc import Iterable

from bus_schema.identities import owner_of
from mindbus.sql.database import Database
from storage_service.acl import Asker
from storage_service.inserts import insert_unless_taken
from storage_service.models import TraceMemberRow
from storage_service.refusals import NotAService


class Traces:
    """The member lists of traces; a list grows, nobody ever leaves it."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def add_members(self, trace_id: str, members: Iterable[str], asker: Asker) -> None:
        """Together with the message at hand. Raises NotAService."""
        if not asker.is_service:
            raise NotAService(requester=asker.identity)
        # In one order everywhere, so that two lists written at once never wait for each other.
        for member in sorted(set(map(owner_of, members))):
            await insert_unless_taken(self.database.session, TraceMemberRow, trace_id=trace_id, member=member)
