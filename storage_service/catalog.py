"""What exists, for those who may see it."""

from sqlalchemy import select

from bus_schema.artifacts import Manifest
from bus_schema.storage import ManifestPage, SearchArtifacts, Versions
from mindbus.principal import Principal
from mindbus.sql.database import Database
from storage_service.acl import not_found, readable_by
from storage_service.cursors import position_of
from storage_service.models import ManifestRow
from storage_service.rows import as_manifest
from storage_service.search import Pace, Search


class Catalog:
    """Reads of manifests, each under the one condition of the ACL."""

    def __init__(self, database: Database, pace: Pace | None = None) -> None:
        self.database = database
        self.pace = pace or Pace()

    async def get(self, artifact_id: str, principal: Principal) -> Manifest:
        """Raises NoSuchArtifact."""
        query = select(ManifestRow).where(ManifestRow.id == artifact_id, readable_by(principal))
        async with self.database.reading() as session:
            row = await session.scalar(query)
            if row is None:
                raise await not_found(session, artifact_id)
        return as_manifest(row)

    async def search(self, wanted: SearchArtifacts, principal: Principal) -> ManifestPage:
        """In order of commit, so that what is committed between two pages comes after both. Raises NotACursor."""
        after = position_of(wanted.cursor)
        async with self.database.reading() as session:
            search = Search(session, wanted, principal, self.pace)
            places = await search.places(after, wanted.limit + 1)
            page = places[: wanted.limit]
            rows = await search.manifests(page)
        next_cursor = str(page[-1]) if len(places) > wanted.limit else None
        return ManifestPage(items=tuple(map(as_manifest, rows)), next_cursor=next_cursor)

    async def versions(self, artifact_id: str, principal: Principal) -> Versions:
        """Raises NoSuchArtifact."""
        one = select(ManifestRow.logical_id).where(ManifestRow.id == artifact_id, readable_by(principal))
        query = (
            select(ManifestRow)
            .where(ManifestRow.logical_id == one.scalar_subquery(), readable_by(principal))
            .order_by(ManifestRow.version)
        )
        async with self.database.reading() as session:
            rows = (await session.scalars(query)).all()
            if not rows:
                raise await not_found(session, artifact_id)
        return Versions(items=tuple(map(as_manifest, rows)))
