"""Scripts and styles are read and compressed once, for whoever takes them compressed."""

import asyncio
from pathlib import Path

import httpx
import pytest
from nicegui import __version__
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from gateway.ui.asset_cache import AssetCache

FOLDER = f"/_nicegui/{__version__}"
SCRIPT = "const answer = 42;\n" * 100


@pytest.fixture
def asked() -> list[str]:
    """Paths that came through to the application."""
    return []


@pytest.fixture
def client(tmp_path: Path, asked: list[str]) -> httpx.AsyncClient:
    script = tmp_path / "vue.js"
    script.write_text(SCRIPT)

    async def answer(request: Request) -> Response:
        asked.append(request.url.path)
        found = request.url.path.endswith("vue.js")
        return FileResponse(script, media_type="text/javascript") if found else Response("none", 404)

    app = AssetCache(Starlette(routes=[Route("/{path:path}", answer)]))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway")


async def test_an_asset_is_read_once(client: httpx.AsyncClient, asked: list[str]) -> None:
    first, second = [await client.get(f"{FOLDER}/static/vue.js") for _ in range(2)]
    assert first.text == second.text == SCRIPT
    assert first.headers == second.headers
    assert first.headers["content-encoding"] == "gzip"
    assert int(first.headers["content-length"]) < len(SCRIPT)
    assert first.headers["content-type"].startswith("text/javascript")
    assert "accept-encoding" in first.headers["vary"].lower()
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (f"{FOLDER}/static/vue.js", {"accept-encoding": "identity"}),
        (f"{FOLDER}/static/vue.js", {"range": "bytes=0-9"}),
        (f"{FOLDER}/static/vue.js", {"if-none-match": '"another"'}),
        (f"{FOLDER}/dynamic_resources/vue.js", {}),
        ("/timeline/vue.js", {}),
        (f"{FOLDER}/static/missing.js", {}),
    ],
)
async def test_all_else_is_asked_for_every_time(
    client: httpx.AsyncClient, asked: list[str], path: str, headers: dict[str, str]
) -> None:
    answers = [await client.get(path, headers=headers) for _ in range(2)]
    assert len(asked) == 2
    assert answers[0].content == answers[1].content


async def test_a_browser_that_goes_before_the_end_leaves_no_half_of_a_script(tmp_path: Path) -> None:
    script = tmp_path / "vue.js"
    script.write_text(SCRIPT)

    async def in_pieces(scope: Scope, receive: Receive, send: Send) -> None:
        """As middleware does that stops when the browser has gone."""
        gone = (await receive(), asyncio.ensure_future(receive()))[1]
        headers = [(b"content-length", str(len(SCRIPT)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for piece in SCRIPT.encode()[:900], SCRIPT.encode()[900:]:
            await asyncio.sleep(0)
            if gone.done():
                return
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        gone.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    app = AssetCache(in_pieces)
    headers = [(b"accept-encoding", b"gzip")]
    scope = {"type": "http", "method": "GET", "path": f"{FOLDER}/static/vue.js", "headers": headers}

    async def goes_at_once() -> Message:
        return {"type": "http.disconnect"}

    async def nowhere(_message: Message) -> None:
        """Nobody is there."""

    await app(scope, goes_at_once, nowhere)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client:
        assert (await client.get(f"{FOLDER}/static/vue.js")).text == SCRIPT
