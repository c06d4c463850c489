"""What went wrong, in the one shape in which the API says it (RFC 9457)."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from inspect import cleandoc
from typing import Any

from pydantic import BaseModel, ValidationError
from starlette.responses import JSONResponse, Response

from bus_schema.envelope import explain
from bus_schema.replies import Code
from gateway.desks.fleet import NoSuchDeadLetter, NoSuchService
from gateway.event_streams import TooManyStreams
from gateway.timeline_tail import UnknownCursor
from mindbus.bus.connection import NoBroker
from mindbus.bus.deadletters import CannotReplay
from mindbus.errors import BusUnavailable, Rejected, ReplyError
from mindbus.management import ManagementUnavailable
from mindbus.sdk.errors import BufferFull, StorageAway

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 5

STATUSES: dict[Code, HTTPStatus] = {
    Code.INVALID: HTTPStatus.UNPROCESSABLE_ENTITY,
    Code.UNAUTHORIZED: HTTPStatus.FORBIDDEN,
    Code.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Code.CONFLICT: HTTPStatus.CONFLICT,
    Code.CHECKSUM_MISMATCH: HTTPStatus.CONFLICT,
    # The caller is right that there is such a thing: what lies behind this server has lost it.
    Code.FILE_NOT_FOUND: HTTPStatus.BAD_GATEWAY,
    Code.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Code.EXPIRED: HTTPStatus.GATEWAY_TIMEOUT,
    Code.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    Code.INTERNAL: HTTPStatus.INTERNAL_SERVER_ERROR,
}

# The first that fits.
_CODES: dict[type[Exception], Code] = {
    NoSuchDeadLetter: Code.NOT_FOUND,
    NoSuchService: Code.NOT_FOUND,
    UnknownCursor: Code.NOT_FOUND,
    CannotReplay: Code.CONFLICT,
    BufferFull: Code.UNAVAILABLE,
    StorageAway: Code.UNAVAILABLE,
    NoBroker: Code.UNAVAILABLE,
    BusUnavailable: Code.UNAVAILABLE,
    ManagementUnavailable: Code.UNAVAILABLE,
    TooManyStreams: Code.UNAVAILABLE,
}

EXPECTED: tuple[type[Exception], ...] = (ReplyError, Rejected, ValidationError, *_CODES)


class FieldError(BaseModel):
    """One thing that is wrong with a request, with its place in it."""

    where: str
    message: str


class Problem(BaseModel):
    """Why a request was not carried out; `code` is for programs, `detail` for people."""

    type: str = "about:blank"
    title: str
    status: int
    code: Code
    detail: str
    retryable: bool = False
    errors: list[FieldError] = []

    @classmethod
    def of(cls, error: Exception) -> "Problem":
        """What an expected error means to who asked."""
        if isinstance(error, ReplyError):
            return problem_for(error.code, error.message)
        if isinstance(error, Rejected):
            return problem_for(error.code, str(error))
        if isinstance(error, ValidationError):
            return problem_for(
                Code.INVALID, explain(error), flaws=field_errors(map(dict, error.errors(include_url=False)))
            )
        code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), Code.INTERNAL)
        return problem_for(code, cleandoc(str(error)) or cleandoc(type(error).__doc__ or ""))


def problem_for(code: Code, detail: str, status: int | None = None, flaws: list[FieldError] | None = None) -> Problem:
    """A problem; its status is that of the code where it has none of its own."""
    known = HTTPStatus(status or STATUSES[code])
    return Problem(
        title=known.phrase, status=known, code=code, detail=detail, retryable=code.retryable, errors=flaws or []
    )


def field_errors(errors: Iterable[Mapping[str, Any]]) -> list[FieldError]:
    """Where, what; never the input itself, which may be anything."""
    return [
        FieldError(where=_place(error), message=str(error["msg"]).removeprefix("Value error, ")) for error in errors
    ]


def respond(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    """The problem as what a client gets."""
    again = {"Retry-After": str(RETRY_AFTER_S)} if problem.code is Code.UNAVAILABLE else {}
    return JSONResponse(problem.model_dump(mode="json"), problem.status, again | (headers or {}), MEDIA_TYPE)


def problem_response(
    code: Code, detail: str, status: int | None = None, headers: dict[str, str] | None = None
) -> Response:
    """A no, with its reason."""
    return respond(problem_for(code, detail, status), headers)


def _place(error: Mapping[str, Any]) -> str:
    place = ".".join(map(str, error["loc"]))
    return f"{place} (character)" if error["type"] == "json_invalid" else place
