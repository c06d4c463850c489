"""Errors in OpenAI's shape."""

from collections.abc import Mapping
from typing import Any

from gateway.problems import Problem

_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def error_of(problem: Problem) -> dict[str, Any]:
    """A problem as OpenAI's clients expect it."""
    kind = _TYPES.get(problem.status, "invalid_request_error" if problem.status < 500 else "server_error")
    return {"error": {"message": problem.detail, "type": kind, "param": None, "code": problem.code.value}}
