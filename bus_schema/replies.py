"""Replies to commands: a result, or an error with a code."""

from enum import StrEnum
from typing import Any, Literal, Self

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

    `partial` replies, with `text` in `result`, may come before the one that ends it: ok or error. One with `restart`
    begins the text again: what came before it is void.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")
    status: Literal["ok", "error", "partial"]
    code: Code | None = None
    retryable: bool = False
    message: str = ""
    details: dict[str, Any] = {}
    result: dict[str, Any] | None = None


class TextPart(str):
    """A part of a streamed text; with `restarts` it begins the text again, and all parts before it are void."""

    __slots__ = ("restarts",)
    restarts: bool

    def __new__(cls, text: str, *, restarts: bool = False) -> Self:
        part = super().__new__(cls, text)
        part.restarts = restarts
        return part


def restarts(text: str) -> bool:
    """Whether a part of a streamed text begins it again."""
    return isinstance(text, TextPart) and text.restarts
