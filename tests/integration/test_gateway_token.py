"""A gateway that others can reach: nothing without its token, which is told once."""

import os
import signal
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from config.settings import FleetSettings
from gateway.access_control import COOKIE
from gateway.access_tokens import Token, login_path, token_file
from mindbus.logs import configure_logs
from mindbus.testing.wait import eventually
from tests.brokers import Broker
from tests.command_line import Shell
from tests.gateways import gateway_settings, serving

pytestmark = pytest.mark.rabbit
PAGE = {"Accept": "text/html"}


@pytest.fixture
def settings(broker: Broker, vhost_url: str, migrated_folder: Path) -> FleetSettings:
    return gateway_settings(broker, vhost_url, migrated_folder, gateway_host="0.0.0.0")


@pytest.fixture
def shell(settings: FleetSettings) -> Iterator[Shell]:
    """A fleet of a gateway alone, to be started and stopped."""
    known = {name: str(getattr(settings, name)) for name in ("amqp_url", "management_url", "gateway_host")}
    fleet = Shell(settings.data_dir, settings={f"MINDBUS_{name.upper()}": value for name, value in known.items()})
    yield fleet
    fleet.ok("down")
    configure_logs("DEBUG", "console")


async def test_a_program_shows_the_token_each_time(settings: FleetSettings, capfd: pytest.CaptureFixture[str]) -> None:
    async with serving(settings=settings) as gateway:
        token = token_file(settings).read_text()
        refused = await gateway.no("GET", "/api/workers")
        wrong = await gateway.no("GET", "/api/workers", headers={"Authorization": "Bearer wrong"})
        let_in = await gateway.ok("GET", "/api/workers", headers={"Authorization": f"Bearer {token}"})
        schema = await gateway.http.get("/api/openapi.json")
        described = await gateway.ok("GET", "/api/openapi.json", headers={"Authorization": f"Bearer {token}"})
        routes = [(method, path) for path, methods in described["paths"].items() for method in methods]
        strangers = {each: (await gateway.http.request(*each)).status_code for each in routes}
        health = await gateway.http.get("/healthz")

    assert refused == wrong
    assert refused[:2] == (401, "unauthorized")
    assert isinstance(let_in, list)
    assert schema.status_code == 401
    assert len(strangers) > 40
    assert {route for route, status in strangers.items() if status != 401} == set()
    assert health.json() == {"status": "ok"}
    assert token not in "".join(capfd.readouterr())


async def test_a_person_logs_in_and_out(settings: FleetSettings) -> None:
    async with serving(settings=settings) as gateway:
        token = token_file(settings).read_text()
        led = await gateway.http.get("/runs?x=1", headers=PAGE)
        login = await gateway.http.get(led.headers["location"], headers={"Accept-Language": "ru-RU,ru"})
        entered = await gateway.http.post("/login", data={"token": f" {token} ", "next": "/runs?x=1"})
        workers = await gateway.http.get("/api/workers")
        await gateway.http.post("/logout")
        left = await gateway.http.get("/api/workers")

    assert led.headers["location"] == "/login?next=%2Fruns%3Fx%3D1"
    assert "Токен доступа" in login.text
    assert 'value="/runs?x=1"' in login.text
    assert "http" not in login.text
    assert (entered.status_code, entered.headers["location"]) == (303, "/runs?x=1")
    cookie = entered.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert token not in cookie
    assert workers.status_code == 200
    assert left.status_code == 401


async def test_a_link_signs_a_browser_in_once(settings: FleetSettings) -> None:
    async with serving(settings=settings) as gateway:
        link = login_path(Token(token_file(settings).read_text()))
        entered = await gateway.http.get(f"{link}&next=/runs", headers=PAGE)
        workers = await gateway.http.get("/api/workers")
        gateway.http.cookies.clear()
        again = await gateway.http.get(link, headers=PAGE)
        outside = await gateway.http.get("/api/workers")

    assert (entered.status_code, entered.headers["location"]) == (303, "/runs")
    assert workers.status_code == 200
    assert (again.status_code, COOKIE in again.headers.get("set-cookie", "")) == (401, False)
    assert "a link that has been used" in again.text
    assert outside.status_code == 401


