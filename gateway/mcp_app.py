"""MCP over HTTP: the tools act as the account whose token comes with a request."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.mcpserver import Context
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.access_control import MCP
from gateway.backend import Backend
from mindbus.integrations.mcp.participant import Participant
from mindbus.integrations.mcp.server import MindBusServer, cards_over


@asynccontextmanager
async def open_mcp(backend: Backend) -> AsyncIterator[ASGIApp]:
    """The MCP server as an ASGI application."""
    settings = backend.settings
    answer_s = settings.llm_timeout_s + settings.subagent_timeout_s + settings.request_timeout_s

    def participant(context: Context[Any, Any]) -> Participant:
        request = context.request_context.request
        assert request is not None
        view = backend.of(request.state.account)
        return Participant(view.bus, view.own_artifacts, answer_s, view.asking)

    server = MindBusServer(participant, cards_over(backend.bus))
    # Host and Origin have been checked at the door.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(streamable_http_path=MCP, transport_security=security)
    async with server.session_manager.run():
        yield _Owned(app)


class _Owned:
    """Tells the library whose a request is: nobody else may use the session that it begins."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        account = scope["state"]["account"]
        user = AuthenticatedUser(AccessToken(token="", client_id=account.identity, scopes=[]))
        await self._app({**scope, "user": user}, receive, send)
