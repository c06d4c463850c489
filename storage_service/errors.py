"""Errors of storage that reach the requester."""

from bus_schema.replies import Code
from mindbus.errors import Rejected


class NotTheProducer(Rejected, code=Code.UNAUTHORIZED):
    """An artifact is registered by whoever made it: `created_by` must be the requester, `owner` its owner."""


class NotAStagingAddress(Rejected):
    """`uri` is not where this requester stages: {root}/staging/{yyyy}/{mm}/{dd}/{owner, dots as _}/{32 hex digits}."""


class SecretInParameters(Rejected):
    """`model_params` are kept for ever, readable by others; leave out what looks like a secret."""


class ArtifactTooLarge(Rejected, code=Code.TOO_LARGE):
    """The artifact is larger than storage takes; split it, or have the limit raised."""


class QuotaSpent(Rejected, code=Code.TOO_LARGE):
    """The artifacts would weigh more than the quota: have some removed, or have MINDBUS_QUOTA_BYTES raised."""


class StagedFileMissing(Rejected, code=Code.FILE_NOT_FOUND):
    """There is no file at the staging address; stage it, then register again."""


class NotAPlainFile(Rejected):
    """The staging address holds no regular file but a link, a folder or a pipe; stage a plain copy."""


class ContentMismatch(Rejected, code=Code.CHECKSUM_MISMATCH):
    """The staged bytes are not those that the manifest describes; stage them again, or correct size and checksum."""


class IdTaken(Rejected, code=Code.CONFLICT):
    """An artifact of this id exists with other bytes or another owner, or has expired; mint a new id."""


class Forked(Rejected, code=Code.CONFLICT):
    """Another artifact supersedes this one already; supersede the newest version instead."""


class NotTheNextVersion(Rejected):
    """`version` must be one more than that of the artifact it supersedes."""


class NotYoursToSupersede(Rejected, code=Code.UNAUTHORIZED):
    """Only its owner, or whoever takes part in its trace, may supersede an artifact; register one of your own."""


class NoSuchArtifact(Rejected, code=Code.NOT_FOUND):
    """There is no such artifact, or it is not yours to read."""


class NoSuchInput(Rejected, code=Code.NOT_FOUND):
    """Some of `input_artifacts` do not exist, or are not yours to read; register them first."""


class NotYourTrace(Rejected, code=Code.UNAUTHORIZED):
    """Only who takes part in a run or a dialogue registers artifacts in its trace; name a trace of your own."""


class NotAService(Rejected, code=Code.UNAUTHORIZED):
    """Only a service says who takes part in a trace."""


class LineageTooLarge(Rejected, code=Code.TOO_LARGE):
    """The lineage has more artifacts than one answer holds; ask for less depth, or from a nearer artifact."""


class MessageIdTaken(Rejected, code=Code.CONFLICT):
    """A message of this id exists with another content; messages never change, so mint a new id."""


class NoSuchMessage(Rejected, code=Code.NOT_FOUND):
    """There is no message of this id in the dialogue of this user."""


class NotAnAnswer(Rejected):
    """Only whole answers of the assistant are rated: no messages of the user, no notifications, nothing cut off."""


class NoSuchFragment(Rejected, code=Code.NOT_FOUND):
    """There is no fragment of this id."""


class FragmentMismatch(Rejected, code=Code.CONFLICT):
    """A fragment is made of the next messages in its user's buffer; ask for the active dialogues again."""


class AgentDatumConflict(Rejected, code=Code.CONFLICT):
    """The value has changed since it was read; read it again, then decide anew."""


class NotAnOperator(Rejected, code=Code.UNAUTHORIZED):
    """Only people and services look after the store; ask whoever operates it."""


class TooMuchGarbage(Rejected, code=Code.CONFLICT):
    """This run would take away more than the settings allow at once; if it is right, allow so many by max_objects."""


class DatabaseBehindStore(Rejected, code=Code.CONFLICT):
    """The store remembers artifacts that the database does not; restore a newer backup, or rebuild the manifests."""
