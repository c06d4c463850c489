"""MCP tools and resources of artifacts: list, read, put, lineage."""

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError
from pydantic import BaseModel, Field

from bus_schema.artifacts import Manifest, Visibility
from bus_schema.ids import mint
from bus_schema.storage import GetLineage, Lineage, SearchArtifacts
from mindbus.errors import MindBusError
from mindbus.integrations.mcp.participant import ParticipantOf
from mindbus.sdk.transfers import read_whole

ARTIFACT_URI = "mindbus://artifacts/{artifact_id}"
_MOST_BYTES = 1024 * 1024
_TEXTS = ("text/", "application/json", "application/yaml", "application/xml")

ArtifactId = Annotated[str, Field(description="Such as art_0192….")]


class ArtifactList(BaseModel):
    """Manifests in order of commit; pass `cursor` to get the next ones."""

    items: list[Manifest]
    cursor: str | None = None


class ArtifactTools:
    """Artifacts that one may read, and one's own new ones."""

    def __init__(self, participant_of: ParticipantOf) -> None:
        self._of = participant_of

    async def artifact_list(
        self,
        context: Context[Any, Any],
        trace: Annotated[str | None, Field(description="Only from this run, `run_…`, or other trace.")] = None,
        type: Annotated[str | None, Field(description="Such as draft or research_report.")] = None,
        limit: Annotated[int, Field(ge=1, le=100)] = 20,
        cursor: str | None = None,
    ) -> ArtifactList:
        """List artifacts: files with their provenance. Read one with artifact_read, or as a resource."""
        query = SearchArtifacts(trace_id=trace, artifact_type=type, limit=limit, cursor=cursor)
        page = await self._of(context).bus.request(query)
        return ArtifactList(items=list(page.items), cursor=page.next_cursor)

    async def artifact_read(self, context: Context[Any, Any], id: ArtifactId) -> str:
        """Read a text artifact of at most one megabyte."""
        content = await self._content(context, id)
        if isinstance(content, bytes):
            raise ResourceError(f"{id} is not text; read the resource {ARTIFACT_URI.format(artifact_id=id)}")
        return content

    async def artifact_put(
        self,
        context: Context[Any, Any],
        text: Annotated[str, Field(min_length=1, description="The content.")],
        type: Annotated[str, Field(description="What it is: notes, draft, report, ….")],
        content_type: str = "text/markdown",
        trace: Annotated[str | None, Field(description="Trace that it belongs to; default: a new one.")] = None,
        visibility: Annotated[Visibility, Field(description="Who may read it.")] = "trace",
    ) -> Manifest:
        """Store a text as your own artifact."""
        async with self._of(context).artifacts() as artifacts:
            put = await artifacts.put(
                text.encode(),
                artifact_type=type,
                trace=trace or mint("trace"),
                content_type=content_type,
                visibility=visibility,
            )
        return put.manifest

    async def artifact_lineage(
        self,
        context: Context[Any, Any],
        id: ArtifactId,
        direction: Annotated[
            Literal["up", "down", "both"], Field(description="`up`: what it was made from; `down`: made from it.")
        ] = "up",
        depth: Annotated[int, Field(ge=1, le=100)] = 10,
    ) -> Lineage:
        """Show what an artifact was made from, or what was made from it."""
        query = GetLineage(artifact_id=id, direction=direction, depth=depth)
        return await self._of(context).bus.request(query)

    async def resource(self, artifact_id: str, context: Context[Any, Any]) -> str | bytes:
        """The content of an artifact that you may read."""
        try:
            return await self._content(context, artifact_id)
        except MindBusError as error:
            raise ResourceError(str(error)) from error

    async def _content(self, context: Context[Any, Any], artifact_id: str) -> str | bytes:
        async with self._of(context).artifacts() as artifacts, artifacts.open(artifact_id) as reader:
            content = await read_whole(reader, _MOST_BYTES)
        is_text = reader.manifest.content_type.startswith(_TEXTS)
        return content.decode(errors="replace") if is_text else content
