"""Who comes in by an OpenID provider: the person whom it has signed in for this browser, if MindBus knows them."""

import re
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from fastapi import FastAPI
from joserfc.jwk import RSAKey
from pydantic import ValidationError

from config.settings import FleetSettings
from gateway.access_control import COOKIE, OIDC_BACK, OIDC_START
from gateway.access_tokens import AccessKeys, Throttle
from gateway.login import login_routes
from gateway.openid import openid_routes
from mindbus.accounts import AccessRole, Accounts
from tests.openid_provider import CLIENT, SECRET, Provider, running_provider


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with running_provider() as running:
        yield running


@pytest.fixture
def keys(tmp_path: Path) -> AccessKeys:
    accounts = Accounts(tmp_path / "accounts.db")
    accounts.add("anna", AccessRole.USER)
    accounts.add("critic", AccessRole.AGENT)
    return AccessKeys("the owner's token", lambda: datetime.now(UTC), accounts)


@pytest.fixture
async def browser(provider: Provider, keys: AccessKeys, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    settings = FleetSettings(
        data_dir=tmp_path, oidc_issuer=provider.url, oidc_client_id=CLIENT, oidc_client_secret=SECRET
    )
    app = FastAPI()
    app.include_router(login_routes(keys, Throttle(lambda: datetime.now(UTC)), has_provider=True))
    app.include_router(openid_routes(settings, keys, lambda: datetime.now(UTC)))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://mindbus.example") as client:
        yield client


async def signed_in(browser: httpx.AsyncClient, target: str = "/chat") -> httpx.Response:
    """The way to the provider and back, as a browser goes it."""
    away = await browser.get(OIDC_START, params={"next": target})
    async with httpx.AsyncClient(trust_env=False, timeout=60) as outside:
        back = (await outside.get(away.headers["location"])).headers["location"]
    return await browser.get(back)


async def test_the_login_page_leads_to_the_provider(browser: httpx.AsyncClient, provider: Provider) -> None:
    page = await browser.get("/login?next=/runs")
    away = await browser.get(f"{OIDC_START}?next=/runs")
    asked = parse_qs(urlsplit(away.headers["location"]).query)

    assert f'href="{OIDC_START}?next=/runs"' in page.text
    assert away.headers["location"].startswith(f"{provider.url}/authorize?")
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["redirect_uri"] == [f"https://mindbus.example{OIDC_BACK}"]
    assert {"state", "nonce", "code_challenge"} <= asked.keys()
    cookie = away.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=lax", "secure", f"path={OIDC_BACK}"))


async def test_whom_the_provider_signs_in_has_a_session_of_their_account(
    browser: httpx.AsyncClient, keys: AccessKeys
) -> None:
    answer = await signed_in(browser, "/runs?x=1")

    account = keys.of_session(browser.cookies[COOKIE])
    assert answer.status_code == 200
    assert re.search(r'content="0;url=(.*?)"', answer.text)[1] == "/runs?x=1"  # type: ignore[index]  # it is there
    assert account is not None
    assert (account.identity, account.role) == ("user.anna", AccessRole.USER)


@pytest.mark.parametrize("target", ["https://evil.example", "//evil.example", '"><script>', "/login"])
async def test_a_sign_in_leads_nowhere_else(browser: httpx.AsyncClient, target: str) -> None:
    assert 'content="0;url=/"' in (await signed_in(browser, target)).text


Spoil = Callable[[Provider], Any]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda provider: provider.changes.update(nonce="another"),
        lambda provider: provider.changes.update(aud="another"),
        lambda provider: provider.changes.update(azp="another", aud=[CLIENT, "another"]),
        lambda provider: provider.changes.update(iss="https://evil.example"),
        lambda provider: provider.changes.update(exp=1),
        lambda provider: provider.changes.update(preferred_username="boris"),
        lambda provider: provider.changes.update(preferred_username="critic"),
        lambda provider: provider.changes.update(preferred_username="local"),
        lambda provider: provider.changes.update(preferred_username=None),
        lambda provider: provider.changes.update(preferred_username=["anna"]),
        lambda provider: provider.changes.update(preferred_username="../anna"),
        lambda provider: setattr(provider, "signing", RSAKey.generate_key(2048, parameters={"kid": "1"})),
    ],
    ids=[
        *("nonce", "audience", "party", "issuer", "expired", "stranger", "agent", "owner", "nobody", "list", "path"),
        "key",
    ],
)
async def test_whoever_is_not_that_person_for_this_client_stays_outside(
    browser: httpx.AsyncClient, provider: Provider, spoil: Spoil
) -> None:
    spoil(provider)

    answer = await signed_in(browser)

    assert (answer.status_code, COOKIE in browser.cookies) == (401, False)
    assert "users add" in answer.json()["detail"]


async def test_a_sign_in_belongs_to_one_browser_and_is_used_once(
    browser: httpx.AsyncClient, provider: Provider
) -> None:
    away = await browser.get(OIDC_START)
    cookies = dict(browser.cookies)
    async with httpx.AsyncClient(trust_env=False, timeout=60) as outside:
        back = (await outside.get(away.headers["location"])).headers["location"]

    browser.cookies.clear()
    of_another = await browser.get(back)
    browser.cookies.update(cookies)
    again = await browser.get(back)
    made_up = await browser.get(f"{OIDC_BACK}?code=x&state=y")
    refused = await browser.get(f"{OIDC_BACK}?error=access_denied&state=y")

    assert [answer.status_code for answer in (of_another, again, made_up, refused)] == [401] * 4
    assert COOKIE not in browser.cookies


async def test_a_code_that_another_verifier_began_is_worth_nothing(
    browser: httpx.AsyncClient, provider: Provider
) -> None:
    away = await browser.get(OIDC_START)
    async with httpx.AsyncClient(trust_env=False, timeout=60) as outside:
        back = (await outside.get(away.headers["location"])).headers["location"]
    for asked in provider.codes.values():
        asked["code_challenge"] = "that of somebody else"

    assert (await browser.get(back)).status_code == 401


@pytest.mark.parametrize(
    "settings",
    [
        {"oidc_issuer": "http://provider.example", "oidc_client_id": CLIENT},
        {"oidc_issuer": "https://provider.example"},
    ],
)
def test_a_provider_is_named_by_https_with_a_client(settings: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        FleetSettings(**settings)  # type: ignore[arg-type]  # of the environment
