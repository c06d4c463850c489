"""What an artifact was made from, what was made from it."""

from sqlalchemy import select

from bus_schema.storage import GetLineage, Lineage, LineageEdge
from mindbus.principal import Principal
from mindbus.sql.database import Database
from storage_service.acl import not_found, readable_by
from storage_service.models import InputRow, ManifestRow
from storage_service.refusals import LineageTooLarge
from storage_service.rows import as_manifest

MAX_EDGES = 2000


class LineageReader:
    """Walks the provenance graph level by level; what the asker may not see is not there, nor what lies behind it."""

    def __init__(self, database: Database, max_edges: int = MAX_EDGES) -> None:
        self.database = database
        self.max_edges = max_edges

    async def lineage(self, wanted: GetLineage, principal: Principal) -> Lineage:
        """Raises NoSuchArtifact, LineageTooLarge."""
        query = select(ManifestRow).where(ManifestRow.id == wanted.artifact_id, readable_by(principal))
        async with self.database.reading() as session:
            start = await session.scalar(query)
            if start is None:
                raise await not_found(session, wanted.artifact_id)
        nodes = {start.id: start}
        edges: set[tuple[str, str]] = set()
        for direction in ("up", "down"):
            if wanted.direction in (direction, "both"):
                await self._walk(start.id, direction, wanted.depth, principal, (nodes, edges))
        return Lineage(
            nodes=tuple(as_manifest(row) for row in sorted(nodes.values(), key=lambda row: row.position)),
            edges=tuple(LineageEdge(source=source, target=target) for source, target in sorted(edges)),
        )

    async def _walk(
        self,
        start: str,
        direction: str,
        depth: int,
        principal: Principal,
        found: tuple[dict[str, ManifestRow], set[tuple[str, str]]],
    ) -> None:
        nodes, edges = found
        near, far = InputRow.artifact_id, InputRow.input_id
        if direction == "down":
            near, far = far, near
        frontier = {start}
        while frontier and depth > 0:
            query = (
                select(InputRow, ManifestRow)
                .join(ManifestRow, ManifestRow.id == far)
                .where(near.in_(frontier), readable_by(principal))
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
