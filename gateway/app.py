"""The web application: the API, the way in."""

from fastapi import FastAPI, Request, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from bus_schema.replies import Code
from gateway.access_control import HEALTH, AccessControl
from gateway.access_tokens import AccessKeys, LoginThrottle
from gateway.api.artifacts import router as artifacts
from gateway.api.dialogues import router as dialogues
from gateway.api.episodes import router as episodes
from gateway.api.fleet import router as fleet
from gateway.api.memory import router as memory
from gateway.api.runs import router as runs
from gateway.api.sim import router as sim
from gateway.api.subagents import router as subagents
from gateway.api.timeline import router as timeline
from gateway.backend import Backend
from gateway.body_limit import BodyLimit
from gateway.event_streams import EventStreams
from gateway.login import login_routes
from gateway.problems import EXPECTED, Problem, field_errors, problem_for, problem_response, respond
from mindbus.logs import logger
from mindbus.version import __version__

_ABOUT = "What can be asked of MindBus, over HTTP. Errors are `application/problem+json`; `code` is for programs."
_CODES = {401: Code.UNAUTHORIZED, 403: Code.UNAUTHORIZED, 404: Code.NOT_FOUND}
_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_PROBLEM = {"model": Problem, "description": "Why not, as `application/problem+json`."}


def create_app(backend: Backend, keys: AccessKeys, streams: EventStreams) -> FastAPI:
    """The API of one gateway; screens can be put on it."""
    app = FastAPI(
        title="MindBus",
        version=__version__,
        description=_ABOUT,
        openapi_url="/api/openapi.json",
        # Its pages would load their scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
    )
    app.state.backend, app.state.streams = backend, streams
    wrong_tokens = LoginThrottle(backend.clock)
    app.add_middleware(BodyLimit, most_bytes=backend.settings.gateway_max_body_bytes)
    app.add_middleware(AccessControl, keys=keys, wrong_tokens=wrong_tokens, bound_to=backend.settings.gateway_host)
    _say_what_is_wrong(app)
    app.include_router(login_routes(keys, wrong_tokens))
    asks_for_token = Security(HTTPBearer(auto_error=False, description="The token of the gateway, if it has one."))
    for router in (dialogues, subagents, timeline, runs, artifacts, memory, episodes, fleet, sim):
        app.include_router(
            router, prefix="/api", dependencies=[asks_for_token], responses={422: _PROBLEM, "default": _PROBLEM}
        )
    app.add_api_route(HEALTH, _health, include_in_schema=False)
    app.add_api_route("/api/{rest:path}", _nothing, methods=_METHODS, include_in_schema=False)
    return app


def _say_what_is_wrong(app: FastAPI) -> None:
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)
    for kind in EXPECTED:
        app.add_exception_handler(kind, _expected)


async def _health(request: Request) -> Response:
    """Whether it answers, whether it hears the bus; nothing that only its users should know."""
    backend: Backend = request.app.state.backend
    if backend.feed.is_hearing:
        return Response('{"status":"ok"}', media_type="application/json")
    return problem_response(Code.UNAVAILABLE, "the gateway does not hear the bus")


async def _nothing(request: Request) -> Response:
    return problem_response(Code.NOT_FOUND, f"there is no {request.method} {request.url.path}; see /api/openapi.json")


async def _expected(_request: Request, error: Exception) -> Response:
    return respond(Problem.of(error))


async def _invalid(_request: Request, error: Exception) -> Response:
    flaws = field_errors(error.errors() if isinstance(error, RequestValidationError) else [])
    return respond(problem_for(Code.INVALID, "; ".join(f"{flaw.where}: {flaw.message}" for flaw in flaws), flaws=flaws))


async def _http(_request: Request, error: Exception) -> Response:
    status, detail = (error.status_code, error.detail) if isinstance(error, HTTPException) else (500, "")
    # Bytes that are no text at all are as invalid as a text that is no JSON.
    return problem_response(_CODES.get(status, Code.INVALID), str(detail), None if status == 400 else status)


async def _unexpected(request: Request, error: Exception) -> Response:
    logger().error("request failed", method=request.method, path=request.url.path, error=type(error).__name__)
    return problem_response(Code.INTERNAL, "the gateway has made a mistake; its log says more")
