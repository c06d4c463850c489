"""What exists, for those who may see it."""

from sqlalchemy import ColumnElement, select

from bus_schema.artifacts import Manifest
from bus_schema.identities import owner_of
from bus_schema.storage import ManifestPage, SearchArtifacts, Versions
from mindbus.sql.database import Database
from storage_service.acl import Asker, not_found, readable_by
from storage_service.cursors import position_of
from storage_service.models import ManifestRow
from storage_service.rows import as_manifest


class Catalog:
    """Reads of manifests, each under the one condition of the ACL."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def get(self, artifact_id: str, asker: Asker) -> Manifest:
        """Raises NoSuchArtifact."""
        query = select(ManifestRow).where(ManifestRow.id == artifact_id, readable_by(asker))
        async with self.database.reading() as session:
            row = await session.scalar(query)
            if row is None:
                raise await not_found(session, artifact_id)
        return as_manifest(row)

    async def search(self, wanted: SearchArtifacts, asker: Asker) -> ManifestPage:
        """In order of commit, so that what is committed between two pages comes after both. Raises NotACursor."""
        after = position_of(wanted.cursor)
        query = (
            select(ManifestRow)
            .where(ManifestRow.position > after, readable_by(asker), *_conditions(wanted))
            .order_by(ManifestRow.position)
            .limit(wanted.limit + 1)
        )
        async with self.database.reading() as session:
            rows = (await session.scalars(query)).all()
        page = rows[: wanted.limit]
        next_cursor = str(page[-1].position) if len(rows) > wanted.limit else None
        return ManifestPage(items=tuple(map(as_manifest, page)), next_cursor=next_cursor)

    async def versions(self, artifact_id: str, asker: Asker) -> Versions:
        """Raises NoSuchArtifact."""
        one = select(ManifestRow.logical_id).where(ManifestRow.id == artifact_id, readable_by(asker))
        query = (
            select(ManifestRow)
            .where(ManifestRow.logical_id == one.scalar_subquery(), readable_by(asker))
            .order_by(ManifestRow.version)
        )
        async with self.database.reading() as session:
            rows = (await session.scalars(query)).all()
            if not rows:
                raise await not_found(session, artifact_id)
        return Versions(items=tuple(map(as_manifest, rows)))


def _conditions(wanted: SearchArtifacts) -> list[ColumnElement[bool]]:
    equal = {
        ManifestRow.trace_id: wanted.trace_id,
        # Only an owner registers, so the owner is every instance that may have made it.
        ManifestRow.owner: None if wanted.agent is None else owner_of(wanted.agent),
        ManifestRow.step_id: wanted.step_id,
        ManifestRow.artifact_type: wanted.artifact_type,
    }
    conditions = [column == value for column, value in equal.items() if value is not None]
    if wanted.created_after is not None:
        conditions.append(ManifestRow.created_at >= wanted.created_after)
    if wanted.created_before is not None:
        conditions.append(ManifestRow.created_at < wanted.created_before)
    return conditions
