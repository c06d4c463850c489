"""Artifacts over HTTP: search, manifests, lineage, previews, content in byte ranges."""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Form, Header, Query, Request, UploadFile
from fastapi.responses import Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from bus_schema.artifacts import AIContext, ArtifactId, ArtifactType, Manifest, StepId, TraceId, Visibility
from bus_schema.identities import Identity
from bus_schema.ids import derived
from bus_schema.replies import Code
from bus_schema.storage import GetArtifact, GetLineage, GetVersions, Lineage, ManifestPage, SearchArtifacts, Versions
from bus_schema.uploads import FoundManifest
from gateway.backend import Backend, BackendDependency, IdempotencyKey
from gateway.event_streams import ChunkedResponse
from gateway.problems import problem_response
from mindbus.errors import Rejected
from mindbus.files.keys import content_type_of, file_name
from mindbus.sdk.errors import StorageAway
from mindbus.sdk.preview import MOST_BYTES, Preview, preview
from mindbus.sdk.transfers import PutOptions, ReadOptions, guess_content_type

_RANGE = re.compile(r"bytes=(?P<first>[0-9]{0,18})-(?P<last>[0-9]{0,18})", re.IGNORECASE)


class UnsatisfiableRange(Rejected):
    """There are no such bytes."""


@dataclass(frozen=True)
class RequestedRange:
    """Bytes `first` to `last`, both included."""

    first: int
    last: int

    @property
    def length(self) -> int:
        return self.last - self.first + 1


def parse_range(header: str | None, size_bytes: int) -> RequestedRange | None:
    """The requested range; None stands for the whole body, as for a header that a server may ignore.

    Raises UnsatisfiableRange.
    """
    match = _RANGE.fullmatch(header.strip()) if header else None
    if match is None or not (match["first"] or match["last"]):
        return None
    if not match["first"]:
        length = min(int(match["last"]), size_bytes)
        if not length:
            raise UnsatisfiableRange
        return RequestedRange(size_bytes - length, size_bytes - 1)
    first = int(match["first"])
    last = min(int(match["last"]), size_bytes - 1) if match["last"] else size_bytes - 1
    if match["last"] and int(match["last"]) < first:
        return None
    if first >= size_bytes:
        raise UnsatisfiableRange
    return RequestedRange(first, last)


router = APIRouter(tags=["artifacts"])

_ANY_BYTES = "application/octet-stream"
_SAFE = {"Content-Security-Policy": "default-src 'none'; sandbox", "Cache-Control": "private, no-cache"}
WithinTrace = Annotated[TraceId | None, Query()]


class ArtifactSearch(BaseModel):
    """Search conditions; all that you give must hold."""

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
    """Headers of a conditional or partial request (RFC 9110 §13-14)."""

    range: str | None = None
    if_range: str | None = None
    if_none_match: str | None = None


@dataclass(frozen=True)
class ArtifactForm:
    """Fields of an artifact besides its file."""

    type: Annotated[ArtifactType, Form(examples=["note"])]
    trace: Annotated[TraceId, Form(description="Trace that the artifact belongs to.", examples=["conv_anna"])]
    visibility: Annotated[Visibility, Form()] = "trace"
    supersedes: Annotated[ArtifactId | None, Form(description="The version before this one.")] = None
    made_from: Annotated[list[ArtifactId] | None, Form(max_length=100)] = None


@router.get("/artifacts")
async def artifacts(search: Annotated[ArtifactSearch, Query()], backend: BackendDependency) -> ManifestPage:
    """Manifests in order of registration."""
    fields = search.model_dump(exclude={"trace", "step", "type"})
    query = SearchArtifacts(trace_id=search.trace, step_id=search.step, artifact_type=search.type, **fields)
    return await backend.bus.request(query, trace=search.trace)


@router.post("/artifacts", status_code=201)
async def put(
    file: UploadFile,
    about: Annotated[ArtifactForm, Depends()],
    backend: BackendDependency,
    key: IdempotencyKey = None,
) -> Manifest:
    """Register a file as an artifact; send one too large for a request to an address from `request_upload`."""
    options: PutOptions = {
        "artifact_type": about.type,
        "trace": about.trace,
        "content_type": _content_type_of(file),
        "visibility": about.visibility,
        "context": AIContext(input_artifacts=tuple(about.made_from)) if about.made_from else None,
    }
    if about.supersedes is not None:
        options["supersedes"] = (await backend.artifacts.manifest(about.supersedes, trace=about.trace)).ref
    if key is not None:
        options["artifact_id"] = f"art_{derived(backend.bus.owner, 'artifact', key).replace('-', '')}"
    async with backend.own_artifacts() as artifacts:
        made = await artifacts.put(file.file, **options)
    if made.is_pending:
        raise StorageAway
    return await backend.artifacts.manifest(made.manifest.id, trace=about.trace)


