"""Shared memory, over HTTP: found, counted, followed."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response
from fastapi.sse import format_sse_event
from pydantic import BaseModel, ConfigDict, Field

from bus_schema.glm import MAX_PAGE, KemPage, MemoryStats
from bus_schema.identities import UserId
from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery, OrderBy
from bus_schema.links import KemId
from gateway.api.dependencies import Desk, OpenStreams
from gateway.shared_memory import Facets, SharedMemory
from memory.filters import Filter, parse_filter
from memory.questions import query_from

router = APIRouter(tags=["memory"])

_RETRY_MS = 2000
User = Annotated[UserId | None, Query()]
FilterText = Annotated[str, Field(max_length=1000, description="`metadata.KEY=VALUE`, joined by AND, OR, ( ).")]


class KemSearchParams(BaseModel):
    """Which units; all that is given is ANDed."""

    model_config = ConfigDict(extra="forbid")
    user: UserId | None = Field(default=None, description="Whose rights count; the gateway's own, if nobody's.")
    q: str | None = Field(default=None, min_length=1, max_length=2000, description="What is looked for.")
    filter: FilterText = ""
    order: OrderBy | None = None

    def query(self) -> KemQuery:
        """The same as memory is asked. Raises MalformedFilter, CannotBeAsked."""
        return query_from(self.filter, text_query=self.q, order_by=self.order)


class KemPageParams(KemSearchParams):
    explain: bool = False
    cursor: str | None = Field(default=None, max_length=512)
    limit: int = Field(default=20, ge=1, le=MAX_PAGE)


@router.get("/memory/kems")
async def search(wanted: Annotated[KemPageParams, Query()], desk: Desk) -> KemPage:
    """What is nearest to `q` by meaning and by words, else the newest; `explain` tells what each score is made of."""
    page = await desk.memory_of(wanted.user).search(wanted.query(), wanted.cursor, wanted.limit, explain=wanted.explain)
    return page.model_copy(
        update={"items": tuple(item.model_copy(update={"kem": _told(item.kem)}) for item in page.items)}
    )


@router.get("/memory/kems/{kem_id}")
async def get(kem_id: Annotated[KemId, Path()], desk: Desk, user: User = None) -> Kem:
    """One unit, from the global memory, else from what is at hand."""
    return _told(await desk.memory_of(user).kem(kem_id))


@router.get("/memory/facets")
async def facets(wanted: Annotated[KemSearchParams, Query()], desk: Desk) -> Facets:
    """Values of metadata, content types, counted among the first 200 units of an answer."""
    return await desk.memory_of(wanted.user).facets(wanted.query())


@router.get("/memory/stats")
async def stats(desk: Desk, user: User = None) -> MemoryStats:
    """How much there is to read."""
    return await desk.memory_of(user).stats()


@router.get("/memory/changes", response_class=Response, responses={200: {"content": {"text/event-stream": {}}}})
async def changes(
    desk: Desk, streams: OpenStreams, filter: Annotated[FilterText, Query()] = "", user: User = None
) -> Response:
    """Changes of units as they happen; the filter may name KEM_PUBLISHED, KEM_UPDATED, KEM_EVICTED, KEM_DELETED."""
    return streams.respond(_frames(desk.memory_of(user), parse_filter(filter)))


async def _frames(memory: SharedMemory, wanted: Filter) -> AsyncGenerator[bytes]:
    async with aclosing(memory.follow(wanted)) as happening:
        yield format_sse_event(comment="from here on", retry=_RETRY_MS)
        async for change in happening:
            told = change if change.kem is None else change.model_copy(update={"kem": _told(change.kem)})
            yield format_sse_event(event=change.event, data_str=told.model_dump_json())


def _told(kem: Kem) -> Kem:
    """Without its vector, which is long, and for memory itself."""
    return kem.model_copy(update={"embeddings": None})
