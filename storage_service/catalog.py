"""Reads of manifests, versions and lineage, under the condition of the ACL."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, select

from bus_schema.identities import Principal
from bus_schema.storage import GetLineage, Lineage, LineageEdge, ManifestPage, SearchArtifacts, Versions
from bus_schema.uploads import FoundManifest
from mindbus.sql.database import Database
from mindbus.sql.statements import PreparedStatement
from retrieval.cursors import position_of, split_page
from storage_service.acl import none_on, not_found, readable_as, readable_by
from storage_service.errors import LineageTooLarge
from storage_service.rows import PLACED_MANIFESTS, as_found, as_manifest
from storage_service.search import DEFAULT_TUNING, ManifestSearch, SearchTuning
from storage_service.tables import InputRow, ManifestRow

MAX_EDGES = 2000
_ONE = PreparedStatement(
    PLACED_MANIFESTS.where(ManifestRow.id == bindparam("id"), readable_as(bindparam("owner"), bindparam("trace")))
)
_SEEN = PLACED_MANIFESTS.where(
    ManifestRow.id.in_(bindparam("ids", expanding=True)), readable_as(bindparam("owner"), bindparam("trace"))
)


@dataclass(frozen=True, slots=True)
class Catalog:
    """Manifests by id, by search, by version and by provenance."""

    database: Database
    pace: SearchTuning = DEFAULT_TUNING
    max_edges: int = MAX_EDGES

    async def get(self, artifact_id: str, principal: Principal) -> FoundManifest:
        """Raises NoSuchArtifact."""
        asked = {"id": artifact_id, "owner": principal.owner, "trace": principal.trace_id}

        def read(connection: Connection) -> Any:
            row = _ONE.first(connection, asked)
            if row is None:
                raise none_on(connection, artifact_id)
            return row

        return as_found(await self.database.read(read))

    async def get_many(self, artifact_ids: Sequence[str], principal: Principal) -> tuple[FoundManifest, ...]:
        """Those manifests that the principal may see, in the order of the ids."""
        asked = {"ids": sorted(set(artifact_ids)), "owner": principal.owner, "trace": principal.trace_id}
        rows = await self.database.read(lambda connection: connection.execute(_SEEN, asked).all())
        found = {row.id: as_found(row) for row in rows}
        return tuple(found[artifact_id] for artifact_id in dict.fromkeys(artifact_ids) if artifact_id in found)

    async def search(self, request: SearchArtifacts, principal: Principal) -> ManifestPage:
        """A page in order of commit, so that what is committed between two pages comes after both.

        Raises InvalidCursor.
        """
        after = position_of(request.cursor)
        async with self.database.reading() as session:
            search = ManifestSearch(session, request, principal, self.pace)
            places = await search.places(after, request.limit + 1)
            page, last = split_page(places, request.limit)
            rows = await search.manifests(page)
        return ManifestPage(items=tuple(map(as_manifest, rows)), next_cursor=None if last is None else str(last))

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

    async def lineage(self, request: GetLineage, principal: Principal) -> Lineage:
        """The provenance graph, read level by level; a hidden artifact ends the walk.

        Raises NoSuchArtifact, LineageTooLarge.
        """
        start = await self._row(request.artifact_id, principal)
        nodes = {start.id: start}
        edges: set[tuple[str, str]] = set()
        for direction in ("up", "down"):
            if request.direction in (direction, "both"):
                await self._walk(start.id, direction, request.depth, principal, (nodes, edges))
        return Lineage(
            nodes=tuple(as_manifest(row) for row in sorted(nodes.values(), key=lambda row: row.position)),
            edges=tuple(LineageEdge(source=source, target=target) for source, target in sorted(edges)),
        )

    async def _row(self, artifact_id: str, principal: Principal) -> ManifestRow:
        query = select(ManifestRow).where(ManifestRow.id == artifact_id, readable_by(principal))
        async with self.database.reading() as session:
            row = await session.scalar(query)
            if row is None:
                raise await not_found(session, artifact_id)
        return row

    async def _walk(
        self,
        start: str,
        direction: str,
        depth: int,
        principal: Principal,
        graph: tuple[dict[str, ManifestRow], set[tuple[str, str]]],
    ) -> None:
        nodes, edges = graph
        own_column, other_column = InputRow.artifact_id, InputRow.input_id
        if direction == "down":
            own_column, other_column = other_column, own_column
        frontier = {start}
        while frontier and depth > 0:
            query = (
                select(InputRow, ManifestRow)
                .join(ManifestRow, ManifestRow.id == other_column)
                .where(own_column.in_(frontier), readable_by(principal))
                .limit(self.max_edges + 1)
            )
            async with self.database.reading() as session:
                rows = (await session.execute(query)).all()
            edges |= {(edge.input_id, edge.artifact_id) for edge, _ in rows}
            if len(edges) > self.max_edges:
                raise LineageTooLarge(max_edges=self.max_edges)
            frontier = {node.id for _, node in rows} - nodes.keys()
            nodes |= {node.id: node for _, node in rows}
            depth -= 1
