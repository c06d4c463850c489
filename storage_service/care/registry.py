"""What the care of the store reads and writes: each method that writes is one transaction, one effect."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bus_schema.messages import Event
from bus_schema.storage_maintenance import ExpiryReason, OrphanReason
from storage_service.care.keys import Content


@dataclass(frozen=True, slots=True)
class Due:
    """An artifact whose time is over."""

    artifact_id: str
    position: int
    size_bytes: int
    reason: ExpiryReason


@dataclass(frozen=True, slots=True)
class Unused:
    """A content that no artifact has any more."""

    content: Content
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Removal:
    """A file on its way to the orphans, or without a target for good; what was begun is ended, even if interrupted."""

    key: str
    target: str
    reason: OrphanReason
    size_bytes: int
    content: Content | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """An event that has its cause already, still to be told."""

    seq: int
    event: Event
    trace_id: str | None = None
    step_id: str | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """An artifact whose bytes must be there."""

    artifact_id: str
    position: int
    content: Content
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Holdings:
    """How many artifacts and contents the database knows."""

    artifacts: int
    contents: int


class CareRegistry(Protocol):
    """Decides in the database before anything happens to a file."""

    async def holdings(self) -> Holdings:
        """What there is."""

    async def kept(self, after: int, limit: int) -> Sequence[Kept]:
        """Artifacts that have not expired, in order of commit."""

    async def due(self, after: int, limit: int) -> Sequence[Due]:
        """Artifacts that are to expire, in order of commit, those of processes that still run left out."""

    async def expire(self, due: Due) -> bool:
        """Nobody can read it any more, which is to be told; False where it is not due any more."""

    async def unused(self, before: datetime, after: str, limit: int) -> Sequence[Unused]:
        """Contents by digest that no artifact has, or none but what is due, with no pin since then."""

    async def condemn(self, removal: Removal, before: datetime) -> bool:
        """Nobody gets this generation any more, its bytes are to be removed; False where somebody has it again."""

    async def strays(self, contents: Collection[Content]) -> Mapping[Content, OrphanReason]:
        """Those of the objects found that no artifact has nor can get, with the reason."""

    async def outlaw(self, removal: Removal) -> bool:
        """See to it that a stray is never used, then have it removed; False where it has come into use."""

    async def unspent(self, uploads: Collection[str]) -> Collection[str]:
        """Those of the uploads that no artifact was made from."""

    async def give_up(self, removal: Removal) -> bool:
        """An upload is to be removed; False where an artifact has been made from it meanwhile."""

    async def removals(self, limit: int) -> Sequence[Removal]:
        """What is decided to be removed, oldest first."""

    async def finish(self, removal: Removal, *, is_there: bool) -> None:
        """It is gone from its place; if it is among the orphans now, that is to be told."""

    async def unknown_artifacts(self, artifact_ids: Collection[str]) -> Collection[str]:
        """Those of the ids that the database does not know."""

    async def notices(self, limit: int) -> Sequence[Notice]:
        """What is to be told, oldest first."""

    async def forget_notices(self, seqs: Collection[int]) -> None:
        """Together with the message at hand: they are told."""

    async def mark(self, name: str) -> tuple[str, datetime] | None:
        """How far a recurring work had come, and when."""

    async def set_mark(self, name: str, value: str) -> None:
        """It has come so far now."""
