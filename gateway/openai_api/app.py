"""OpenAI's HTTP API over the dialogue, the roles and the sub-agents, for clients that know no other."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from bus_schema.replies import Code
from gateway.backend import Backend
from gateway.event_streams import EventStreams
from gateway.openai_api import chat, embeddings, models, responses
from gateway.openai_api.errors import error_of
from gateway.problems import EXPECTED, Problem, field_errors, problem_for
from gateway.token_budget import BudgetSpent
from mindbus.logs import logger


def create_openai_app(backend: Backend, streams: EventStreams) -> FastAPI:
    """An application to mount at `/v1`; its errors have OpenAI's shape."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.state.backend, app.state.streams = backend, streams
    for resource in (models, chat, responses, embeddings):
        app.include_router(resource.router)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)
    app.add_exception_handler(BudgetSpent, _spent)
    for kind in EXPECTED:
        app.add_exception_handler(kind, _expected)
    return app


async def _expected(_request: Request, error: Exception) -> Response:
    return _respond(Problem.of(error))


async def _spent(_request: Request, error: Exception) -> Response:
    return _respond(problem_for(Code.UNAVAILABLE, str(error), 429))


async def _invalid(_request: Request, error: Exception) -> Response:
    errors = field_errors(error.errors() if isinstance(error, RequestValidationError) else [])
    detail = "; ".join(f"{field.where}: {field.message}" for field in errors)
    return _respond(problem_for(Code.INVALID, detail, 400))


async def _http(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = f"there is no {request.method} {request.url.path}" if status == 404 else str(error)
    return _respond(problem_for(Code.NOT_FOUND if status == 404 else Code.INVALID, detail, status))


async def _unexpected(request: Request, error: Exception) -> Response:
    logger().error("request failed", method=request.method, path=request.url.path, error=type(error).__name__)
    return _respond(problem_for(Code.INTERNAL, "internal error; see the gateway's log"))


def _respond(problem: Problem) -> Response:
    return JSONResponse(error_of(problem), problem.status)
