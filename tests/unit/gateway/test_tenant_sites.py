"""Requests reach the site of the tenant that they name, and nobody else's."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse

from config.settings import FleetSettings
from gateway.tenant_sites import TenantSites


@pytest.fixture
async def sites(tmp_path: Path) -> TenantSites:
    """A host at 8040 with the tenants acme, which does not run here, and globex elsewhere."""
    quotas = tmp_path / "tenants" / "acme" / "quotas.json"
    quotas.parent.mkdir(parents=True)
    quotas.write_text("{}")
    settings = FleetSettings(data_dir=tmp_path, gateway_tenants="globex, ")
    found = TenantSites(PlainTextResponse("the host"), settings, "http://127.0.0.1:8040", None)
    await found.look()
    return found


async def asked(sites: TenantSites, path: str, host: str = "127.0.0.1:8040") -> tuple[int, str]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(sites), base_url="http://127.0.0.1:8040") as client:
        answer = await client.get(path, headers={"host": host})
    body: dict[str, Any] = json.loads(answer.text) if answer.text.startswith("{") else {}
    return answer.status_code, answer.headers.get("location") or body.get("detail") or answer.text


@pytest.mark.parametrize(
    ("path", "host", "status", "told"),
    [
        ("/api/runs", "127.0.0.1:8040", 200, "the host"),
        ("/api/runs", "other.example.org", 200, "the host"),
        ("/t/acme/api/runs", "127.0.0.1:8040", 503, "acme is not served: it is not running"),
        ("/t/globex/v1/models", "127.0.0.1:8040", 503, "globex is not served"),
        ("/t/nobody/api/runs", "127.0.0.1:8040", 404, "there is no tenant nobody"),
        ("/t/Acme/api/runs", "127.0.0.1:8040", 200, "the host"),
        ("/t/acmex/api/runs", "127.0.0.1:8040", 404, "there is no tenant acmex"),
        ("/api/runs", "acme.localhost:8040", 503, "acme is not served: it is not running"),
        ("/api/runs", "ACME.example.org", 503, "acme is not served: it is not running"),
        ("/api/runs", "[::1", 200, "the host"),
        ("/t/acme/runs?card=a", "127.0.0.1:8040", 307, "http://acme.localhost:8040/runs?card=a"),
        ("/t/acme", "127.0.0.1:8040", 307, "http://acme.localhost:8040/"),
    ],
)
async def test_a_request_reaches_the_site_that_it_names(
    sites: TenantSites, path: str, host: str, status: int, told: str
) -> None:
    found_status, found = await asked(sites, path, host)
    assert (found_status, told in found) == (status, True), found


async def test_a_tenant_that_is_removed_is_nobodys(sites: TenantSites, tmp_path: Path) -> None:
    (tmp_path / "tenants" / "acme" / "quotas.json").unlink()
    await sites.look()
    assert (await asked(sites, "/t/acme/api/runs"))[0] == 404
