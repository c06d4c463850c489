"""Copies of manifests beside the bytes: what a lost database is rebuilt from."""

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from bus_schema.artifacts import ArtifactId, Manifest
from bus_schema.identities import Identity


class NotACopy(ValueError):
    """This is no copy of a manifest, or one of a newer MindBus; look at it by hand."""


class ManifestCopy(BaseModel):
    """A manifest as it is told, with what only the database knows of it; `members` are those of its trace."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    manifest: Manifest
    logical_id: ArtifactId
    generation: int
    committed_at: AwareDatetime
    expired_at: AwareDatetime | None = None
    members: tuple[Identity, ...] = ()

    def to_bytes(self) -> bytes:
        """As it lies in the store."""
        return self.model_dump_json(exclude_none=True).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> "ManifestCopy":
        """Raises NotACopy."""
        try:
            return cls.model_validate_json(content)
        except ValidationError as wrong:
            raise NotACopy(f"{NotACopy.__doc__} {wrong.errors()[0]['msg']}") from wrong
