"""Access control of HTTP requests and WebSockets: tokens, sessions, Host and Origin checks, security headers."""

from urllib.parse import quote, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bus_schema.replies import Code
from gateway.access_tokens import LOGIN, OWNER, AccessKeys, Throttle
from gateway.problems import problem_response
from mindbus.accounts import Account
from mindbus.files.folder_addresses import PATH

COOKIE = "mindbus_session"
HEALTH, METRICS = "/healthz", "/metrics"
OIDC_START, OIDC_BACK = f"{LOGIN}/provider", f"{LOGIN}/provider/back"
_OPEN_PATHS = frozenset({HEALTH, LOGIN, OIDC_START, OIDC_BACK})
# What is signed there is the permission.
_SIGNED_PATHS = f"{PATH}/"
_API = "/api/"
MCP, OPENAI, A2A = "/mcp", "/v1", "/a2a"
AGENT_CARD = "/.well-known/agent-card.json"
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_OWN_SITE = frozenset({"same-origin", "none"})
_FOREIGN_HOST = "unknown host name: open the gateway as localhost, or set MINDBUS_GATEWAY_TOKEN"
_FOREIGN_ORIGIN = "the request comes from a page of another site"
_NO_TOKEN = "a token is needed: send it as `Authorization: Bearer TOKEN`, or log in"
_THROTTLED = "too many wrong tokens; wait, then try again"
_TOO_OFTEN = "too many requests; wait, or raise MINDBUS_GATEWAY_REQUESTS_PER_MINUTE"
_FOR_OPERATORS = "metrics are for operators, and for holders of MINDBUS_METRICS_TOKEN"
_READ_ONLY = "this token may only read, and only the HTTP API"
_SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With `no-referrer` a browser would send `Origin: null` with the gateway's own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Nothing from, and nothing to, another host. Screens are scripts that NiceGUI writes into the page and evaluates.
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
}


class AccessControl:
    """ASGI middleware that lets in holders of a token or session, never on behalf of another site's page."""

    def __init__(
        self,
        app: ASGIApp,
        keys: AccessKeys,
        throttle: Throttle,
        rate: Throttle,
        bound_to: str,
        open_paths: frozenset[str] = frozenset(),
    ) -> None:
        """`throttle` counts wrong tokens by address, `rate` requests by account; `open_paths` are for everybody."""
        self.app, self._keys, self._throttle, self._rate, self._bound_to = app, keys, throttle, rate, bound_to
        self._open_paths = _OPEN_PATHS | open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        answer = self._rejection(HTTPConnection(scope)) or self.app
        await answer(scope, receive, _with_security_headers(send))

    def _rejection(self, connection: HTTPConnection) -> Response | None:
        if self._keys.is_open and not is_own_host(connection, self._bound_to):
            return problem_response(Code.UNAUTHORIZED, _FOREIGN_HOST)
        if is_foreign_origin(connection):
            return problem_response(Code.UNAUTHORIZED, _FOREIGN_ORIGIN)
        if connection.scope["path"] in self._open_paths or connection.scope["path"].startswith(_SIGNED_PATHS):
            return None
        if connection.scope["path"] == METRICS and self._is_scraper(connection):
            return None
        in_session = OWNER if self._keys.is_open else self._keys.of_session(connection.cookies.get(COOKIE))
        found = in_session or self._of_token(connection)
        return found if isinstance(found, Response) else self._rejection_of(found, connection)

    def _is_scraper(self, connection: HTTPConnection) -> bool:
        """Whether it has the token of metrics, which opens nothing else; guesses count as any wrong token does."""
        token = _token_in(connection)
        is_allowed = connection.scope.get("method") in ("GET", "HEAD") and not self._throttle.wait_s(
            address_of(connection)
        )
        return token is not None and is_allowed and self._keys.is_of_metrics(token)

    def _rejection_of(self, account: Account, connection: HTTPConnection) -> Response | None:
        if connection.scope["path"] == METRICS and not account.is_operator:
            return problem_response(Code.UNAUTHORIZED, _FOR_OPERATORS)
        if not (account.can_write or _only_reads(connection)):
            return problem_response(Code.UNAUTHORIZED, _READ_ONLY)
        if connection.scope["path"].startswith((_API, MCP, f"{OPENAI}/", A2A)):
            if wait_s := self._rate.wait_s(account.identity):
                return too_many_requests(wait_s)
            self._rate.count(account.identity)
        connection.scope.setdefault("state", {})["account"] = account
        return None

    def _of_token(self, connection: HTTPConnection) -> Account | Response:
        token = _token_in(connection)
        if token is None:
            return _redirect_to_login(connection) if _is_page(connection) else _ask_for_token()
        address = address_of(connection)
        if wait_s := self._throttle.wait_s(address):
            return too_many_attempts(wait_s)
        if account := self._keys.of_token(token):
            return account
        self._throttle.count(address)
        return _ask_for_token()


