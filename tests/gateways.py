"""A gateway for a test: the worker itself on a real bus, with a client for its URL."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from gateway.worker import GatewayWorker
from mindbus import Client, Kit, Settings, Worker
from tests.fleets import fleet_of


@dataclass(frozen=True)
class Served:
    """A gateway at work, a client of it, a client of the bus."""

    worker: GatewayWorker
    http: httpx.AsyncClient
    bus: Client

    async def ok(self, method: str, path: str, **options: Any) -> Any:
        """What it answers."""
        answer = await self.http.request(method, path, **options)
        assert answer.is_success, f"{answer.status_code} {answer.text}"
        return answer.json()

    async def no(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """The problem that it answers with."""
        answer = await self.http.request(method, path, **options)
        assert answer.headers["content-type"] == "application/problem+json", answer.text
        problem: dict[str, Any] = answer.json()
        assert problem["status"] == answer.status_code
        return problem


@asynccontextmanager
async def serving(
    *makers: Callable[[Kit], Worker], settings: Settings, headers: dict[str, str] | None = None
) -> AsyncIterator[Served]:
    """Run a gateway among other workers."""
    settings = settings.model_copy(update={"gateway_port": 0} if settings.gateway_port is None else {})
    async with fleet_of(*makers, GatewayWorker, settings=settings) as fleet:
        worker = fleet[GatewayWorker]
        async with httpx.AsyncClient(base_url=worker.url, headers=headers, timeout=30, trust_env=False) as http:
            yield Served(worker, http, fleet.bus)
