"""Who comes in."""

from urllib.parse import quote, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bus_schema.replies import Code
from gateway.access_tokens import AccessKeys, LoginThrottle
from gateway.problems import problem_response

COOKIE = "mindbus_session"
HEALTH, LOGIN = "/healthz", "/login"
_FREE = frozenset({HEALTH, LOGIN})
_STRANGE_NAME = "the gateway is not called so: open it as localhost, or set MINDBUS_GATEWAY_TOKEN"
_STRANGE_PAGE = "this comes from a page of another site"
_NO_TOKEN = "a token is needed: send it as `Authorization: Bearer TOKEN`, or log in"
_TOO_OFTEN = "too many wrong tokens; wait"
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With `no-referrer` a browser would say of the gateway's own forms that they come from nowhere.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class AccessControl:
    """Lets in whoever has a key, from no stranger's page; a WebSocket as well as a request."""

    def __init__(self, app: ASGIApp, keys: AccessKeys, wrong_tokens: LoginThrottle, bound_to: str) -> None:
        self.app, self._keys, self._wrong_tokens, self._bound_to = app, keys, wrong_tokens, bound_to

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(HTTPConnection(scope))
        answer = self.app if refusal is None else refusal
        await answer(scope, receive, _with_headers(send))

    def _refusal(self, connection: HTTPConnection) -> Response | None:
        if self._keys.is_open and not is_called_by_own_name(connection, self._bound_to):
            return problem_response(Code.UNAUTHORIZED, _STRANGE_NAME)
        if is_from_a_strange_page(connection):
            return problem_response(Code.UNAUTHORIZED, _STRANGE_PAGE)
        if self._keys.is_open or connection.scope["path"] in _FREE or self._has_session(connection):
            return None
        scheme, _, token = connection.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return _to_login(connection) if _is_page(connection) else _asking_for_token()
        return self._refusal_of(token.strip(), connection)

    def _refusal_of(self, token: str, connection: HTTPConnection) -> Response | None:
        address = address_of(connection)
        if wait_s := self._wrong_tokens.wait_s(address):
            return too_often(wait_s)
        if self._keys.is_token(token):
            return None
        self._wrong_tokens.count(address)
        return _asking_for_token()

    def _has_session(self, connection: HTTPConnection) -> bool:
        return self._keys.is_session(connection.cookies.get(COOKIE))


def address_of(connection: HTTPConnection) -> str:
    """Where it comes from."""
    return connection.client.host if connection.client else ""


def too_often(wait_s: int) -> Response:
    """Who has guessed too often."""
    return problem_response(Code.UNAUTHORIZED, _TOO_OFTEN, 429, {"Retry-After": str(wait_s)})


def _asking_for_token() -> Response:
    # The same whether there was no token or a wrong one.
    return problem_response(Code.UNAUTHORIZED, _NO_TOKEN, 401, {"WWW-Authenticate": 'Bearer realm="mindbus"'})


def _to_login(connection: HTTPConnection) -> Response:
    query = connection.url.query
    wanted = connection.url.path + (f"?{query}" if query else "")
    return RedirectResponse(f"{LOGIN}?next={quote(wanted, safe='')}", 303)


def _is_page(connection: HTTPConnection) -> bool:
    scope = connection.scope
    return (
        scope.get("method") == "GET"
        and not scope["path"].startswith("/api")
        and "text/html" in connection.headers.get("accept", "")
    )


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _ALWAYS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending


_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_OWN_SITE = frozenset({"same-origin", "none"})


def host_of(connection: HTTPConnection) -> str | None:
    """The name under which the gateway was asked for, without its port."""
    try:
        return urlsplit(f"//{connection.headers.get('host', '')}").hostname
    except ValueError:
        return None


def is_called_by_own_name(connection: HTTPConnection, bound_to: str) -> bool:
    """Where no token protects it, a page whose name was made to point here must not pass for the gateway's own."""
    return host_of(connection) in _LOOPBACK_NAMES | {bound_to}


def is_from_a_strange_page(connection: HTTPConnection) -> bool:
    """Whether a browser says that another site's page has sent it; programs say nothing of the kind."""
    headers = connection.headers
    origin = headers.get("origin")
    if origin is not None:
        return _netloc(origin) != headers.get("host", "").lower()
    # Another port of this machine is the same site, yet another origin.
    is_strange = headers.get("sec-fetch-site", "none") not in _OWN_SITE
    return is_strange and not _is_a_link_followed(connection)


def _is_a_link_followed(connection: HTTPConnection) -> bool:
    scope, headers = connection.scope, connection.headers
    is_reading = scope.get("method") in ("GET", "HEAD") and not scope["path"].startswith("/api")
    return is_reading and headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