def _token_in(connection: HTTPConnection) -> str | None:
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _only_reads(connection: HTTPConnection) -> bool:
    scope = connection.scope
    own = (_API, METRICS, f"{OPENAI}/", A2A, AGENT_CARD)
    return scope.get("method") in ("GET", "HEAD") and scope["path"].startswith(own)


def address_of(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client else ""


def too_many_attempts(wait_s: int) -> Response:
    """Response 429 after too many wrong tokens."""
    return problem_response(Code.UNAUTHORIZED, _THROTTLED, 429, {"Retry-After": str(wait_s)})


def too_many_requests(wait_s: int) -> Response:
    """Response 429 to an account that asks too often."""
    return problem_response(Code.UNAVAILABLE, _TOO_OFTEN, 429, {"Retry-After": str(wait_s)})


def is_own_host(connection: HTTPConnection, bound_to: str) -> bool:
    """True if the Host header names this machine or the bound address: without a token this stops DNS rebinding."""
    try:
        host = urlsplit(f"//{connection.headers.get('host', '')}").hostname
    except ValueError:
        return False
    return host in _LOOPBACK_NAMES | {bound_to}


def is_foreign_origin(connection: HTTPConnection) -> bool:
    """True if a browser sends the request for a page of another origin; programs send neither header."""
    headers = connection.headers
    origin = headers.get("origin")
    if origin is not None:
        return _netloc(origin) != headers.get("host", "").lower()
    # Another port of this machine is the same site, yet another origin.
    is_foreign = headers.get("sec-fetch-site", "none") not in _OWN_SITE
    return is_foreign and not _is_followed_link(connection)


def _is_followed_link(connection: HTTPConnection) -> bool:
    scope, headers = connection.scope, connection.headers
    is_reading = scope.get("method") in ("GET", "HEAD") and not scope["path"].startswith("/api")
    return is_reading and headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None


def _ask_for_token() -> Response:
    # The same answer for a missing and for a wrong token.
    return problem_response(Code.UNAUTHORIZED, _NO_TOKEN, 401, {"WWW-Authenticate": 'Bearer realm="mindbus"'})


def _redirect_to_login(connection: HTTPConnection) -> Response:
    query = connection.url.query
    target = connection.url.path + (f"?{query}" if query else "")
    return RedirectResponse(f"{LOGIN}?next={quote(target, safe='')}", 303)


def _is_page(connection: HTTPConnection) -> bool:
    scope = connection.scope
    is_get = scope.get("method") == "GET" and not scope["path"].startswith("/api")
    return is_get and "text/html" in connection.headers.get("accept", "")


def _with_security_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _SECURITY_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers


_PATHS = ("/api", LOGIN, MCP, OPENAI, A2A)
# A client that is still sending would not read the answer: this much is read and discarded first.
_DISCARDED_BYTES = 16 * 1024**2


class BodyLimit:
    """ASGI middleware that answers 413 to a body of more than `most_bytes` bytes."""

    def __init__(self, app: ASGIApp, most_bytes: int) -> None:
        self.app, self._most_bytes = app, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(_PATHS):
            await self.app(scope, receive, send)
            return
        body = await self._body(Request(scope, receive))
        if body is None:
            detail = f"a body has at most {self._most_bytes} bytes; make what is larger an artifact, then send its id"
            await problem_response(Code.TOO_LARGE, detail)(scope, receive, send)
            return
        await self.app(scope, _replay(body, receive), send)

    async def _body(self, request: Request) -> bytes | None:
        body = bytearray()
        size = 0
        async for chunk in request.stream():
            size += len(chunk)
            if size <= self._most_bytes:
                body += chunk
            elif size > self._most_bytes + _DISCARDED_BYTES:
                break
        return bytes(body) if size <= self._most_bytes else None


def _replay(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay
