"""Replies to commands: a result, or an error with a code."""

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


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


class Reply(BaseModel):
    """Body of every reply, the same for all commands; `result` is the command's own.

    `partial` replies, with text in `result`, may come before the one that ends it: ok or error.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")
    status: Literal["ok", "error", "partial"]
    code: Code | None = None
    retryable: bool = False
    message: str = ""
    details: dict[str, Any] = {}
    result: dict[str, Any] | None = None
