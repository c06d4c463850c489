"""Codes without Pydantic: why a command was not carried out, the state of a worker."""

from enum import StrEnum


class Code(StrEnum):
    """Machine-readable reason why a command was not carried out."""

    INVALID = "invalid"
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    CHECKSUM_MISMATCH = "checksum_mismatch"
    FILE_NOT_FOUND = "file_not_found"
    TOO_LARGE = "too_large"
    EXPIRED = "expired"
    UNAVAILABLE = "unavailable"
    INTERNAL = "internal"

    @property
    def retryable(self) -> bool:
        """Whether the same command may succeed later, unchanged."""
        return self in (Code.UNAVAILABLE, Code.INTERNAL)


class State(StrEnum):
    """State of a worker's consumers; `standing_by` becomes ready when the leading instance is gone."""

    READY = "ready"
    STANDING_BY = "standing_by"
    UNREADY = "unready"
