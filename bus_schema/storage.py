"""Commands and events of storage: artifacts."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from bus_schema.artifacts import ArtifactId, ArtifactRef, ArtifactType, Manifest, Retention, StepId, TraceId, Visibility
from bus_schema.identities import Identity
from bus_schema.messages import Command, Event, Nothing, Page, Query, Value
from bus_schema.replies import Code
from bus_schema.uploads import FoundManifest, PackPlace


class Registration(Value):
    """The artifact is registered: its manifest is committed."""

    artifact_id: ArtifactId
    version: int
    sha256: str
    outcome: Literal["registered", "already_exists"]


class RegisterArtifact(Command[Registration], domain="storage", action="register_artifact"):
    """Register a staged file; a known id is `already_exists` with the same checksum, `conflict` with other bytes."""

    manifest: Manifest


class RegistrationItem(Value):
    """Result of one artifact of a batch; `failed` may be tried again, `refused` is final."""

    artifact_id: ArtifactId
    status: Literal["registered", "already_exists", "refused", "failed"]
    version: int | None = None
    sha256: str | None = None
    code: Code | None = None
    error: str | None = None
    details: dict[str, Any] = Field(default={})


class RegistrationReport(Value):
    """One item per manifest, in the order they were sent."""

    items: tuple[RegistrationItem, ...]


MAX_REGISTERED = 100


class RegisterArtifacts(Command[RegistrationReport], domain="storage", action="register_artifacts"):
    """Register staged files independently of one another, as `register_artifact` does, in one transaction.

    An artifact that supersedes another or is made from it comes in a later message than that one.
    """

    manifests: tuple[Manifest, ...] = Field(min_length=1, max_length=MAX_REGISTERED)

    @model_validator(mode="after")
    def _names_each_once(self) -> Self:
        if len({manifest.id for manifest in self.manifests}) < len(self.manifests):
            raise ValueError("an artifact is registered once in a message")
        return self


class GetArtifact(Query[FoundManifest], domain="storage", action="get_artifact"):
    """Read one manifest, if the requester may see it; a denied one looks like `not_found`.

    `presigned` also asks for an address to read the bytes from, for clients without access to the file store.
    """

    artifact_id: ArtifactId
    presigned: bool = False


class FoundManifests(Value):
    """The requested manifests that the requester may see, in the order of the request.

    `packed` has the places, by artifact, of those whose bytes are in a pack.
    """

    items: tuple[Manifest, ...]
    packed: Mapping[ArtifactId, PackPlace] | None = Field(default=None, exclude_if=lambda packed: not packed)


class GetArtifacts(Query[FoundManifests], domain="storage", action="get_artifacts"):
    """Read several manifests at once; absent or denied ones are left out."""

    artifact_ids: tuple[ArtifactId, ...] = Field(min_length=1, max_length=100)


class ManifestPage(Page[Manifest]):
    """Manifests in order of commit, with the cursor of the next page."""


class SearchArtifacts(Query[ManifestPage], domain="storage", action="search_artifacts"):
    """Find manifests by their coordinates, combined with AND; `agent` matches every instance of an agent.

    Model calls are found only if their type, `model_call`, is asked for.
    """

    trace_id: TraceId | None = None
    agent: Identity | None = None
    step_id: StepId | None = None
    artifact_type: ArtifactType | None = None
    created_after: AwareDatetime | None = None
    created_before: AwareDatetime | None = None
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=50, ge=1, le=200)


class Versions(Value):
    """The versions of an artifact, oldest first."""

    items: tuple[Manifest, ...]


class GetVersions(Query[Versions], domain="storage", action="get_versions"):
    """List the whole chain of `supersedes` that an artifact belongs to, as far as the requester may see it."""

    artifact_id: ArtifactId


class LineageEdge(Value):
    """`source` was an input of `target`."""

    source: ArtifactId
    target: ArtifactId


class Lineage(Value):
    """The requested part of the provenance graph."""

    nodes: tuple[Manifest, ...]
    edges: tuple[LineageEdge, ...]


class GetLineage(Query[Lineage], domain="storage", action="get_lineage"):
    """Follow `input_artifacts` from an artifact: `up` to its inputs, `down` to what was made from it."""

    artifact_id: ArtifactId
    direction: Literal["up", "down", "both"] = "up"
    depth: int = Field(default=10, ge=1, le=100)


class SetTraceMembers(Command[Nothing], domain="storage", action="set_trace_members"):
    """Set the members of a trace; from then on only they may read its `trace` artifacts.

    The trace runs until its process ends, and nothing in it expires before that; `retention` counts from then.
    """

    trace_id: TraceId
    members: tuple[Identity, ...] = Field(min_length=1, max_length=200)
    retention: Retention | None = None


class ArtifactRegistered(Event, topic="artifact", name="registered"):
    """An artifact was registered: its manifest is committed."""

    artifact: ArtifactRef
    trace_id: TraceId
    step_id: StepId | None = None
    artifact_type: ArtifactType
    created_by: Identity
    owner: Identity
    visibility: Visibility
    retention: Retention
    supersedes: ArtifactId | None = None
