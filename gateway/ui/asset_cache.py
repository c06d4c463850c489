"""NiceGUI's scripts and styles, compressed and held in memory once each: a browser asks for two dozen at a time."""

import asyncio
import gzip
from dataclasses import dataclass

from cachetools import LRUCache
from nicegui import __version__
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_FOLDER = f"/_nicegui/{__version__}/"
# Their addresses have the version, or a digest, in them; `dynamic_resources` and pictures are left alone.
_PLACES = tuple(_FOLDER + place for place in ("static/", "libraries/", "components/", "esm/"))
_SUFFIXES = (".js", ".mjs", ".css")
_CONDITIONS = ("range", "if-none-match", "if-modified-since")
_MOST_BYTES = 8 * 1024 * 1024
# Compressed once, in a thread; level 9 takes twice as long for one per cent.
_LEVEL = 6


@dataclass(frozen=True)
class _Asset:
    start: Message
    body: bytes
    is_whole: bool

    def __len__(self) -> int:
        return len(self.body)

    async def send(self, send: Send) -> None:
        await send(self.start)
        await send({"type": "http.response.body", "body": self.body})


class AssetCache:
    """An ASGI application around another; it answers for assets that it has seen, to whoever takes them compressed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._assets: LRUCache[str, _Asset] = LRUCache(_MOST_BYTES, getsizeof=len)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _is_asset(scope):
            await self._app(scope, receive, send)
            return
        asset = self._assets.get(scope["path"])
        if asset is None:
            asset = await self._read(scope)
            if asset.start["status"] == 200 and asset.is_whole and len(asset) <= _MOST_BYTES:
                self._assets[scope["path"]] = asset
        await asset.send(send)

    async def _read(self, scope: Scope) -> _Asset:
        """Read it to its end, though the browser that asked first may have gone."""
        start: Message = {}
        body = bytearray()
        is_whole = False

        async def collect(message: Message) -> None:
            nonlocal is_whole
            if message["type"] == "http.response.start":
                start.update(message)
                return
            body.extend(message.get("body", b""))
            is_whole = not message.get("more_body", False)

        plain = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
        await self._app({**scope, "headers": plain}, _patient(), collect)
        packed = await asyncio.to_thread(gzip.compress, body, _LEVEL)
        headers = MutableHeaders(raw=list(start["headers"]))
        is_whole = is_whole and int(headers.get("content-length", len(body))) == len(body)
        headers["content-encoding"], headers["content-length"] = "gzip", str(len(packed))
        headers.add_vary_header("Accept-Encoding")
        return _Asset({**start, "headers": headers.raw}, packed, is_whole)


def _patient() -> Receive:
    """The channel of a browser that has asked, and waits for as long as it takes."""
    asked: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        if asked:
            return asked.pop()
        await asyncio.Event().wait()
        raise AssertionError("unreachable: it never goes")

    return receive


def _is_asset(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "GET" or not scope["path"].startswith(_PLACES):
        return False
    headers = Headers(scope=scope)
    is_plain = "gzip" not in headers.get("accept-encoding", "") or any(name in headers for name in _CONDITIONS)
    return scope["path"].endswith(_SUFFIXES) and not is_plain
