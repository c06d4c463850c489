"""Who may do what with an artifact: decided here, nowhere else."""

from sqlalchemy import BindParameter, ColumnElement, and_, exists, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from mindbus.principal import Principal
from storage_service.errors import NoSuchArtifact
from storage_service.tables import ManifestRow, TraceMemberRow

# As it is, or the place in a statement where it comes with each execution.
Given = str | BindParameter[str]


def readable_by(principal: Principal) -> ColumnElement[bool]:
    """The condition on a manifest; every read carries it, so that what is denied looks exactly like what is absent."""
    return readable_as(principal.owner, principal.trace_id)


def readable_as(owner: Given, trace: Given | None) -> ColumnElement[bool]:
    """The same in a statement that serves many askers."""
    is_theirs = or_(
        ManifestRow.visibility == "public",
        ManifestRow.owner == owner,
        and_(ManifestRow.visibility == "trace", _takes_part(owner, trace)),
    )
    return and_(ManifestRow.expired_at.is_(None), is_theirs)


async def not_found(session: AsyncSession, artifact_id: str) -> NoSuchArtifact:
    """The one refusal for the absent as for the denied; it costs both the same time."""
    found = await session.scalar(select(ManifestRow.id).where(ManifestRow.id == artifact_id))
    return NoSuchArtifact(artifact_id=artifact_id, is_denied=found is not None)


def supersedable_by(principal: Principal) -> ColumnElement[bool]:
    """The condition on a predecessor; that everybody may read it does not make it everybody's to correct."""
    takes_part = _takes_part(principal.owner, principal.trace_id)
    return or_(ManifestRow.owner == principal.owner, and_(ManifestRow.visibility != "private", takes_part))


def _takes_part(owner: Given, trace: Given | None) -> ColumnElement[bool]:
    members = exists().where(TraceMemberRow.trace_id == ManifestRow.trace_id).correlate(ManifestRow)
    listed = members.where(TraceMemberRow.member == owner)
    if trace is None:
        return listed
    return or_(listed, and_(ManifestRow.trace_id == trace, ~members))
