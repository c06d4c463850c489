"""Errors of the SDK: artifacts, the local buffer, shared memory."""

from bus_schema.artifacts import ArtifactRef
from bus_schema.replies import Code
from mindbus.errors import Ending, MindBusError, Rejected, ReplyError, TemporaryFailure


class StorageAway(TemporaryFailure):
    """Storage is not answering right now; what was put waits in the local buffer, and a query can be repeated."""


class StorageFailed(StorageAway):
    """Storage answers, but failed on this artifact, which is tried again; see storage's log."""


class StagedCopyLost(MindBusError):
    """The staged copy is missing or incomplete; it is staged again from the buffer."""


class OutOfTime(MindBusError, code=Code.UNAVAILABLE):
    """The time of this attempt is over before anything was made; another attempt may be quicker."""

    ending = Ending.REFUSE


class BufferFull(TemporaryFailure):
    """The local buffer is full because storage has long been away; bring it back, or raise the limits."""


class BufferClosed(RuntimeError):
    """The artifacts are not open; use `async with` or call `start` first."""


class ArtifactError(Rejected):
    """An artifact cannot be put or read."""

    def __init__(self, message: str | None = None, code: Code | None = None) -> None:
        super().__init__(code, message)


class ArtifactRejected(ArtifactError):
    """Storage does not accept this artifact, however often it is sent."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(f"{code.value}: {reason}", code)


class ArtifactConflict(ArtifactRejected):
    """An artifact with this id exists with other bytes; use that one, or mint a new id.

    `existing` is that artifact if it has the same owner, otherwise None.
    """

    def __init__(self, reason: str, existing: ArtifactRef | None = None) -> None:
        super().__init__(Code.CONFLICT, reason)
        self.existing = existing


class ArtifactNotFound(ArtifactError, code=Code.NOT_FOUND):
    """There is no such artifact, or it is not yours to read."""


class ArtifactUnreadable(ArtifactError, code=Code.FILE_NOT_FOUND):
    """An artifact is known, but its bytes cannot be read."""


class BytesMissing(ArtifactUnreadable):
    """The file store has no bytes under this artifact's key; restore them from a backup."""


class ArtifactCorrupt(ArtifactUnreadable):
    """The bytes in the file store are not those that the manifest describes; restore them from a backup."""


class InvalidArtifactKey(ArtifactUnreadable):
    """The manifest's address is not a key of this file store; give both sides the same MINDBUS_ARTIFACTS_URL."""


class PresigningUnavailable(ArtifactUnreadable):
    """Storage keeps files in a folder that no gateway serves; start one or set MINDBUS_ARTIFACTS_ACCESS=direct here."""


class ArtifactTooLong(ArtifactUnreadable, code=Code.TOO_LARGE):
    """The artifact is larger than the caller accepts in one piece; use `open` or `save`."""


class NoSuchRange(ArtifactError, ValueError):
    """A range must begin within the artifact, and its length must not be negative; the manifest has the size."""


class NoTextMode(TypeError):
    """An artifact is bytes: open the file in binary mode, encode the text."""


class MemoryAway(ReplyError):
    """Memory is not answering right now; continue without it, and ask again later."""

    def __init__(self, reason: str) -> None:
        super().__init__(Code.UNAVAILABLE, reason)


class MemoryFailed(MemoryAway):
    """Memory could not do it right now, even after all retries."""


class MemorySilent(MemoryFailed):
    """No reply was received; the request may still be carried out."""


class CircuitOpen(MemoryAway):
    """The service has failed so often that nothing is asked of it for a while."""

    def __init__(self) -> None:
        super().__init__(str(self.__doc__))


class LockLost(MindBusError):
    """The lease ended before the work was done; nothing more may be written under this lock."""


class RankedQueryUnsupported(ValueError):
    """Only global memory ranks by nearness of meaning or words: use `retrieve_kems`."""


class NotOpen(RuntimeError):
    """The SDK is not on the bus; use `async with`, or give it a bus."""


class MalformedKem(Rejected, code=Code.INVALID):
    """A unit is a KemDraft, or a dict with its fields, of which `content` or `ref` is needed."""

    def __init__(self, about: str) -> None:
        super().__init__(message=f"{about}: {type(self).__doc__}")
