"""Memory over HTTP: units of shared memory, their facets and changes; what people have said, and the facts in it."""

from collections import Counter
from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response
from fastapi.sse import format_sse_event
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from bus_schema.artifacts import ContentType
from bus_schema.dialogue import DialogueMessageId, MessageText
from bus_schema.episodes import Speaker
from bus_schema.facts import MAX_ABOUT_CHARS
from bus_schema.glm import MAX_PAGE, DeleteKem, FoundKem, KemChanges, KemPage, MemoryStats, StoreKem, UpdateKem
from bus_schema.identities import KemId, UserId
from bus_schema.kem import Content, Kem, KemDraft, KemVisibility, Metadata, People, Superseded
from bus_schema.kem_match import facets as facets_in
from bus_schema.kem_query import KemQuery, OrderBy
from bus_schema.lsm import MAX_RECORDED, Moment
from gateway.backend import BackendDependency
from gateway.event_streams import STREAM_RESPONSES, StreamsDependency, event_frames
from gateway.shared_memory import KemChange
from mindbus.sdk.kem_filters import parse_filter, query_from
from mindbus.sdk.memory import AddedMemory, FoundMemory, Memory

router = APIRouter(tags=["memory"])

_MAX_VALUES = 50
User = Annotated[UserId | None, Query()]
FilterText = Annotated[str, Field(max_length=1000, description="`metadata.KEY=VALUE`, joined by AND, OR, ( ).")]


class FacetValue(BaseModel):
    """A value with the number of units that have it."""

    model_config = ConfigDict(frozen=True)
    value: str | bool | int | float
    count: int


class Facets(BaseModel):
    """Metadata values and content types, most frequent first, among the first `counted` units of an answer."""

    model_config = ConfigDict(frozen=True)
    counted: int
    is_all: bool
    content_types: list[FacetValue]
    metadata: dict[str, list[FacetValue]]


class NewUnit(BaseModel):
    """A unit to store."""

    model_config = ConfigDict(extra="forbid")
    content: Content
    content_type: ContentType = "text/plain"
    metadata: Metadata = Field(default={})
    visibility: KemVisibility = "private"
    readers: People = ()
    valid_from: AwareDatetime | None = None
    valid_to: AwareDatetime | None = None
    expires_at: AwareDatetime | None = None
    supersedes: Superseded = ()


class RememberedMessage(BaseModel):
    """Something that was said; its time defaults to now."""

    model_config = ConfigDict(extra="forbid")
    role: Speaker
    content: MessageText
    time: Moment | None = None
    id: DialogueMessageId | None = None


class RememberRequest(BaseModel):
    """A conversation to remember; sent again with the same ids, or the same times and words, it changes nothing."""

    model_config = ConfigDict(extra="forbid")
    user: UserId
    messages: list[RememberedMessage] = Field(min_length=1, max_length=MAX_RECORDED)


class MemoryQuestion(BaseModel):
    """A question about what a person has said; `words` is the total length of the passages."""

    model_config = ConfigDict(extra="forbid")
    user: UserId
    query: str = Field(min_length=1, max_length=MAX_ABOUT_CHARS)
    limit: int = Field(default=5, ge=1, le=50)
    words: int = Field(default=600, ge=50, le=4000)
    newest_first: bool = False


class KemSearchParams(BaseModel):
    """Search conditions; all that you give must hold."""

    model_config = ConfigDict(extra="forbid")
    user: UserId | None = Field(default=None, description="User whose access rights apply; default: yourself.")
    q: str | None = Field(default=None, min_length=1, max_length=2000, description="Text to search for.")
    filter: FilterText = ""
    order: OrderBy | None = None
    as_of: AwareDatetime | None = Field(default=None, description="Time at which units must be valid.")
    known_at: AwareDatetime | None = Field(
        default=None, description="Time by which it must have been learnt that units are valid; also sets `as_of`."
    )

    def query(self) -> KemQuery:
        """Raises MalformedFilter, UnsupportedQuery."""
        fields = {"text_query": self.q, "order_by": self.order, "as_of": self.as_of, "known_at": self.known_at}
        return query_from(self.filter, **fields)


class KemPageParams(KemSearchParams):
    explain: bool = False
    cursor: str | None = Field(default=None, max_length=512)
    limit: int = Field(default=20, ge=1, le=MAX_PAGE)


@router.post("/memory/messages")
async def add_messages(request: RememberRequest, backend: BackendDependency) -> AddedMemory:
    """Remember a conversation held elsewhere: an episode, and the facts in it. No tasks are made from it."""
    said = [message.model_dump(exclude_none=True) for message in request.messages]
    return await Memory(backend.acting_as(request.user)).add(said, user=request.user)


