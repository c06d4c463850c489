"""The database as maintenance sees it: every method that writes is one transaction."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from bus_schema.messages import Event
from bus_schema.storage_maintenance import ExpiryReason, OrphanReason
from storage_service.blobs import ContentGeneration
from storage_service.maintenance.manifest_copies import ManifestCopy


@dataclass(frozen=True, slots=True)
class DueArtifact:
    """An artifact whose retention has ended."""

    artifact_id: str
    position: int
    size_bytes: int
    reason: ExpiryReason


@dataclass(frozen=True, slots=True)
class UnusedContent:
    content: ContentGeneration
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Removal:
    """A file to be moved to the orphans, or deleted where `target` is empty; an interrupted removal is resumed."""

    key: str
    target: str
    reason: OrphanReason
    size_bytes: int
    content: ContentGeneration | None = None


@dataclass(frozen=True, slots=True)
class Notification:
    """An event whose cause is committed, still to be published."""

    seq: int
    event: Event
    trace_id: str | None = None
    step_id: str | None = None


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """An artifact that has not expired: its bytes must exist."""

    artifact_id: str
    position: int
    content: ContentGeneration
    size_bytes: int


class MaintenanceRegistry(Protocol):
    """Decides in the database before anything happens to a file."""

    async def artifact_count(self) -> int:
        """Number of artifacts that have not expired."""

    async def stored_artifacts(self, after: int, limit: int) -> Sequence[StoredArtifact]:
        """Artifacts that have not expired, in order of commit."""

    async def due(self, after: int, limit: int) -> Sequence[DueArtifact]:
        """Artifacts that are to expire, in order of commit, without those of running processes."""

    async def expire(self, due: DueArtifact) -> bool:
        """Expire an artifact and note the event; False where it is not due any more."""

    async def unused_contents(self, before: datetime, after: str, limit: int) -> Sequence[UnusedContent]:
        """Contents by digest without artifacts but such as are due, and without a pin since `before`."""

    async def retire(self, removal: Removal, before: datetime) -> bool:
        """Retire this generation and remove its bytes; False where an artifact has it again."""

    async def strays(self, contents: Collection[ContentGeneration]) -> Mapping[ContentGeneration, OrphanReason]:
        """The objects that no artifact has nor can get, with the reason."""

    async def remove_stray(self, removal: Removal) -> bool:
        """Keep a stray from being used and remove it; False where it has come into use."""

    async def unspent(self, uploads: Collection[str]) -> Collection[str]:
        """The uploads that no artifact was made from."""

    async def give_up(self, removal: Removal) -> bool:
        """Remove an upload; False where an artifact has been made from it meanwhile."""

    async def removals(self, limit: int) -> Sequence[Removal]:
        """Decided removals, oldest first."""

    async def finish(self, removal: Removal, *, is_there: bool) -> None:
        """Complete a removal; note the event where the file is among the orphans now."""

    async def unknown_artifacts(self, artifact_ids: Collection[str]) -> Collection[str]:
        """The ids that the database does not know."""

    async def notices(self, limit: int) -> Sequence[Notification]:
        """Events to be published, oldest first."""

    async def delete_notifications(self, seqs: Collection[int]) -> None:
        """Delete published events, within the current transaction."""

    async def mark(self, name: str) -> tuple[str, datetime] | None:
        """Progress of a recurring task, with its time."""

    async def set_progress(self, name: str, value: str) -> None:
        """Store the progress of a recurring task."""


RestoreOutcome = Literal["restored", "present", "no predecessor", "being collected", "another is there"]


class RebuildRegistry(MaintenanceRegistry, Protocol):
    """The registry that a rebuild needs."""

    async def unknown_contents(self, sha256s: Collection[str]) -> Collection[str]:
        """The digests that the database does not know."""

    async def restore(self, copied: ManifestCopy) -> RestoreOutcome:
        """Make it an artifact again, in one transaction; its inputs and predecessor must be restored first."""
