"""Knowledge exchange media (KEMs): the units of knowledge that agents share (spec 000 §2)."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field, JsonValue, StringConstraints, model_validator
from pydantic_core import PydanticSerializationError, to_json

from bus_schema.artifacts import ArtifactRef, ContentType
from bus_schema.embeddings import Embedding
from bus_schema.identities import Identity, KemId, owner_of
from bus_schema.messages import Event, Link, StrictValue, require_whole

MAX_CONTENT_BYTES = 64 * 1024
MAX_METADATA_BYTES = 16 * 1024
_EXACT = 2**53


def _storable(content: str) -> str:
    require_whole(content)
    size = len(content.encode())
    if size > MAX_CONTENT_BYTES:
        raise ValueError(f"takes {size} bytes, {MAX_CONTENT_BYTES} at most; make it an artifact, then give its ref")
    return content


def _plain(metadata: dict[str, JsonValue]) -> dict[str, JsonValue]:
    try:
        size = len(to_json(metadata, inf_nan_mode="constants"))
    except PydanticSerializationError:
        raise ValueError("contains half of a character; send whole ones") from None
    if size > MAX_METADATA_BYTES:
        raise ValueError(f"takes {size} bytes as JSON, {MAX_METADATA_BYTES} at most; let the content say it")
    for value in metadata.values():
        _require_plain(value)
    return metadata


def _not_a_joint(key: str) -> str:
    if key in ("AND", "OR", "NOT"):
        raise ValueError("AND, OR, NOT join filters; give the key another name")
    return key


def _without_instance(identity: str) -> str:
    if identity != owner_of(identity):
        raise ValueError(f"is named without its instance: {owner_of(identity)}")
    return identity


# Colons part the keys of indexes, the rest has a meaning in filters, as have the words that join them.
MetadataKey = Annotated[
    str, StringConstraints(pattern=r"^[^\s:=()\"'<>!,\x00-\x1f]{1,64}$"), AfterValidator(_not_a_joint)
]
Content = Annotated[str, Field(json_schema_extra={"maxLength": MAX_CONTENT_BYTES}), AfterValidator(_storable)]
Metadata = Annotated[dict[MetadataKey, JsonValue], Field(max_length=64), AfterValidator(_plain)]
Owner = Annotated[Identity, AfterValidator(_without_instance)]
People = Annotated[tuple[Owner, ...], Field(max_length=100)]
Superseded = Annotated[tuple[KemId, ...], Field(max_length=50)]
KemVisibility = Literal["private", "readers", "public"]


class KemSource(StrictValue):
    """Origin of the knowledge: characters `start` to `end` of an artifact, or the messages or facts behind it."""

    artifact: ArtifactRef | None = None
    start: int | None = Field(default=None, ge=0)
    end: int | None = Field(default=None, ge=0)
    links: tuple[Link, ...] = Field(default=(), max_length=50)


class KemRights(StrictValue):
    """Readers and writers: `private` the owner, `readers` also those named, `public` all; writers may also read."""

    visibility: KemVisibility = Field(default="public", description="Audience: the owner, named readers, or all.")
    readers: People = Field(default=(), description="Identities that may read, if the visibility is `readers`.")
    writers: People = Field(default=(), description="Identities that may change the unit, and so also read it.")

    @model_validator(mode="after")
    def _readers_matter(self) -> Self:
        if self.readers and self.visibility != "readers":
            raise ValueError("readers are named where the visibility is readers")
        return self


class KemBody(KemRights):
    """Content and metadata of a unit, as given by whoever stores it; large content is an artifact."""

    content_type: ContentType = Field(default="text/plain", description="Media type of the content.")
    content: Content | None = Field(default=None, description="The knowledge as text, at most 64 KiB; otherwise a ref.")
    ref: ArtifactRef | None = Field(default=None, description="Artifact with content too large for a message.")
    metadata: Metadata = Field(default={}, description="Values for filters: at most 64 keys, 16 KiB as JSON.")
    embeddings: Embedding | None = Field(default=None, description="Vector of the content, if the sender has one.")
    source: KemSource | None = Field(default=None, description="Passage, messages or facts the knowledge comes from.")
    valid_from: AwareDatetime | None = Field(default=None, description="Time from which it holds; unset: always.")
    valid_to: AwareDatetime | None = Field(default=None, description="Time from which it no longer holds, if any.")
    supersedes: Superseded = Field(default=(), description="Older units that no longer hold once this one does.")
    expires_at: AwareDatetime | None = Field(default=None, description="Time at which it is deleted, if any.")

    @model_validator(mode="after")
    def _has_content(self) -> Self:
        if (self.content is None) == (self.ref is None):
            raise ValueError("a unit has either content or a ref to it")
        return self

    @model_validator(mode="after")
    def _holds_for_a_time(self) -> Self:
        if self.valid_from is not None and self.valid_to is not None and self.valid_from >= self.valid_to:
            raise ValueError("valid_to is not later than valid_from")
        return self


class KemDraft(KemBody):
    """A unit to be stored: without an id it gets one, without an owner it belongs to the sender.

    `is_new` means that the sender has just created the id, so there is no unit with it whose rights would have to stay.
    """

    id: KemId | None = Field(default=None, description="Id of the unit to replace; without it, a new id is made.")
    owner: Owner | None = Field(default=None, description="Identity that the unit belongs to; the sender by default.")
    is_new: bool = Field(default=False, description="True if the sender has just created the id.")

    @model_validator(mode="after")
    def _supersedes_others(self) -> Self:
        if self.id is not None and self.id in self.supersedes:
            raise ValueError("a unit does not supersede itself; storing it again replaces it")
        return self


class Kem(KemBody):
    """A stored unit; `version` counts its changes, `superseded_by` is the unit that set its `valid_to`.

    `end_learnt_at` is when `valid_to` was set, if that was after the unit was stored.
    """

    # A newer service may say more of it.
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
    id: KemId
    owner: Owner
    created_at: AwareDatetime
    updated_at: AwareDatetime
    version: int = Field(ge=1)
    superseded_by: KemId | None = None
    end_learnt_at: AwareDatetime | None = None


class KemNotice(Event):
    """Public part of a change event; `metadata` and content are present only for public units.

    A subscriber who may read the unit gets all of it in `kem`.
    """

    kem_id: KemId
    version: int = Field(ge=1)
    updated_at: AwareDatetime
    visibility: KemVisibility
    metadata: Metadata = Field(default={})
    kem: Kem | None = None

    @classmethod
    def of(cls, kem: Kem) -> Self:
        """Public event of a unit: with its metadata only if the unit is public."""
        return cls(
            kem_id=kem.id,
            version=kem.version,
            updated_at=kem.updated_at,
            visibility=kem.visibility,
            metadata=kem.metadata if kem.visibility == "public" else {},
        )


def _require_plain(value: JsonValue) -> None:
    """Reject metadata that some JSON readers or databases would alter."""
    if isinstance(value, str):
        require_whole(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            require_whole(key)
            _require_plain(inner)
    elif isinstance(value, list):
        for inner in value:
            _require_plain(inner)
    # Also false of NaN.
    elif value is not None and not -_EXACT <= value <= _EXACT:
        raise ValueError("contains a number that is none in JSON, or one beyond 2^53; write it as text")
