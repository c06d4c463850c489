"""Artifacts, over HTTP."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from bus_schema.artifacts import ArtifactId, ArtifactType, Manifest, StepId, TraceId
from bus_schema.identities import Identity
from bus_schema.replies import Code
from bus_schema.storage import Lineage, ManifestPage, SearchArtifacts, Versions
from gateway.api.dependencies import Desk
from gateway.backend import Backend
from gateway.byte_ranges import ByteRange, UnsatisfiableRange, parse_range
from gateway.event_streams import ChunkedResponse
from gateway.problems import problem_response
from mindbus.sdk.artifacts import ReadOptions
from mindbus.sdk.preview import Preview
from storage_service.presigner import content_type_of, file_name

router = APIRouter(tags=["artifacts"])

_SAFE = {"Content-Security-Policy": "default-src 'none'; sandbox", "Cache-Control": "private, no-cache"}
WithinTrace = Annotated[TraceId | None, Query()]


class ArtifactSearch(BaseModel):
    """Which artifacts; all given conditions are ANDed."""

    model_config = ConfigDict(extra="forbid")
    trace: TraceId | None = None
    agent: Identity | None = None
    step: StepId | None = None
    type: ArtifactType | None = None
    created_after: AwareDatetime | None = None
    created_before: AwareDatetime | None = None
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=50, ge=1, le=200)


class RangeHeaders(BaseModel):
    """Which bytes, unless the client has them already."""

    range: str | None = None
    if_range: str | None = None
    if_none_match: str | None = None


@router.get("/artifacts")
async def artifacts(search: Annotated[ArtifactSearch, Query()], desk: Desk) -> ManifestPage:
    """Manifests in the order in which they were registered."""
    wanted = search.model_dump(exclude={"trace", "step", "type"})
    return await desk.artifacts(
        SearchArtifacts(trace_id=search.trace, step_id=search.step, artifact_type=search.type, **wanted)
    )


@router.get("/artifacts/{artifact_id}")
async def manifest(artifact_id: ArtifactId, desk: Desk, trace: WithinTrace = None) -> Manifest:
    """One manifest."""
    return await desk.artifact(artifact_id, trace)


@router.get("/artifacts/{artifact_id}/versions")
async def versions(artifact_id: ArtifactId, desk: Desk, trace: WithinTrace = None) -> Versions:
    """All versions of it, oldest first."""
    return await desk.versions(artifact_id, trace)


@router.get("/artifacts/{artifact_id}/lineage")
async def lineage(
    artifact_id: ArtifactId,
    desk: Desk,
    direction: Literal["up", "down", "both"] = "up",
    depth: Annotated[int, Query(ge=1, le=100)] = 10,
    trace: WithinTrace = None,
) -> Lineage:
    """What it was made from, what was made from it."""
    return await desk.lineage(artifact_id, direction, depth, trace)


@router.get("/artifacts/{artifact_id}/preview")
async def look(
    artifact_id: ArtifactId, desk: Desk, lines: Annotated[int, Query(ge=1, le=1000)] = 40, trace: WithinTrace = None
) -> Preview:
    """What it looks like: text, laid-out JSON, a dump of anything else; of a long one the beginning."""
    return await desk.preview(artifact_id, lines, trace)


@router.head("/artifacts/{artifact_id}/content", include_in_schema=False)
@router.get("/artifacts/{artifact_id}/content", response_class=Response)
async def content(
    artifact_id: ArtifactId,
    request: Request,
    asked: Annotated[RangeHeaders, Header()],
    desk: Desk,
    trace: WithinTrace = None,
) -> Response:
    """Its bytes, to be saved: all of them digest-checked, or one range of them, which has no digest."""
    found = await desk.artifact(artifact_id, trace)
    tag = f'"{found.sha256}"'
    headers = _headers(found, tag)
    if asked.if_none_match is not None and tag in asked.if_none_match:
        return Response(status_code=304, headers=headers)
    try:
        part = parse_range(asked.range if asked.if_range in (None, tag) else None, found.size_bytes)
    except UnsatisfiableRange as no:
        return problem_response(Code.INVALID, str(no), 416, {"Content-Range": f"bytes */{found.size_bytes}"})
    headers["Content-Length"] = str(part.length if part else found.size_bytes)
    if part is not None:
        headers["Content-Range"] = f"bytes {part.first}-{part.last}/{found.size_bytes}"
    status = 206 if part else 200
    if request.method == "HEAD":
        return Response(None, status, headers)
    pieces = _pieces(desk, artifact_id, trace, part)
    # What goes wrong at once is told by the status; what goes wrong later cuts the body short.
    first = await anext(pieces, b"")
    return ChunkedResponse(_all(first, pieces), status, headers)


def _headers(found: Manifest, tag: str) -> dict[str, str]:
    name = file_name(found.id, found.content_type)
    return _SAFE | {
        "ETag": tag,
        "Accept-Ranges": "bytes",
        "Content-Type": content_type_of(found.content_type),
        "Content-Disposition": f'attachment; filename="{name}"',
    }


async def _pieces(desk: Backend, artifact_id: str, trace: str | None, part: ByteRange | None) -> AsyncGenerator[bytes]:
    wanted: ReadOptions = {"trace": trace}
    if part is not None:
        wanted |= {"start": part.first, "length": part.length}
    async with desk.open_artifact(artifact_id, **wanted) as reader:
        async for piece in reader:
            yield piece


async def _all(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    async with aclosing(rest):
        yield first
        async for piece in rest:
            yield piece
