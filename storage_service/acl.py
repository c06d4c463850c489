"""Who may do what with an artifact: decided here, nowhere else."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, exists, or_, select
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


def readable_by(asker: Asker) -> ColumnElement[bool]:
    """The condition on a manifest; every read carries it, so that what is denied looks exactly like what is absent."""
    is_theirs = or_(
        ManifestRow.visibility == "public",
        ManifestRow.owner == asker.owner,
        and_(ManifestRow.visibility == "trace", _takes_part(asker)),
    )
    return and_(ManifestRow.expired_at.is_(None), is_theirs)


async def not_found(session: AsyncSession, artifact_id: str) -> NoSuchArtifact:
    """The one refusal for the absent as for the denied; it costs both the same time."""
    found = await session.scalar(select(ManifestRow.id).where(ManifestRow.id == artifact_id))
    return NoSuchArtifact(artifact_id=artifact_id, is_denied=found is not None)


def supersedable_by(asker: Asker) -> ColumnElement[bool]:
    """The condition on a predecessor; that everybody may read it does not make it everybody's to correct."""
    return or_(ManifestRow.owner == asker.owner, and_(ManifestRow.visibility != "private", _takes_part(asker)))


def _takes_part(asker: Asker) -> ColumnElement[bool]:
    members = exists().where(TraceMemberRow.trace_id == ManifestRow.trace_id).correlate(ManifestRow)
    listed = members.where(TraceMemberRow.member == asker.owner)
    if asker.trace_id is None:
        return listed
    return or_(listed, and_(ManifestRow.trace_id == asker.trace_id, ~members))
