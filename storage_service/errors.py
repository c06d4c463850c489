"""Errors of storage that reach the requester."""

from bus_schema.replies import Code
from mindbus.errors import Rejected


class NotTheProducer(Rejected):
    """An artifact is registered by whoever made it: `created_by` must be the requester, `owner` its owner."""

    code = Code.UNAUTHORIZED


class NotAStagingAddress(Rejected):
    """`uri` is not where this requester stages: {root}/staging/{yyyy}/{mm}/{dd}/{owner, dots as _}/{32 hex digits}."""


class SecretInParameters(Rejected):
    """`model_params` are kept for ever, readable by others; leave out what looks like a secret."""


class ArtifactTooLarge(Rejected):
    """The artifact is larger than storage takes; split it, or have the limit raised."""

    code = Code.TOO_LARGE


class StagedFileMissing(Rejected):
    """There is no file at the staging address; stage it, then register again."""

    code = Code.FILE_NOT_FOUND


class NotAPlainFile(Rejected):
    """The staging address holds no regular file but a link, a folder or a pipe; stage a plain copy."""


class ContentMismatch(Rejected):
    """The staged bytes are not those that the manifest describes; stage them again, or correct size and checksum."""

    code = Code.CHECKSUM_MISMATCH


class IdTaken(Rejected):
    """An artifact of this id exists with other bytes or another owner, or has expired; mint a new id."""

    code = Code.CONFLICT


class Forked(Rejected):
    """Another artifact supersedes this one already; supersede the newest version instead."""

    code = Code.CONFLICT


class NotTheNextVersion(Rejected):
    """`version` must be one more than that of the artifact it supersedes."""


class NotYoursToSupersede(Rejected):
    """Only its owner, or whoever takes part in its trace, may supersede an artifact; register one of your own."""

    code = Code.UNAUTHORIZED


class NoSuchArtifact(Rejected):
    """There is no such artifact, or it is not yours to read."""

    code = Code.NOT_FOUND


class NoSuchInput(Rejected):
    """Some of `input_artifacts` do not exist, or are not yours to read; register them first."""

    code = Code.NOT_FOUND


class NotAService(Rejected):
    """Only a service says who takes part in a trace."""

    code = Code.UNAUTHORIZED


class LineageTooLarge(Rejected):
    """The lineage has more artifacts than one answer holds; ask for less depth, or from a nearer artifact."""

    code = Code.TOO_LARGE


class MessageIdTaken(Rejected):
    """A message of this id exists with another content; messages never change, so mint a new id."""

    code = Code.CONFLICT


class NoSuchMessage(Rejected):
    """There is no message of this id in the dialogue of this user."""

    code = Code.NOT_FOUND


class NoSuchFragment(Rejected):
    """There is no fragment of this id."""

    code = Code.NOT_FOUND


class FragmentMismatch(Rejected):
    """A fragment is made of the next messages in its user's buffer; ask for the active dialogues again."""

    code = Code.CONFLICT


class AgentDatumConflict(Rejected):
    """The value has changed since it was read; read it again, then decide anew."""

    code = Code.CONFLICT


class NotAnOperator(Rejected):
    """Only people and services look after the store; ask whoever operates it."""

    code = Code.UNAUTHORIZED


class TooMuchGarbage(Rejected):
    """This run would take away more than the settings allow at once; if it is right, allow so many by max_objects."""

    code = Code.CONFLICT


class DatabaseBehindStore(Rejected):
    """The store remembers artifacts that the database does not; restore a newer backup, or rebuild the manifests."""

    code = Code.CONFLICT
