"""Memory of pages that were closed."""

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from nicegui import Client

from gateway.worker import GatewayWorker
from mindbus.testing.wait import until
from tests.fleets import fleet_of, settings_for
from tests.installed import FLEET


@pytest.fixture
def _no_collector() -> Iterator[None]:
    """A process of workers collects cycles so rarely that a test would not live to see it."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collector")
async def test_what_closed_pages_leave_is_freed(tmp_path: Path) -> None:
    settings = settings_for(f"memory://{tmp_path}", tmp_path, gateway_port=0, gateway_access="open")
    async with (
        fleet_of(FLEET["storage"], FLEET["tracker"], FLEET["gateway"], settings=settings) as fleet,
        httpx.AsyncClient(base_url=fleet[GatewayWorker].url, timeout=30, trust_env=False) as http,
    ):
        for _ in range(3):
            assert (await http.get("/timeline")).is_success
        opened = [weakref.ref(client) for client in Client.instances.values()]
        assert len(opened) == 3

        # Nobody is there to connect to them.
        await until(lambda: not any(page() for page in opened))
