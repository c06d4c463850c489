"""ReplyBatch to commands: a result, or an error with a code."""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict

from bus_schema.codes import Code as Code


class Reply(BaseModel):
    """Body of every reply, the same for all commands; `result` is the command's own.

    `partial` replies, with `text` in `result`, may come before the final one: ok or error. One with `restart` starts
    the text over: everything before it is void.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
    status: Literal["ok", "error", "partial"]
    code: Code | None = None
    retryable: bool = False
    message: str = ""
    details: dict[str, Any] = {}
    result: dict[str, Any] | None = None

    @classmethod
    def done(cls, result: BaseModel) -> Self:
        """The reply with a result."""
        return cls(status="ok", result=result.model_dump(mode="json"))

    @classmethod
    def failed(cls, code: Code, message: str, details: dict[str, Any]) -> Self:
        """The reply with an error, which says whether trying again may help."""
        return cls(status="error", code=code, retryable=code.retryable, message=message, details=details)


class ReplyBatch(BaseModel):
    """Result of a command that stands for several: the reply to each, in the same order."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
    items: tuple[Reply, ...]


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
