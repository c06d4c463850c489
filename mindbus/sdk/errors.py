"""Errors of the SDK: artifacts, the local buffer, shared memory."""

from bus_schema.artifacts import ArtifactRef
from bus_schema.replies import Code
from mindbus.errors import MindBusError, Rejected, ReplyError, TemporaryFailure


class StorageAway(TemporaryFailure):
    """Storage does not answer just now; what was put waits in the local buffer, a question can be asked again."""


class StorageFailed(StorageAway):
    """Storage answers, but failed over this very artifact; look into its log, the artifact is tried again."""


class StagedCopyLost(MindBusError):
    """The staged copy is missing or incomplete; it is staged again from the buffer."""


class BufferFull(TemporaryFailure):
    """The local buffer is full because storage has been away for long; bring storage back, or raise the limits."""


class BufferClosed(RuntimeError):
    """The artifacts are not open; use `async with` or call `start` first."""


class ArtifactError(Rejected):
    """An artifact cannot be put or read."""

    def __init__(self, message: str | None = None, code: Code | None = None) -> None:
        super().__init__(code, message)


class ArtifactRejected(ArtifactError):
    """Storage will not have this artifact, however often it is sent."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(f"{code.value}: {reason}", code)


class ArtifactConflict(ArtifactRejected):
    """An artifact of this id exists with other bytes; use that one, or mint a new id.

    `existing` is that artifact where it is the same owner's, else None.
    """

    def __init__(self, reason: str, existing: ArtifactRef | None = None) -> None:
        super().__init__(Code.CONFLICT, reason)
        self.existing = existing


class ArtifactNotFound(ArtifactError, code=Code.NOT_FOUND):
    """There is no such artifact, or it is not yours to read."""


class ArtifactUnreadable(ArtifactError, code=Code.FILE_NOT_FOUND):
    """An artifact is known, but its bytes cannot be had."""


class BytesMissing(ArtifactUnreadable):
    """The file store has no bytes under this artifact's key; restore them from a backup."""


class ArtifactCorrupt(ArtifactUnreadable):
    """The bytes in the file store are not those that the manifest describes; restore them from a backup."""


class InvalidArtifactKey(ArtifactUnreadable):
    """The manifest's address is not a key of this file store; give both sides the same MINDBUS_ARTIFACTS_URL."""


class PresigningUnavailable(ArtifactUnreadable):
    """Storage keeps files in a folder that no gateway serves; start it, or set MINDBUS_ARTIFACTS_ACCESS=direct here."""


class ArtifactTooLong(ArtifactUnreadable, code=Code.TOO_LARGE):
    """The artifact is larger than the caller takes in one piece; use `open` or `save`."""


class NoSuchRange(ArtifactError, ValueError):
    """A range begins within the artifact, its length is not negative; ask for the manifest to know the size."""


class NoTextMode(TypeError):
    """An artifact is bytes: open the file in binary mode, encode the text."""


class MemoryAway(ReplyError):
    """Memory does not answer just now; go on without it, ask again later."""

    def __init__(self, reason: str) -> None:
        super().__init__(Code.UNAVAILABLE, reason)


class MemoryFailed(MemoryAway):
    """It was asked as often as it takes, yet cannot do it just now."""


class MemorySilent(MemoryFailed):
    """No reply was received; the request may still be carried out."""


class CircuitOpen(MemoryAway):
    """The service has failed so often that it is not asked for a while."""

    def __init__(self) -> None:
        super().__init__(str(self.__doc__))


class LockLost(MindBusError):
    """The lease has ended before the work was done; nothing more may be written under this lock."""


class RankedQueryUnsupported(ValueError):
    """Nearness of meaning or words is for the global memory: ask `retrieve_kems`."""


class NotOpen(RuntimeError):
    """The SDK is not on the bus; use `async with`, or give it a bus."""
