"""Who may do what with an artifact: decided here, nowhere else."""

from dataclasses import dataclass

from sqlalchemy import BindParameter, ColumnElement, and_, exists, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.identities import is_operator, owner_of
from storage_service.models import ManifestRow, TraceMemberRow
from storage_service.refusals import NoSuchArtifact


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, within which trace."""

    identity: str
    trace_id: str | None = None

    @property
    def owner(self) -> str:
        """The asker without its instance: what one instance made is every instance's."""
        return owner_of(self.identity)

    @property
    def is_service(self) -> bool:
        """Whether a service asks, rather than an agent or a person."""
        return self.identity.startswith("svc.")

    @property
    def is_operator(self) -> bool:
        """Whether a service or a person asks, who may look after the store."""
        return is_operator(self.identity)


# As it is, or the place in a statement where it comes with each execution.
Given = str | BindParameter[str]


def readable_by(asker: Asker) -> ColumnElement[bool]:
    """The condition on a manifest; every read carries it, so that what is denied looks exactly like what is absent."""
    return readable_as(asker.owner, asker.trace_id)


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


def supersedable_by(asker: Asker) -> ColumnElement[bool]:
    """The condition on a predecessor; that everybody may read it does not make it everybody's to correct."""
    takes_part = _takes_part(asker.owner, asker.trace_id)
    return or_(ManifestRow.owner == asker.owner, and_(ManifestRow.visibility != "private", takes_part))


def _takes_part(owner: Given, trace: Given | None) -> ColumnElement[bool]:
    members = exists().where(TraceMemberRow.trace_id == ManifestRow.trace_id).correlate(ManifestRow)
    listed = members.where(TraceMemberRow.member == owner)
    if trace is None:
        return listed
    return or_(listed, and_(ManifestRow.trace_id == trace, ~members))
