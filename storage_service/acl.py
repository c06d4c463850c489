"""Access control of artifacts, the only place that decides who may do what; members and retention of traces."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import BindParameter, ColumnElement, Connection, and_, bindparam, exists, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.artifacts import retention_of
from bus_schema.dialogue import conversation_trace
from bus_schema.identities import Principal, owner_of, user_of
from mindbus.sql.database import Database
from mindbus.sql.statements import PreparedStatement
from storage_service.errors import NoSuchArtifact, NotAnOperator, NotAService
from storage_service.rows import inserting
from storage_service.tables import ManifestRow, TraceMemberRow, TraceRow

_EXISTING = PreparedStatement(select(ManifestRow.id).where(ManifestRow.id == bindparam("id")))
# A value, or a parameter of a prepared statement.
Value = str | BindParameter[str]


def readable_by(principal: Principal) -> ColumnElement[bool]:
    """Condition on a manifest; every read has it, so that a denied artifact looks exactly like an absent one."""
    return readable_as(principal.owner, principal.trace_id)


def readable_as(owner: Value, trace: Value | None) -> ColumnElement[bool]:
    """`readable_by` for a statement that serves many requesters."""
    is_theirs = or_(
        ManifestRow.visibility == "public",
        ManifestRow.owner == owner,
        and_(ManifestRow.visibility == "trace", _takes_part(owner, trace)),
    )
    return and_(ManifestRow.expired_at.is_(None), is_theirs)


async def not_found(session: AsyncSession, artifact_id: str) -> NoSuchArtifact:
    """The error for an absent as for a denied artifact; both take the same time."""
    return await (await session.connection()).run_sync(none_on, artifact_id)


def none_on(connection: Connection, artifact_id: str) -> NoSuchArtifact:
    """`not_found` within a transaction that is no session's."""
    existing = _EXISTING.first(connection, {"id": artifact_id})
    return NoSuchArtifact(artifact_id=artifact_id, is_denied=existing is not None)


def is_talk_of_another(trace_id: str, owner: str) -> bool:
    """Whether a trace is that of the dialogue of somebody else than this owner."""
    return trace_id.startswith(conversation_trace("")) and trace_id != conversation_trace(user_of(owner) or "")


def supersedable_by(principal: Principal) -> ColumnElement[bool]:
    """Condition on a predecessor; being readable by everybody does not make it replaceable by everybody."""
    takes_part = _takes_part(principal.owner, principal.trace_id)
    return or_(ManifestRow.owner == principal.owner, and_(ManifestRow.visibility != "private", takes_part))


def require_operator(principal: Principal) -> None:
    """Raises NotAnOperator."""
    if not principal.is_operator:
        raise NotAnOperator(requester=principal.identity)


def _takes_part(owner: Value, trace: Value | None) -> ColumnElement[bool]:
    members = exists().where(TraceMemberRow.trace_id == ManifestRow.trace_id).correlate(ManifestRow)
    listed = members.where(TraceMemberRow.member == owner)
    if trace is None:
        return listed
    return or_(listed, and_(ManifestRow.trace_id == trace, ~members))


@dataclass(frozen=True, slots=True)
class Traces:
    """Member lists of traces; members are only added."""

    database: Database
    clock: Callable[[], datetime]

    async def add_members(
        self, trace_id: str, members: Iterable[str], principal: Principal, retention: str | None = None
    ) -> None:
        """Add members within the current transaction; opens the trace, unless it has ended. Raises NotAService."""
        if not principal.is_service:
            raise NotAService(requester=principal.identity)
        # In one order, so that two concurrent lists do not deadlock.
        owners = sorted(set(map(owner_of, members)))

        def add(connection: Connection) -> None:
            rows = [{"trace_id": trace_id, "member": member} for member in owners]
            inserting(TraceMemberRow).all_of(connection, rows)
            _change_trace(connection, trace_id, retention=retention)

        await self.database.run(add)

    async def have_in_common(self, trace_id: str, members: Collection[str]) -> bool:
        """Whether all of these are on a trace's list of members."""
        listed = select(TraceMemberRow.member).where(
            TraceMemberRow.trace_id == trace_id, TraceMemberRow.member.in_(members)
        )
        found = await self.database.read(lambda connection: set(connection.execute(listed).scalars()))
        return found == set(members)

    async def close(self, trace_id: str, time: datetime) -> None:
        """End a trace within the current transaction; its retention counts from that time."""
        await self.database.run(lambda connection: _change_trace(connection, trace_id, closed_at=time))

    async def reopen(self, trace_id: str, time: datetime) -> None:
        """Forget an end of a trace from before that time, by the same clock; its retention counts from the next one."""

        def forget(connection: Connection) -> None:
            trace = _TRACE.first(connection, {"of": trace_id})
            if trace is not None and trace.closed_at is not None and trace.closed_at < time:
                _TRACE_CHANGE.run(connection, [{"closed_at": None, "kept_until": None, "of": trace_id}])

        await self.database.run(forget)


_OF_TRACE = TraceRow.trace_id == bindparam("of")
_TRACE = PreparedStatement(select(TraceRow.__table__).where(_OF_TRACE).with_for_update())
_TRACE_CHANGE = PreparedStatement(update(TraceRow).where(_OF_TRACE))


def _change_trace(
    connection: Connection, trace_id: str, *, retention: str | None = None, closed_at: datetime | None = None
) -> None:
    """Open a trace, unless it is there; of several ends the last one counts, in whatever order they are heard."""
    inserting(TraceRow).all(connection, {"trace_id": trace_id})
    trace = _TRACE.first(connection, {"of": trace_id})
    retention = retention or trace.retention
    closed_at = max(filter(None, (trace.closed_at, closed_at)), default=None)
    kept_for = retention_of(retention) if retention else None
    changed = {
        "retention": retention,
        "closed_at": closed_at,
        "kept_until": closed_at + kept_for if closed_at and kept_for else None,
    }
    _TRACE_CHANGE.run(connection, [changed | {"of": trace_id}])
