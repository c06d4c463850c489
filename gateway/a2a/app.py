"""A2A as an application: JSON-RPC, HTTP with JSON, the agent card; and the sender of push notifications."""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.routes.rest_routes import create_rest_routes
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bus_schema.codes import Code
from gateway.a2a.cards import REST, public_card
from gateway.a2a.handler import BACKEND, URL, A2AHandler
from gateway.a2a.push_configs import TASK, PushConfigs
from gateway.access_control import A2A, AGENT_CARD
from gateway.backend import Backend
from gateway.problems import problem_response
from gateway.webhooks.delivery import Deliveries, open_sender
from gateway.webhooks.store import webhooks_of
from mindbus.tasks import kept_running

# Errors to the library, with a traceback; that it has refused the request, and why, it logs as a warning besides.
_MISTAKES_OF_CLIENTS = ("Failed to validate base JSON-RPC request", "Failed to parse request params")


def _is_ours(record: logging.LogRecord) -> bool:
    return record.msg not in _MISTAKES_OF_CLIENTS


@asynccontextmanager
async def open_a2a(backend: Backend) -> AsyncIterator[ASGIApp]:
    """The application; push notifications are sent as long as it is open."""
    store = webhooks_of(backend.settings)
    async with open_sender(backend.settings.gateway_webhook_hosts) as sender:
        push = PushConfigs(backend, store, sender)
        handler, contexts = A2AHandler(push), _Contexts(backend)
        logging.getLogger("a2a.server.routes.jsonrpc_dispatcher").addFilter(_is_ours)

        async def card(request: Request) -> Response:
            return JSONResponse(agent_card_to_dict(await public_card(backend, _url_of(backend, request))))

        routes = [
            Route(AGENT_CARD, card),
            *create_jsonrpc_routes(handler, A2A, contexts),
            *create_rest_routes(handler, contexts, path_prefix=REST),
        ]
        async with kept_running(Deliveries(TASK, backend, store, push.deliver).run, "push notifications"):
            yield _Readable(Starlette(routes=routes))


class _Readable:
    """Refuses bodies whose JSON is not text in UTF-8, with half a character or nested too deep: the library fails."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        rest: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return rest.pop() if rest else await receive()

        refused = None if _is_readable(body) else problem_response(Code.INVALID, "the body is not JSON in UTF-8", 400)
        await (refused or self._app)(scope, again, send)


def _is_readable(body: bytes) -> bool:
    """Whether whatever is in it can be written again; broken JSON is told in the words of the protocol."""
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except (UnicodeError, RecursionError):
        return False
    except ValueError:
        pass
    return True


class _Contexts(DefaultServerCallContextBuilder):
    """Says whose request it is."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def build(self, request: Request) -> ServerCallContext:
        context = super().build(request)
        context.state[BACKEND] = self._backend.of(request.state.account)
        context.state[URL] = _url_of(self._backend, request)
        return context


def _url_of(backend: Backend, request: Request) -> str:
    return (backend.settings.gateway_public_url or str(request.base_url)).rstrip("/")
