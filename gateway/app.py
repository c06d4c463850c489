"""The FastAPI application: routers, access control, error handlers."""

import warnings
from datetime import timedelta

from fastapi import FastAPI, Request, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.security import HTTPBearer
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.exceptions import HTTPException

from bus_schema.replies import Code
from gateway import fleet_metrics, signed_files
from gateway.access_control import AGENT_CARD, HEALTH, OPENAI, AccessControl, BodyLimit
from gateway.access_tokens import AccessKeys, Throttle
from gateway.api import (
    artifacts,
    commands,
    dialogues,
    episodes,
    fleet,
    histories,
    memory,
    model_calls,
    runs,
    sim,
    tasks,
    timeline,
    users,
    webhooks,
)
from gateway.api_description import DescribedApp, operation_id
from gateway.backend import Backend
from gateway.event_streams import EventStreams
from gateway.fleet_metrics import FleetMetrics
from gateway.login import login_routes
from gateway.openai_api.app import create_openai_app
from gateway.openid import openid_routes
from gateway.problems import EXPECTED, Problem, field_errors, problem_for, problem_response, respond
from gateway.token_budget import BudgetSpent
from mindbus.logs import logger
from mindbus.version import __version__

# FastAPI hushes it while it makes a field; the validators of our messages are built later, when a field is first used.
warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)

_DESCRIPTION = "The HTTP API of MindBus. Errors are `application/problem+json`; `code` is for programs."
_CODES = {401: Code.UNAUTHORIZED, 403: Code.UNAUTHORIZED, 404: Code.NOT_FOUND}
_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_PROBLEM = {"model": Problem, "description": "The reason, as `application/problem+json`."}
_RESOURCES = (
    dialogues,
    timeline,
    runs,
    model_calls,
    artifacts,
    memory,
    episodes,
    fleet,
    sim,
    tasks,
    commands,
    users,
    histories,
    webhooks,
)


def describe() -> DescribedApp:
    """The API without a gateway behind it, for its description."""
    app = DescribedApp(
        title="MindBus",
        version=__version__,
        description=_DESCRIPTION,
        openapi_url="/api/openapi.json",
        # FastAPI's own documentation pages load scripts from other hosts.
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=operation_id,
    )
    bearer = Security(HTTPBearer(auto_error=False, description="The token of the gateway, if it has one."))
    for resource in _RESOURCES:
        app.include_router(
            resource.router, prefix="/api", dependencies=[bearer], responses={422: _PROBLEM, "default": _PROBLEM}
        )
    return app


def create_app(backend: Backend, keys: AccessKeys, streams: EventStreams) -> FastAPI:
    """The API of one gateway; a web UI can be mounted on it."""
    app = describe()
    app.state.backend, app.state.streams = backend, streams
    app.state.fleet_metrics = FleetMetrics(backend)
    throttle = Throttle(backend.clock)
    rate = Throttle(backend.clock, limit=backend.settings.gateway_requests_per_minute)
    app.add_middleware(BodyLimit, most_bytes=backend.settings.gateway_max_body_bytes)
    bound_to = backend.settings.gateway_host
    open_paths = frozenset({AGENT_CARD} if backend.settings.a2a_card == "public" else ())
    app.add_middleware(AccessControl, keys=keys, throttle=throttle, rate=rate, bound_to=bound_to, open_paths=open_paths)
    _add_error_handlers(app)
    has_provider = backend.settings.oidc_issuer is not None and not keys.is_open
    app.include_router(login_routes(keys, throttle, has_provider=has_provider))
    if has_provider:
        app.include_router(openid_routes(backend.settings, keys, backend.clock))
    app.include_router(signed_files.router)
    app.include_router(fleet_metrics.router)
    app.mount(OPENAI, create_openai_app(backend, streams))
    app.add_api_route(HEALTH, _health, include_in_schema=False)
    app.add_api_route("/api/{rest:path}", _not_found, methods=_METHODS, include_in_schema=False)
    return app


def _add_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _handle_unexpected)
    app.add_exception_handler(BudgetSpent, _handle_spent_budget)
    for kind in EXPECTED:
        app.add_exception_handler(kind, _handle_expected)


async def _health(request: Request) -> Response:
    """Liveness of the gateway and its bus connection, open to everybody."""
    backend: Backend = request.app.state.backend
    if backend.feed.is_connected:
        return Response('{"status":"ok"}', media_type="application/json")
    return problem_response(Code.UNAVAILABLE, "the gateway has no connection to the bus")


async def _not_found(request: Request) -> Response:
    return problem_response(Code.NOT_FOUND, f"there is no {request.method} {request.url.path}; see /api/openapi.json")


async def _handle_expected(_request: Request, error: Exception) -> Response:
    return respond(Problem.of(error))


async def _handle_spent_budget(request: Request, error: Exception) -> Response:
    backend: Backend = request.app.state.backend
    now = backend.clock()
    tomorrow = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    wait_s = int((tomorrow - now).total_seconds()) + 1
    return problem_response(Code.UNAVAILABLE, str(error), 429, {"Retry-After": str(wait_s)})


async def _invalid(_request: Request, error: Exception) -> Response:
    errors = field_errors(error.errors() if isinstance(error, RequestValidationError) else [])
    detail = "; ".join(f"{field.where}: {field.message}" for field in errors)
    return respond(problem_for(Code.INVALID, detail, errors=errors))


async def _http(_request: Request, error: Exception) -> Response:
    status, detail = (error.status_code, error.detail) if isinstance(error, HTTPException) else (500, "")
    # A body that is not UTF-8 is as invalid as one that is not JSON: 422, not 400.
    return problem_response(_CODES.get(status, Code.INVALID), str(detail), None if status == 400 else status)


async def _handle_unexpected(request: Request, error: Exception) -> Response:
    logger().error("request failed", method=request.method, path=request.url.path, error=type(error).__name__)
    return problem_response(Code.INTERNAL, "internal error; see the gateway's log")