@router.post("/memory/search")
async def find(wanted: MemoryQuestion, backend: BackendDependency) -> FoundMemory:
    """Facts and passages of conversations that bear on a question."""
    memory = Memory(backend.acting_as(wanted.user))
    fields = wanted.model_dump(include={"user", "limit", "words", "newest_first"})
    return await memory.search(wanted.query, **fields)


@router.get("/memory/kems")
async def search(params: Annotated[KemPageParams, Query()], backend: BackendDependency) -> KemPage:
    """Units most similar to `q`, or without it the newest; `explain` adds what each score is the sum of."""
    memory = backend.memory(params.user)
    page = await memory.search(params.query(), params.cursor, params.limit, explain=params.explain)
    items = tuple(item.model_copy(update={"kem": _without_vector(item.kem)}) for item in page.items)
    return page.model_copy(update={"items": items})


@router.post("/memory/kems", status_code=201)
async def add(unit: NewUnit, response: Response, backend: BackendDependency) -> Kem:
    """Store a unit as the signed-in account; it is private unless its visibility says otherwise."""
    kem = await backend.bus.request(StoreKem(kem=KemDraft(**unit.model_dump())))
    response.headers["Location"] = f"/api/memory/kems/{kem.id}"
    return _without_vector(kem)


@router.patch("/memory/kems/{kem_id}")
async def change(kem_id: Annotated[KemId, Path()], changes: KemChanges, backend: BackendDependency) -> Kem:
    """Change some fields of a unit; those that you leave out stay."""
    return _without_vector(await backend.bus.request(UpdateKem(kem_id=kem_id, changes=changes)))


@router.delete("/memory/kems/{kem_id}", status_code=204)
async def delete(kem_id: Annotated[KemId, Path()], backend: BackendDependency) -> None:
    """Delete a unit for good."""
    await backend.bus.request(DeleteKem(kem_id=kem_id))


@router.get("/memory/kems/{kem_id}")
async def get(kem_id: Annotated[KemId, Path()], backend: BackendDependency, user: User = None) -> Kem:
    """One unit, from global memory, or otherwise from working memory."""
    return _without_vector(await backend.memory(user).kem(kem_id))


@router.get("/memory/facets")
async def facets(params: Annotated[KemSearchParams, Query()], backend: BackendDependency) -> Facets:
    """Metadata values and content types, counted among the first 200 results."""
    page = await backend.memory(params.user).search(params.query(), limit=MAX_PAGE)
    return facets_of(page.items, is_all=page.next_cursor is None)


@router.get("/memory/stats")
async def stats(backend: BackendDependency, user: User = None) -> MemoryStats:
    """Number of units that the user may read."""
    return await backend.memory(user).stats()


@router.get("/memory/changes", response_class=Response, responses=STREAM_RESPONSES)
async def changes(
    backend: BackendDependency,
    streams: StreamsDependency,
    filter: Annotated[FilterText, Query()] = "",
    user: User = None,
) -> Response:
    """Changes to units as they happen; the filter may name KEM_PUBLISHED, KEM_UPDATED, KEM_EVICTED, KEM_DELETED."""
    following = backend.memory(user).follow(parse_filter(filter))
    return streams.respond(event_frames(following, _change_frame), backend.is_current)


def facets_of(results: Iterable[FoundKem], *, is_all: bool) -> Facets:
    kems = [item.kem for item in results]
    values: dict[str, Counter[str | bool | float]] = {}
    for kem in kems:
        # A list may hold a value twice; True is not counted as 1.
        for key, _, value in {(key, type(value), value) for key, value in facets_in(kem.metadata)}:
            values.setdefault(key, Counter())[value] += 1
    return Facets(
        counted=len(kems),
        is_all=is_all,
        content_types=_most_common(Counter(kem.content_type for kem in kems)),
        metadata={key: _most_common(counts) for key, counts in sorted(values.items())},
    )


def _change_frame(change: KemChange) -> bytes:
    shown = change if change.kem is None else change.model_copy(update={"kem": _without_vector(change.kem)})
    return format_sse_event(event=change.event, data_str=shown.model_dump_json())


def _without_vector(kem: Kem) -> Kem:
    return kem.model_copy(update={"embeddings": None})


def _most_common(counts: "Counter[str] | Counter[str | bool | float]") -> list[FacetValue]:
    ordered = sorted(counts.items(), key=lambda facet: (-facet[1], str(facet[0])))
    return [FacetValue(value=value, count=count) for value, count in ordered[:_MAX_VALUES]]