@router.get("/artifacts/{artifact_id}")
async def manifest(
    artifact_id: ArtifactId, backend: BackendDependency, trace: WithinTrace = None, presigned: bool = False
) -> FoundManifest:
    """An artifact's manifest; `presigned` adds an address to read the bytes from without a token."""
    found = await backend.bus.request(GetArtifact(artifact_id=artifact_id, presigned=presigned), trace=trace)
    return found.model_copy(update={"packed": None})


@router.get("/artifacts/{artifact_id}/versions")
async def versions(artifact_id: ArtifactId, backend: BackendDependency, trace: WithinTrace = None) -> Versions:
    """All versions of an artifact, oldest first."""
    return await backend.bus.request(GetVersions(artifact_id=artifact_id), trace=trace)


@router.get("/artifacts/{artifact_id}/lineage")
async def lineage(
    artifact_id: ArtifactId,
    backend: BackendDependency,
    direction: Literal["up", "down", "both"] = "up",
    depth: Annotated[int, Query(ge=1, le=100)] = 10,
    trace: WithinTrace = None,
) -> Lineage:
    """Artifacts that this one was made from (up), or that were made from it (down)."""
    query = GetLineage(artifact_id=artifact_id, direction=direction, depth=depth)
    return await backend.bus.request(query, trace=trace)


@router.get("/artifacts/{artifact_id}/preview")
async def look(
    artifact_id: ArtifactId,
    backend: BackendDependency,
    lines: Annotated[int, Query(ge=1, le=1000)] = 40,
    trace: WithinTrace = None,
) -> Preview:
    """The content as text, formatted JSON or a hex dump; if it is long, only its beginning."""
    return await artifact_preview(backend, artifact_id, lines, trace)


@router.head("/artifacts/{artifact_id}/content", include_in_schema=False)
@router.get("/artifacts/{artifact_id}/content", response_class=Response)
async def content(
    artifact_id: ArtifactId,
    request: Request,
    wanted_range: Annotated[RangeHeaders, Header()],
    backend: BackendDependency,
    trace: WithinTrace = None,
) -> Response:
    """Download the bytes: all of them, checked against their digest, or one range, which has no digest."""
    stored = await backend.artifacts.manifest(artifact_id, trace=trace)
    tag = f'"{stored.sha256}"'
    headers = _headers(stored, tag)
    if wanted_range.if_none_match is not None and tag in wanted_range.if_none_match:
        return Response(status_code=304, headers=headers)
    try:
        part = parse_range(wanted_range.range if wanted_range.if_range in (None, tag) else None, stored.size_bytes)
    except UnsatisfiableRange as error:
        return problem_response(Code.INVALID, str(error), 416, {"Content-Range": f"bytes */{stored.size_bytes}"})
    headers["Content-Length"] = str(part.length if part else stored.size_bytes)
    if part is not None:
        headers["Content-Range"] = f"bytes {part.first}-{part.last}/{stored.size_bytes}"
    status = 206 if part else 200
    if request.method == "HEAD":
        return Response(None, status, headers)
    chunks = _chunks(backend, artifact_id, trace, part)
    # An error before the first chunk sets the status; a later one cuts the body short.
    first = await anext(chunks, b"")
    return ChunkedResponse(_chain(first, chunks), status, headers)


async def artifact_preview(backend: Backend, artifact_id: str, lines: int, trace: str | None) -> Preview:
    """Preview of the first `lines` lines. Raises ArtifactNotFound, ArtifactUnreadable, StorageAway."""
    async with backend.artifacts.open(artifact_id, trace=trace, length=MOST_BYTES) as reader:
        return preview(reader.manifest, b"".join([chunk async for chunk in reader]), lines)


def _content_type_of(file: UploadFile) -> str:
    said = file.content_type or _ANY_BYTES
    return guess_content_type(Path(file.filename or "")) if said == _ANY_BYTES else said


def _headers(stored: Manifest, tag: str) -> dict[str, str]:
    name = file_name(stored.id, stored.content_type)
    return _SAFE | {
        "ETag": tag,
        "Accept-Ranges": "bytes",
        "Content-Type": content_type_of(stored.content_type),
        "Content-Disposition": f'attachment; filename="{name}"',
    }


async def _chunks(
    backend: Backend, artifact_id: str, trace: str | None, part: RequestedRange | None
) -> AsyncGenerator[bytes]:
    options: ReadOptions = {"trace": trace}
    if part is not None:
        options |= {"start": part.first, "length": part.length}
    async with backend.artifacts.open(artifact_id, **options) as reader:
        async for chunk in reader:
            yield chunk


async def _chain(first: bytes, remaining: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    async with aclosing(remaining):
        yield first
        async for chunk in remaining:
            yield chunk
