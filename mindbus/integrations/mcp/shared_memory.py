"""MCP tools of shared memory: what people and agents have put down for each other."""

from datetime import datetime
from typing import Annotated, Any, Self

from mcp.server.mcpserver import Context
from pydantic import BaseModel, Field

from bus_schema.glm import DeleteKem, FoundKem, KemChanges, KemContradiction, RetrieveKems, StoreKem, UpdateKem
from bus_schema.kem import Kem, KemDraft, KemVisibility
from bus_schema.kem_query import KemQuery
from bus_schema.replies import Code
from mindbus.errors import Rejected
from mindbus.integrations.mcp.participant import ParticipantOf
from mindbus.sdk.kem_filters import query_from

Text = Annotated[str, Field(min_length=1, description="What to remember, in a sentence or a passage.")]
UnitId = Annotated[str, Field(description="Such as kem_0192….")]
Shown = Annotated[KemVisibility, Field(description="`private`: only you; `public`: everybody in this fleet.")]
About = Annotated[dict[str, Any], Field(description='What it is about, such as {"project_id": "apollo"}.')]


class MemoryUnit(BaseModel):
    """A unit of shared memory; if it was searched for, with a `score` and what says something else of the same."""

    id: str
    text: str | None
    artifact_id: str | None = None
    metadata: dict[str, Any]
    owner: str
    visibility: KemVisibility
    updated_at: datetime
    valid_to: datetime | None = None
    score: float | None = None
    contradicts: tuple[KemContradiction, ...] = ()

    @classmethod
    def of(cls, kem: Kem, **found: Any) -> Self:
        artifact_id = None if kem.ref is None else kem.ref.artifact_id
        fields = {
            name: getattr(kem, name) for name in ("id", "metadata", "owner", "visibility", "updated_at", "valid_to")
        }
        return cls(**fields, text=kem.content, artifact_id=artifact_id, **found)


class FoundUnits(BaseModel):
    """Units, best first; pass `cursor` to get the next ones. `is_degraded` means that only words could be compared."""

    items: list[MemoryUnit]
    cursor: str | None = None
    is_degraded: bool = False


class SharedMemoryTools:
    """Add, search, get, update and delete units, as far as their rights allow."""

    def __init__(self, participant_of: ParticipantOf) -> None:
        self._of = participant_of

    async def memory_add(
        self,
        context: Context[Any, Any],
        text: Text,
        metadata: About | None = None,
        visibility: Shown = "private",
        supersedes: Annotated[
            list[UnitId] | None, Field(description="Units that are no longer valid now that this one is.")
        ] = None,
    ) -> MemoryUnit:
        """Remember something in shared memory, so that it can later be found by meaning, here and by the agents."""
        about = metadata or {}
        draft = KemDraft(content=text, metadata=about, visibility=visibility, supersedes=tuple(supersedes or ()))
        return MemoryUnit.of(await self._of(context).bus.request(StoreKem(kem=draft)))

    async def memory_search(
        self,
        context: Context[Any, Any],
        query: Annotated[str, Field(min_length=1, max_length=2000, description="Words or a question.")],
        filter: Annotated[str, Field(max_length=1000, description="`metadata.KEY=VALUE`, joined by AND, OR.")] = "",
        limit: Annotated[int, Field(ge=1, le=50)] = 8,
        cursor: str | None = None,
    ) -> FoundUnits:
        """Search the shared memory that you may read, by meaning and by words."""
        wanted = query_from(filter, text_query=query)
        page = await self._of(context).bus.request(RetrieveKems(query=wanted, page_size=limit, cursor=cursor))
        return FoundUnits(
            items=[MemoryUnit.of(each.kem, score=each.score, contradicts=each.contradicts) for each in page.items],
            cursor=page.next_cursor,
            is_degraded=page.is_degraded,
        )

    async def memory_get(self, context: Context[Any, Any], id: UnitId) -> MemoryUnit:
        """Read one unit of shared memory."""
        return MemoryUnit.of((await self._found(context, id)).kem)

    async def memory_update(
        self,
        context: Context[Any, Any],
        id: UnitId,
        text: Text | None = None,
        metadata: About | None = None,
        visibility: Shown | None = None,
    ) -> MemoryUnit:
        """Change a unit of shared memory; what you leave out stays. Metadata is replaced as a whole."""
        given = {"content": text, "metadata": metadata, "visibility": visibility}
        changes = KemChanges(**{name: value for name, value in given.items() if value is not None})
        return MemoryUnit.of(await self._of(context).bus.request(UpdateKem(kem_id=id, changes=changes)))

    async def memory_delete(self, context: Context[Any, Any], id: UnitId) -> str:
        """Delete a unit of shared memory for good."""
        await self._of(context).bus.request(DeleteKem(kem_id=id))
        return f"{id} is deleted"

    async def _found(self, context: Context[Any, Any], kem_id: str) -> FoundKem:
        page = await self._of(context).bus.request(RetrieveKems(query=KemQuery(ids=(kem_id,)), page_size=1))
        if not page.items:
            raise Rejected(Code.NOT_FOUND, f"there is no unit {kem_id}, or you may not read it")
        return page.items[0]