def test_on_this_machine_a_token_is_asked_for_too_and_open_leads_in(
    settings: FleetSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"MINDBUS_AMQP_URL": str(settings.amqp_url), "MINDBUS_GATEWAY_ACCESS": "token", "MINDBUS_GATEWAY_PORT": "0"}
    fleet = Shell(tmp_path / "data", settings=asked)
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    try:
        fleet.ok("up", "-d", "--workers", "gateway", spawned=True)
        state = fleet.json("status", "--show-secrets")
        shown = fleet.ok("open")
        bearer = {"Authorization": f"Bearer {state['gateway_token']}"}
        with httpx.Client(base_url=state["gateway_url"], trust_env=False, timeout=60) as http:
            statuses = [http.get("/api/workers").status_code, http.get("/api/workers", headers=bearer).status_code]
            (link,) = opened
            entered = http.get(link, headers=PAGE)
            inside = http.get("/api/workers").status_code
    finally:
        fleet.ok("down")

    assert statuses == [401, 200]
    assert (entered.status_code, inside) == (303, 200)
    assert "ticket" not in shown


async def test_a_login_takes_no_wrong_token_no_stranger_and_leads_nowhere_else(settings: FleetSettings) -> None:
    async with serving(settings=settings) as gateway:
        token = token_file(settings).read_text()
        wrong = await gateway.http.post("/login", data={"token": "wrong", "next": "/runs"})
        stranger = await gateway.http.post("/login", data={"token": token}, headers={"Origin": "https://evil.example"})
        assert COOKIE not in gateway.http.cookies
        for wanted in (
            '"><script>',
            "javascript:alert(1)",
            "https://evil.example",
            "//evil.example",
            "/\\evil",
            "/login",
        ):
            page = await gateway.http.get("/login", params={"next": wanted})
            entered = await gateway.http.post("/login", data={"token": token, "next": wanted})

            assert 'name="next" type="hidden" value="/"' in page.text
            assert entered.headers["location"] == "/"

    assert wrong.status_code == 401
    assert stranger.status_code == 403


async def test_who_guesses_is_kept_waiting(settings: FleetSettings) -> None:
    async with serving(settings=settings) as gateway:
        guesses = [(await gateway.http.post("/login", data={"token": "wrong"})).status_code for _ in range(11)]
        late = await gateway.no("GET", "/api/workers", headers={"Authorization": "Bearer wrong"})

    assert guesses == [401] * 10 + [429]
    assert late[0] == 429


def test_status_shows_the_token_that_up_has_made_and_a_killed_gateway_comes_back_as_it_was(shell: Shell) -> None:
    shown = shell.ok("up", "-d", "--workers", "gateway", spawned=True)
    token = (shell.data_dir / "gateway_token").read_text()
    url = (shell.data_dir / "run" / "gateway_url").read_text()
    bearer = {"Authorization": f"Bearer {token}"}

    def beats() -> list[str]:
        return [
            worker["instance"]
            for worker in httpx.get(f"{url}/api/workers", headers=bearer, trust_env=False, timeout=60).json()
        ]

    eventually(beats, 20, "the gateway hears itself")
    before = beats()
    os.kill(shell.json("health", "gateway")["pid"], signal.SIGKILL)

    def comes_back() -> bool:
        try:
            return bool(set(beats()) - set(before))
        except httpx.TransportError:
            return False

    eventually(comes_back, 60, "the gateway is back at its address")

    assert token not in shown
    assert token in shell.ok("status", "--show-secrets")
    logs = [log.read_text() for log in (shell.data_dir / "logs").iterdir()]
    assert logs
    assert not any(token in log for log in logs)
