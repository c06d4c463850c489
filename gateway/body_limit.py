"""Size limit of request bodies to the API."""

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bus_schema.replies import Code
from gateway.access_control import LOGIN
from gateway.problems import problem_response

_PATHS = ("/api", LOGIN)
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
