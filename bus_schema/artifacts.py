"""Artifact references that travel on the bus, and the manifests that storage keeps."""

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from bus_schema.identities import Identity, KemId, owner_of
from bus_schema.messages import StrictValue

ARTIFACT_ID = r"art_[A-Za-z0-9_-]{1,64}"
ArtifactId = Annotated[str, StringConstraints(pattern=rf"^{ARTIFACT_ID}$")]
TraceId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:@-]{0,127}$")]
StepId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Checksum = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
ContentType = Annotated[str, StringConstraints(pattern=r"^[\w.+-]+/[\w.+-]+(?:;\s?[\w-]+=[\w.+-]+)*$", max_length=127)]
ArtifactType = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
Retention = Annotated[str, StringConstraints(pattern=r"^(?:infinite|[1-9][0-9]{0,4}d)$")]
Visibility = Literal["private", "trace", "public"]
_RETENTION: TypeAdapter[str] = TypeAdapter(Retention)
_ARTIFACT_TYPE: TypeAdapter[str] = TypeAdapter(ArtifactType)


class ArtifactRef(BaseModel):
    """A pointer with a digest: the only part of an artifact that travels on the bus."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
    artifact_id: ArtifactId
    version: int = Field(ge=1)
    sha256: Sha256
    size_bytes: int = Field(ge=0)
    content_type: ContentType


class AIContext(StrictValue):
    """Model parameters behind the artifact (spec 003 §10.2): enough to reproduce it and to compute its cost.

    `values` are what conditions of the card ask about the output. Calls, tokens and price cover all model calls for
    it; the price is from the table in `models.yaml`, None if the model is not listed there.
    """

    prompt_version: str | None = Field(default=None, max_length=64)
    model_name: str | None = Field(default=None, max_length=200)
    model_params: dict[str, str | int | float | bool | None] = Field(default={}, max_length=50)
    input_artifacts: tuple[ArtifactId, ...] = Field(default=(), max_length=500)
    input_kems: tuple[KemId, ...] = Field(default=(), max_length=500)
    execution_time_ms: int | None = Field(default=None, ge=0)
    values: dict[str, bool | str | tuple[str, ...]] = Field(default={}, max_length=10)
    model_calls: int | None = Field(default=None, ge=0)
    prompt_tokens: int | None = Field(default=None, ge=0)
    completion_tokens: int | None = Field(default=None, ge=0)
    price: float | None = Field(default=None, ge=0)


class Manifest(StrictValue):
    """Artifact Manifest v0.2 (spec 003 §11), immutable once stored.

    `uri` is the staging address in the register command, the permanent key once stored; `created_by` names the
    instance, `owner` does not.
    """

    id: ArtifactId
    version: int = Field(default=1, ge=1)
    supersedes: ArtifactId | None = None
    trace_id: TraceId
    step_id: StepId | None = None
    created_by: Identity
    created_at: AwareDatetime
    artifact_type: ArtifactType
    content_type: ContentType
    uri: str = Field(min_length=1, max_length=1024)
    size_bytes: int = Field(ge=0)
    checksum: Checksum
    status: Literal["uploading", "completed"] = "uploading"
    retention: Retention = "infinite"
    owner: Identity
    visibility: Visibility = "trace"
    context: AIContext | None = None

    @property
    def sha256(self) -> str:
        """Hex digest without its prefix."""
        return self.checksum.removeprefix("sha256:")

    @property
    def ref(self) -> ArtifactRef:
        """The reference to send on the bus."""
        return ArtifactRef(
            artifact_id=self.id,
            version=self.version,
            sha256=self.sha256,
            size_bytes=self.size_bytes,
            content_type=self.content_type,
        )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.owner != owner_of(self.owner):
            raise ValueError(f"an owner is named without its instance: {owner_of(self.owner)}")
        if (self.version == 1) != (self.supersedes is None):
            raise ValueError("version 1 supersedes nothing; a later version names the one before it")
        return self


def retention_of(retention: str) -> timedelta | None:
    """Parse a retention such as `30d`; None means that the artifact is kept for good."""
    return None if retention == "infinite" else timedelta(days=int(retention.removesuffix("d")))


class NotAPolicy(ValueError):
    """A retention policy is a list of type=days, such as draft=30d,critique=7d."""


def retention_policy(text: str) -> dict[str, timedelta]:
    """Parse the operator's retention policy into a limit per artifact type. Raises NotAPolicy."""
    policy: dict[str, timedelta] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        artifact_type, _, retention = (part.strip() for part in entry.partition("="))
        try:
            kept = retention_of(_RETENTION.validate_python(retention))
            name = _ARTIFACT_TYPE.validate_python(artifact_type)
        except ValidationError:
            raise NotAPolicy(f"{NotAPolicy.__doc__} Got: {entry!r}") from None
        if name in policy:
            raise NotAPolicy(f"{NotAPolicy.__doc__} Got {name} twice")
        if kept is not None:
            policy[name] = kept
    return policy
