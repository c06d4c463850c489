"""Why an artifact could not be put, or not be read."""

from bus_schema.artifacts import ArtifactRef
from bus_schema.replies import Code
from mindbus.errors import MindBusError


class StorageAway(MindBusError):
    """Storage does not answer just now; what was put waits in the local buffer, a question can be asked again."""

    code = Code.UNAVAILABLE


class StorageStumbled(StorageAway):
    """Storage answers, but failed over this very artifact; look into its log, the artifact is tried again."""


class StagedCopyLost(Exception):
    """What was staged is not there, or not whole; it is staged anew from the buffer."""


class ArtifactRefused(MindBusError):
    """Storage will not have this artifact, however often it is sent."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(f"{code.value}: {reason}", code=code)


class ArtifactConflict(ArtifactRefused):
    """An artifact of this id exists with other bytes; use that one, or mint a new id.

    `existing` is that artifact where it is the same owner's, else None.
    """

    def __init__(self, reason: str, existing: ArtifactRef | None = None) -> None:
        super().__init__(Code.CONFLICT, reason)
        self.existing = existing


class BufferFull(MindBusError):
    """The local buffer is full because storage has been away for long; bring storage back, or raise the limits."""

    code = Code.UNAVAILABLE


class BufferClosed(RuntimeError):
    """The artifacts are not open; use `async with` or call `start` first."""


class ArtifactNotFound(MindBusError):
    """There is no such artifact, or it is not yours to read."""

    code = Code.NOT_FOUND


class ArtifactUnreadable(MindBusError):
    """An artifact is known, but its bytes cannot be had."""

    code = Code.FILE_NOT_FOUND


class BytesMissing(ArtifactUnreadable):
    """The file store has no bytes under this artifact's key; restore them from a backup."""


class BytesDiffer(ArtifactUnreadable):
    """The bytes in the file store are not those that the manifest describes; restore them from a backup."""


class NotAPermanentKey(ArtifactUnreadable):
    """The manifest's address is not a key of this file store; give both sides the same MINDBUS_ARTIFACTS_URL."""


class NothingSigned(ArtifactUnreadable):
    """Storage keeps its files in a folder, for which nothing is signed; set MINDBUS_ARTIFACTS_ACCESS=direct here."""


class NoSuchRange(MindBusError, ValueError):
    """A range begins within the artifact, its length is not negative; ask for the manifest to know the size."""

    code = Code.INVALID


class ArtifactTooLong(ArtifactUnreadable):
    """The artifact is larger than the caller takes in one piece; use `open` or `save`."""


class NoTextMode(TypeError):
    """An artifact is bytes: open the file in binary mode, encode the text."""
