"""Access control of artifacts: the only place that decides who may do what."""

from sqlalchemy import BindParameter, ColumnElement, and_, exists, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from mindbus.principal import Principal
from storage_service.errors import NoSuchArtifact, NotAnOperator
from storage_service.tables import ManifestRow, TraceMemberRow

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
    found = await session.scalar(select(ManifestRow.id).where(ManifestRow.id == artifact_id))
    return NoSuchArtifact(artifact_id=artifact_id, is_denied=found is not None)


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
