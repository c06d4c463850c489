"""Problem details of HTTP responses (RFC 9457): one table from error codes to statuses."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, ValidationError
from starlette.responses import JSONResponse, Response

from bus_schema.envelope import complaint, explain
from bus_schema.replies import Code
from mindbus.errors import MindBusError, ReplyError
from mindbus.redaction import without_secrets

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 5

STATUSES: dict[Code, HTTPStatus] = {
    Code.INVALID: HTTPStatus.UNPROCESSABLE_ENTITY,
    Code.UNAUTHORIZED: HTTPStatus.FORBIDDEN,
    Code.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Code.CONFLICT: HTTPStatus.CONFLICT,
    Code.CHECKSUM_MISMATCH: HTTPStatus.CONFLICT,
    # The artifact exists, but the store behind this server has lost its file.
    Code.FILE_NOT_FOUND: HTTPStatus.BAD_GATEWAY,
    Code.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Code.EXPIRED: HTTPStatus.GATEWAY_TIMEOUT,
    Code.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    Code.INTERNAL: HTTPStatus.INTERNAL_SERVER_ERROR,
}

EXPECTED = (MindBusError, ValidationError)


class FieldError(BaseModel):
    """An invalid field of a request."""

    where: str
    message: str


class Problem(BaseModel):
    """Reason for a failed request; `code` is for programs, `detail` for people."""

    type: str = "about:blank"
    title: str
    status: int
    code: Code
    detail: str
    retryable: bool = False
    errors: list[FieldError] = []

    @classmethod
    def of(cls, error: Exception) -> "Problem":
        """Problem details of an error among EXPECTED."""
        if isinstance(error, ValidationError):
            fields = field_errors(map(dict, error.errors(include_url=False)))
            return problem_for(Code.INVALID, explain(error), errors=fields)
        code = error.code if isinstance(error, MindBusError) else Code.INTERNAL
        text = error.message if isinstance(error, ReplyError) else str(error)
        return problem_for(code, without_secrets(text))


def problem_for(code: Code, detail: str, status: int | None = None, errors: list[FieldError] | None = None) -> Problem:
    """Problem details with the status of the code, unless another is given."""
    http = HTTPStatus(status or STATUSES[code])
    return Problem(
        title=http.phrase, status=http, code=code, detail=detail, retryable=code.retryable, errors=errors or []
    )


def field_errors(errors: Iterable[Mapping[str, Any]]) -> list[FieldError]:
    """Place and message of pydantic's errors, without the input."""
    return [FieldError(where=_place(error), message=complaint(error)) for error in errors]


def respond(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    retry_headers = {"Retry-After": str(RETRY_AFTER_S)} if problem.code is Code.UNAVAILABLE else {}
    return JSONResponse(problem.model_dump(mode="json"), problem.status, retry_headers | (headers or {}), MEDIA_TYPE)


def problem_response(
    code: Code, detail: str, status: int | None = None, headers: dict[str, str] | None = None
) -> Response:
    return respond(problem_for(code, detail, status), headers)


def _place(error: Mapping[str, Any]) -> str:
    place = ".".join(map(str, error["loc"]))
    return f"{place} (character)" if error["type"] == "json_invalid" else place
