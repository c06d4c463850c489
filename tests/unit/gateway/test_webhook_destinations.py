"""Webhooks never go into the operator's own network."""

import pytest

from gateway.webhooks.destination import ForbiddenDestination, destination_of


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "https://localhost/hook",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://0.0.0.0/",
        "https://10.0.0.7:8443/x",
        "https://192.168.1.1/",
        "https://169.254.169.254/latest/meta-data",
        "https://100.64.0.1/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://[fd00::1]/",
        "https://224.0.0.1/",
        "http://93.184.216.34/",
        "ftp://93.184.216.34/",
        "https:///no-host",
        "https://user:password@93.184.216.34/",
        "https://93.184.216.34:99999/",
        "https://93.184.216.34/\x01",
        "file:///etc/passwd",
        "not a url",
    ],
)
async def test_what_is_forbidden(url: str) -> None:
    with pytest.raises(ForbiddenDestination):
        await destination_of(url, "")


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://93.184.216.34/hook", ""),
        ("http://127.0.0.1:9/hook", "127.0.0.0/8"),
        ("http://localhost:9/hook", "hooks.internal, localhost"),
        ("https://10.1.2.3/hook", "10.1.0.0/16"),
    ],
)
async def test_what_is_allowed(url: str, allowed: str) -> None:
    assert (await destination_of(url, allowed)).address


async def test_a_network_allows_its_own_addresses_alone() -> None:
    with pytest.raises(ForbiddenDestination, match="which is not public"):
        await destination_of("https://10.2.0.1/", "10.1.0.0/16, nonsense")
