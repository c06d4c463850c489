"""Who comes in: decided before anything else is done."""

import base64
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from gateway.access_control import COOKIE, AccessControl, BodyLimit
from gateway.access_tokens import OWNER, AccessKeys, Throttle
from mindbus.accounts import Accounts

TOKEN = "a token that nobody guesses"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
PAGE = {"Accept": "text/html,*/*"}


def now() -> datetime:
    return datetime(2026, 3, 14, 12, tzinfo=UTC)


async def inside(scope: Scope, receive: Receive, send: Send) -> None:
    """What the gate guards: it says how much it was sent."""
    body = await Request(scope, receive).body()
    await PlainTextResponse(f"in {len(body)}")(scope, receive, send)


ACCOUNTS = Accounts(Path(mkdtemp()) / "accounts.db")
KEYS = AccessKeys(TOKEN, now, ACCOUNTS)


def gate(token: str | None, rate: int = 0) -> AccessControl:
    keys = AccessKeys(token, now, ACCOUNTS)
    return AccessControl(BodyLimit(inside, 1000), keys, Throttle(now), Throttle(now, limit=rate), "127.0.0.1")


def visitor(token: str | None = None, host: str = "localhost:8040") -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(gate(token)), base_url=f"http://{host}")


@pytest.mark.parametrize("host", ["localhost:8040", "127.0.0.1:8040", "[::1]:8040", "LOCALHOST"])
async def test_an_open_gateway_answers_to_its_own_names(host: str) -> None:
    answer = await visitor(host=host).get("/api/sim")

    assert answer.text == "in 0"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8040", "10.0.0.1"])
async def test_an_open_gateway_is_no_prey_of_dns_rebinding(host: str) -> None:
    answer = await visitor(host=host).get("/api/sim")

    assert answer.status_code == 403
    assert answer.json()["code"] == "unauthorized"


@pytest.mark.parametrize("host", ["", "[", "localhost:x", "a b"])
async def test_a_name_that_is_none_is_not_its_own(host: str) -> None:
    answer = await visitor().get("/api/sim", headers={"Host": host})

    assert answer.status_code == (200 if host == "localhost:x" else 403)


@pytest.mark.parametrize(
    "said",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://localhost:3000"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
    ],
)
@pytest.mark.parametrize("token", [None, TOKEN])
async def test_no_other_site_asks_in_a_visitors_name(said: dict[str, str], token: str | None) -> None:
    for method in ("GET", "POST"):
        answer = await visitor(token).request(method, "/api/sim/start", headers=said | BEARER)

        assert answer.status_code == 403


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"Origin": "http://localhost:8040", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "http://LOCALHOST:8040"},
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
    ],
)
async def test_its_own_pages_and_programs_are_let_in(said: dict[str, str]) -> None:
    assert (await visitor().post("/api/sim/start", headers=said, content=b"123")).text == "in 3"


async def test_a_link_from_elsewhere_can_be_followed_to_a_page() -> None:
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}

    assert (await visitor().get("/timeline", headers=followed)).status_code == 200
    assert (await visitor().get("/timeline", headers=followed | {"Sec-Fetch-Dest": "iframe"})).status_code == 403
    assert (await visitor().post("/timeline", headers=followed)).status_code == 403


async def test_the_token_lets_in_by_whatever_name() -> None:
    async with visitor(TOKEN, "mindbus.example") as at:
        assert (await at.get("/api/sim", headers=BEARER)).text == "in 0"
        assert (await at.get("/api/sim", headers={"authorization": f"bearer  {TOKEN} "})).text == "in 0"


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer"},
        {"Authorization": f"Basic {base64.b64encode(TOKEN.encode()).decode()}"},
        {"Authorization": TOKEN},
        {"Cookie": f"{COOKIE}={TOKEN}"},
        {"Cookie": f"{COOKIE}=1.2"},
    ],
)
async def test_without_the_token_nobody_learns_what_was_wrong(said: dict[str, str]) -> None:
    async with visitor(TOKEN) as at:
        nothing, something = await at.get("/api/sim"), await at.get("/api/sim", headers=said)

    assert something.status_code == 401
    assert (something.content, something.headers) == (nothing.content, nothing.headers)
    assert "bearer" in something.headers["www-authenticate"].lower()


async def test_a_session_lets_in_as_long_as_it_is_one() -> None:
    session = KEYS.open_session(OWNER)
    async with visitor(TOKEN) as at:
        assert (await at.get("/api/sim", headers={"Cookie": f"{COOKIE}={session}"})).text == "in 0"
        assert (await at.get("/api/sim", headers={"Cookie": f"{COOKIE}={session}0"})).status_code == 401


async def test_a_page_leads_to_the_login_and_back() -> None:
    answer = await visitor(TOKEN).get("/timeline?user=anna&x=%2F", headers=PAGE)

    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=%2Ftimeline%3Fuser%3Danna%26x%3D%252F"
    assert (await visitor(TOKEN).get("/api/sim", headers=PAGE)).status_code == 401


async def test_health_and_login_need_no_token() -> None:
    async with visitor(TOKEN) as at:
        assert {(await at.get(path)).status_code for path in ("/healthz", "/login")} == {200}
        assert (await at.get("/login/x")).status_code == 401


async def test_who_guesses_too_often_is_kept_waiting_even_with_the_right_token() -> None:
    async with visitor(TOKEN) as at:
        for _ in range(10):
            assert (await at.get("/api/sim", headers={"Authorization": "Bearer wrong"})).status_code == 401
        late = await at.get("/api/sim", headers=BEARER)
        at_home = await at.get("/api/sim", headers={"Cookie": f"{COOKIE}={KEYS.open_session(OWNER)}"})

    assert late.status_code == 429
    assert 0 < int(late.headers["retry-after"]) <= 61
    assert at_home.status_code == 200


async def test_a_websocket_from_a_strange_page_is_not_opened() -> None:
    said: list[str] = []

    async def send(message: object) -> None:
        said.append(dict(message)["type"])  # type: ignore[call-overload]  # an ASGI message

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    scope = {
        "type": "websocket",
        "path": "/_nicegui_ws/socket.io/",
        "headers": [(b"host", b"localhost:8040"), (b"origin", b"http://evil.example")],
        "extensions": {"websocket.http.response": {}},
    }
    await gate(None)(scope, receive, send)

    assert said[0] == "websocket.http.response.start"


@pytest.mark.parametrize("size", [0, 999, 1000])
async def test_a_body_that_fits_arrives_whole(size: int) -> None:
    assert (await visitor().post("/api/x", content=b"x" * size)).text == f"in {size}"


@pytest.mark.parametrize("size", [1001, 1_000_000])
async def test_a_body_that_is_too_large_is_refused_with_or_without_its_length(size: int) -> None:
    async def pieces() -> object:
        for _ in range(size // 1000):
            yield b"x" * 1000
        yield b"x" * (size % 1000)

    for content in (b"x" * size, pieces()):
        answer = await visitor().post("/api/x", content=content)  # type: ignore[arg-type]  # bytes or a stream

        assert answer.status_code == 413
        assert answer.json()["code"] == "too_large"
